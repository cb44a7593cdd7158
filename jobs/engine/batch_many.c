/* Many jobs of AWS Batch at once: see engine.h, survey. One question tells of a hundred. */
#include "jobs/engine/batch_inside.h"
#include "jobs/engine/many.h"

#define IDS_MAX 100 /* of DescribeJobs */

struct survey {
	struct batch *batch;
	struct batch_job **wanted; /* with an id, of which nothing fresh is known */
	size_t count;
	struct err *err; /* the first reason why some could not be asked */
};

static void on_described(void *arg, size_t page, struct aws_reply *reply)
{
	struct survey *survey = arg;
	size_t from = page * IDS_MAX, to = from + IDS_MAX;
	const json_t *list = json_object_get(reply->json, "jobs");

	if (reply->err && !survey->err)
		survey->err = TAKE(reply->err);
	for (size_t i = from; i < to && i < survey->count; i++) {
		survey->wanted[i]->asked = mono_now();
		batch_take_in(survey->wanted[i], list, 1);
	}
}

static json_t *pages_of(const struct survey *survey)
{
	json_t *bodies = json_array(), *ids = NULL;

	for (size_t i = 0; i < survey->count; i++) {
		if (i % IDS_MAX == 0) {
			ids = json_array();
			json_array_append_new(bodies, json_pack("{s:o}", "jobs", ids));
		}
		json_array_append_new(ids, json_string(survey->wanted[i]->id));
	}
	return bodies;
}

static int freshen(struct survey *survey, struct err **err)
{
	json_auto_t *bodies = pages_of(survey);

	if (survey->count == 0)
		return 0;
	if (!survey->batch->aws && aws_open(&survey->batch->aws, err) < 0)
		return -1;
	if (many_ask(survey->batch->aws, AWS_DESCRIBE_JOBS, bodies, on_described, survey, err) < 0)
		return -1;
	if (!survey->err)
		return 0;
	*err = TAKE(survey->err);
	return -1;
}

int batch_survey(struct engine *engine, const struct engine_name *names, size_t count,
		 struct engine_status *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	AUTO(auto_free) struct batch_job **wanted = mem_zero(count + 1, sizeof *wanted);
	struct survey survey = { batch, wanted, 0, NULL };
	int outcome;

	for (size_t i = 0; i < count; i++) {
		struct batch_job *job = batch_job_of(batch, names[i].prefix);

		if (!batch_is_due(job))
			continue;
		if (!job->id[0] && batch_identify(batch, job, names[i].name, true, err) < 0)
			return -1;
		if (job->id[0])
			wanted[survey.count++] = job;
	}
	outcome = freshen(&survey, err);
	err_freep(&survey.err);
	for (size_t i = 0; i < count; i++)
		batch_state(batch_job_of(batch, names[i].prefix), &ret[i]);
	return outcome;
}
