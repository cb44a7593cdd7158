/* Many jobs of AWS Batch at once: see engine.h, survey. One question tells of a hundred, and what
 * is as it was is not even parsed. */
#include <string.h>

#include "jobs/engine/batch_inside.h"
#include "jobs/engine/glance.h"
#include "jobs/engine/many.h"

#define IDS_MAX 100 /* of DescribeJobs */

struct survey {
	struct batch *batch;
	struct batch_job **wanted; /* with an id, of which nothing fresh is known */
	size_t count;
	struct err *err; /* the first reason why some could not be asked */
};

enum { ID, STATUS, REASON, CANCELLED, TERMINATED, NAMES };
static const char *const names_of[NAMES] = { "jobId", "status", "statusReason", "isCancelled",
					     "isTerminated" };

static bool same_text(const json_t *job, const char *name, struct glance now)
{
	const char *before = js_str(job, name);

	return before ? glance_is(now, before) : !now.text;
}

static bool as_it_was(const json_t *job, const struct glance *now)
{
	return job && same_text(job, "status", now[STATUS]) &&
	       same_text(job, "statusReason", now[REASON]) &&
	       js_bool(job, "isCancelled", false) == glance_is(now[CANCELLED], "true") &&
	       js_bool(job, "isTerminated", false) == glance_is(now[TERMINATED], "true");
}

/* The one of this id among those that were asked for with it; mostly they come in order. */
static struct batch_job *find_wanted(const struct survey *survey, size_t from, size_t hint,
				     struct glance id)
{
	size_t to = from + IDS_MAX < survey->count ? from + IDS_MAX : survey->count;

	if (from + hint < to && glance_is(id, survey->wanted[from + hint]->id))
		return survey->wanted[from + hint];
	for (size_t i = from; i < to; i++)
		if (glance_is(id, survey->wanted[i]->id))
			return survey->wanted[i];
	return NULL;
}

static void take(struct batch_job *job, struct glance object, const struct glance *now)
{
	AUTO(err_freep) struct err *ignored = NULL; /* it is as if nothing had come */
	json_auto_t *list = NULL;
	json_t *found = NULL;

	if (as_it_was(job->job, now)) {
		job->seen = mono_now();
		return;
	}
	if (js_parse(object.text, object.len, "a job of DescribeJobs", &found, &ignored) < 0)
		return;
	list = json_pack("[o]", found);
	batch_take_in(job, list, 1);
}

static void on_described(void *arg, size_t page, struct aws_reply *reply, const struct sb *text)
{
	struct survey *survey = arg;
	size_t from = page * IDS_MAX, to = from + IDS_MAX, hint = 0;
	struct glance now[NAMES], object;
	struct glance_list list;

	if (reply->err && !survey->err)
		survey->err = TAKE(reply->err);
	for (size_t i = from; i < to && i < survey->count; i++)
		survey->wanted[i]->asked = mono_now();
	if (!glance_list(text->text, text->len, "jobs", &list))
		return;
	for (; glance_next(&list, names_of, NAMES, &object, now); hint++) {
		struct batch_job *job = find_wanted(survey, from, hint, now[ID]);

		if (job)
			take(job, object, now);
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
	AUTO(auto_free) struct batch_job **all = mem_zero(count + 1, sizeof *all);
	AUTO(auto_free) struct batch_job **wanted = mem_zero(count + 1, sizeof *wanted);
	struct survey survey = { batch, wanted, 0, NULL };
	int outcome = 0;

	for (size_t i = 0; i < count; i++) {
		struct batch_job *job = all[i] = batch_job_of(batch, names[i].prefix);

		if (outcome < 0 || !batch_is_due(job))
			continue;
		if (!job->id[0] && batch_identify(batch, job, names[i].name, true, err) < 0)
			outcome = -1;
		else if (job->id[0])
			wanted[survey.count++] = job;
	}
	if (outcome == 0)
		outcome = freshen(&survey, err);
	err_freep(&survey.err);
	for (size_t i = 0; i < count; i++)
		batch_state(all[i], &ret[i]);
	return outcome;
}
