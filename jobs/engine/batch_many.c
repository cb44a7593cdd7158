/* Many jobs of AWS Batch at once: see engine.h, survey. One question tells of a hundred, and what
 * is as it was is not even parsed. */
#include <string.h>

#include "jobs/engine/batch_inside.h"
#include "jobs/engine/glance.h"
#include "jobs/engine/many.h"

struct survey {
	struct batch *batch;
	struct batch_job **wanted; /* with an id, of which nothing fresh is known */
	size_t count;
	struct err *err; /* the first reason why some could not be asked */
};

/* Which of those that were asked for together has this id? `to`: none. The guess comes first. */
static size_t find_wanted(const struct survey *survey, size_t from, size_t to, size_t guess,
			  struct glance id)
{
	if (guess < to && glance_is(id, survey->wanted[guess]->id))
		return guess;
	for (; from < to; from++)
		if (glance_is(id, survey->wanted[from]->id))
			return from;
	return to;
}

static bool is_news(const struct batch_job *job, struct glance object)
{
	return job->text_len != object.len || memcmp(job->text, object.text, object.len) != 0;
}

static void take(struct batch_job *job, struct glance object)
{
	AUTO(err_freep) struct err *ignored = NULL; /* it is as if nothing had come */
	json_auto_t *list = NULL;
	json_t *found = NULL;

	if (js_parse(object.text, object.len, "a job of DescribeJobs", &found, &ignored) < 0)
		return;
	list = json_pack("[o]", found);
	batch_take_in(job, list, 1);
	job->told_at.ms = 0;
	/* An end is not asked for again: nothing is compared with it. */
	if (job->job != found || job->said.state == ENGINE_ENDED)
		return;
	job->text = mem_copy_n(object.text, object.len);
	job->text_len = object.len;
}

/* Mostly they come in the order in which they were asked for, and as they were. */
static void take_page(const struct survey *survey, size_t from, size_t to, const struct sb *text)
{
	struct mono now = mono_now();
	struct glance object, id;
	struct glance_list list;

	if (!glance_list(text->text, text->len, "jobs", &list))
		return;
	for (size_t next = from;;) {
		struct batch_job *job = next < to ? survey->wanted[next] : NULL;
		size_t i;

		if (job && glance_same(&list, (struct glance){ job->text, job->text_len })) {
			job->seen = now;
			next++;
			continue;
		}
		if (!glance_next(&list, "jobId", &object, &id))
			return;
		i = find_wanted(survey, from, to, next, id);
		if (i == to)
			continue;
		next = i + 1;
		job = survey->wanted[i];
		if (is_news(job, object))
			take(job, object);
		else
			job->seen = now;
	}
}

static void on_described(void *arg, size_t page, struct aws_reply *reply, const struct sb *text)
{
	struct survey *survey = arg;
	size_t from = page * BATCH_IDS_MAX;
	size_t to = from + BATCH_IDS_MAX < survey->count ? from + BATCH_IDS_MAX : survey->count;

	if (reply->err && !survey->err)
		survey->err = TAKE(reply->err);
	for (size_t i = from; i < to; i++)
		survey->wanted[i]->asked = mono_now();
	take_page(survey, from, to, text);
}

static json_t *pages_of(const struct survey *survey)
{
	json_t *bodies = json_array(), *ids = NULL;

	for (size_t i = 0; i < survey->count; i++) {
		if (i % BATCH_IDS_MAX == 0) {
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
		if (!job->id[0] && batch_identify(batch, job, names[i].name, err) < 0)
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
