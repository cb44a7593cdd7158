/*
 * Many training jobs at once: see engine.h, survey. A list of a hundred tells the states of as
 * many; one that has ended is described, once. Few are described each: a list costs more than
 * they do, because the service takes few lists a second (aws/rates.def).
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/many.h"
#include "jobs/engine/sagemaker_inside.h"

#define LIST_FROM     8   /* so many at once are worth a list */
#define LIST_MAX      100 /* rows of a page */
#define DESCRIBED_MAX 100 /* in one survey, so that it ends: ten seconds */
#define NAMES         "stk-"

struct survey {
	struct sagemaker *sagemaker;
	struct training **wanted; /* those of which nothing fresh is known */
	size_t count;
	bool *listed, *told; /* by the list: it is there; it goes on, and nothing else is asked */
	size_t *asked;       /* indices of those that are described, in the order of the bodies */
	struct err *err;     /* the first reason why one could not be asked */
};

static int by_name(const void *a, const void *b)
{
	const struct training *const *one = a, *const *other = b;

	return strcmp((*one)->name, (*other)->name);
}

static int compare_name(const void *name, const void *b)
{
	const struct training *const *job = b;

	return strcmp(name, (*job)->name);
}

/* The one of this name; the count: it is not wanted. */
static size_t find_wanted(const struct survey *survey, const char *name)
{
	struct training **found = NULL;

	if (name)
		found = bsearch(name, survey->wanted, survey->count, sizeof *found, compare_name);
	return found ? (size_t)(found - survey->wanted) : survey->count;
}

/* What a row of the list says goes over what was known. One that has ended is described. */
static void take_row(struct survey *survey, const json_t *row)
{
	size_t i = find_wanted(survey, js_str(row, "TrainingJobName"));
	json_auto_t *said = NULL;
	struct training *job;

	if (i == survey->count || survey->listed[i])
		return;
	job = survey->wanted[i];
	survey->listed[i] = true;
	if (!js_str(row, "SecondaryStatus") || sagemaker_is_over(row))
		return;
	said = job->said ? json_copy(job->said) : json_object();
	json_object_update(said, (json_t *)(uintptr_t)row);
	sagemaker_note(job, said);
	job->asked = mono_now();
	survey->told[i] = true;
}

/* Newest first: those that are watched are among the newest. */
static int list(struct survey *survey, struct err **err)
{
	size_t pages = survey->count / LIST_MAX + 2, left = survey->count;
	AUTO(auto_free) char *token = NULL;

	while (pages-- > 0 && left > 0) {
		json_auto_t *body = json_pack("{s:i, s:s, s:s, s:s, s:s*}", "MaxResults", LIST_MAX,
					      "NameContains", NAMES, "SortBy", "CreationTime",
					      "SortOrder", "Descending", "NextToken", token);
		AUTO(aws_reply_release) struct aws_reply reply = { 0 };
		const json_t *rows;
		json_t *row;
		size_t i;

		if (sagemaker_call(survey->sagemaker, AWS_LIST_TRAINING_JOBS, body, &reply, err) <
		    0)
			return -1;
		rows = json_object_get(reply.json, "TrainingJobSummaries");
		json_array_foreach ((json_t *)(uintptr_t)rows, i, row)
			take_row(survey, row);
		left = 0;
		for (i = 0; i < survey->count; i++)
			left += !survey->listed[i];
		free(token);
		token = NULL;
		if (js_str(reply.json, "NextToken"))
			token = mem_copy(js_str(reply.json, "NextToken"));
		if (!token)
			break;
	}
	return 0;
}

static void on_described(void *arg, size_t i, struct aws_reply *reply, const struct sb *text)
{
	struct survey *survey = arg;
	struct training *job = survey->wanted[survey->asked[i]];

	if (!reply->err)
		js_parse(text->text, text->len, "DescribeTrainingJob", &reply->json, &reply->err);
	sagemaker_take_reply(job, reply);
	if (reply->err && reply->err->code == EXIT_UNREACHABLE && !survey->err)
		survey->err = TAKE(reply->err);
}

static int describe_rest(struct survey *survey, struct err **err)
{
	json_auto_t *bodies = json_array();
	size_t count = 0;

	for (size_t i = 0; i < survey->count && count < DESCRIBED_MAX; i++) {
		if (survey->told[i])
			continue;
		survey->asked[count++] = i;
		json_array_append_new(
			bodies, json_pack("{s:s}", "TrainingJobName", survey->wanted[i]->name));
	}
	if (count == 0)
		return 0;
	if (many_ask(survey->sagemaker->aws, AWS_DESCRIBE_TRAINING_JOB, bodies, on_described,
		     survey, err) < 0)
		return -1;
	if (!survey->err)
		return 0;
	*err = TAKE(survey->err);
	return -1;
}

static int freshen(struct survey *survey, struct err **err)
{
	if (survey->count == 0)
		return 0;
	if (!survey->sagemaker->aws && aws_open(&survey->sagemaker->aws, err) < 0)
		return -1;
	if (survey->count >= LIST_FROM && list(survey, err) < 0)
		return -1;
	return describe_rest(survey, err);
}

int sagemaker_survey(struct engine *engine, const struct engine_name *names, size_t count,
		     struct engine_status *ret, struct err **err)
{
	const struct reports nothing = { .node = -1 };
	struct sagemaker *sagemaker = (struct sagemaker *)engine;
	AUTO(auto_free) struct training **all = mem_zero(count + 1, sizeof *all);
	AUTO(auto_free) struct training **wanted = mem_zero(count + 1, sizeof *wanted);
	AUTO(auto_free) bool *listed = mem_zero(count + 1, sizeof *listed);
	AUTO(auto_free) bool *told = mem_zero(count + 1, sizeof *told);
	AUTO(auto_free) size_t *asked = mem_zero(count + 1, sizeof *asked);
	struct survey survey = { sagemaker, wanted, 0, listed, told, asked, NULL };
	int outcome;

	for (size_t i = 0; i < count; i++) {
		struct training *job = all[i] = sagemaker_job_of(sagemaker, names[i].name);

		if (sagemaker_is_due(job))
			wanted[survey.count++] = job;
	}
	qsort(wanted, survey.count, sizeof *wanted, by_name);
	outcome = freshen(&survey, err);
	err_freep(&survey.err);
	for (size_t i = 0; i < count; i++) {
		ret[i] = (struct engine_status){ .state = ENGINE_UNSEEN };
		if (all[i]->said && all[i]->missing.ms == 0)
			sagemaker_status(all[i]->said, &nothing, 0, &ret[i]);
	}
	return outcome;
}
