/* The table of checks, and the talks that carry them out: see doctor.h. */
#include "jobs/run/doctor/doctor.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/process/cancel.h"
#include "jobs/engine/engine.h"
#include "jobs/run/doctor/doctor_internal.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/plan/preflight.h"

/* Time to remove a probe, behind the last check. */
#define LEAVE_MS 5000

static const struct doctor_row rows[] = {
#define ASKS(...) ((const enum aws_operation[]){ __VA_ARGS__, AWS_OPERATION_COUNT })
#define CHECK(id, kind, check, operations, engines, field, cure)                                   \
	{ id, DOCTOR_##kind, doctor_##check, operations, engines, field, cure },
#include "jobs/run/doctor/checks.def"
#undef CHECK
};

static const struct {
	bool is_aws;   /* only where AWS is used */
	bool has_keys; /* begins once there are credentials */
	bool is_alone; /* a talk for each check */
} kinds[DOCTOR_KINDS] = {
	[DOCTOR_HERE] = { false, false, true },    [DOCTOR_KEYS] = { true, false, false },
	[DOCTOR_SETTINGS] = { true, false, true }, [DOCTOR_STS] = { true, true, false },
	[DOCTOR_PLACE] = { true, true, false },    [DOCTOR_BUCKET] = { true, true, false },
	[DOCTOR_JOBS] = { false, false, false },   [DOCTOR_IMAGE] = { true, true, false },
	[DOCTOR_BATCH] = { true, true, false },    [DOCTOR_EC2] = { true, true, false },
	[DOCTOR_QUOTA] = { true, true, false },    [DOCTOR_ROLE] = { true, true, false },
};

/* ---- which checks ---- */

static bool is_of_plan(const json_t *plan, const struct doctor_row *row)
{
	const char *engine = plan ? js_str(plan, "engine") : NULL;

	return !row->engines || (engine && strstr(row->engines, engine));
}

static bool is_wanted(const struct doctor_options *options, const struct doctor_row *row)
{
	return (!options->only || fnmatch(options->only, row->id, 0) == 0) &&
	       is_of_plan(options->plan, row);
}

bool doctor_knows(const char *only)
{
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (fnmatch(only, rows[i].id, 0) == 0)
			return true;
	return false;
}

static bool calls(const struct doctor_row *row, enum aws_operation operation)
{
	for (size_t i = 0; row->operations && row->operations[i] != AWS_OPERATION_COUNT; i++)
		if (row->operations[i] == operation)
			return true;
	return false;
}

/* ---- talks ---- */

/* A talk on its way. Its thread owns the talk until it is joined; one that never ends keeps it. */
struct talk_course {
	struct doctor_talk *talk;
	const struct doctor_row *rows[STK_LENGTH(rows)];
	size_t count;
	pthread_t thread;
	bool is_started, is_lost;
	struct timespec end; /* on the monotonic clock */
};

struct examination {
	const struct doctor_options *options;
	bool needs_aws;
	struct talk_course **courses;
	size_t count;
};

static void talk_free(struct doctor_talk *talk)
{
	json_decref(talk->findings);
	json_decref(talk->plan);
	free(talk->on);
	free(talk->versions);
	err_free(talk->state_why);
	free(talk->state_dir);
	free(talk);
}

static void course_free(struct talk_course *course)
{
	talk_free(course->talk);
	free(course);
}

static void *course_run(void *arg)
{
	struct talk_course *course = arg;
	struct doctor_talk *talk = course->talk;

	for (size_t i = 0; i < course->count; i++) {
		talk->row = course->rows[i];
		cancel_thread_after(DOCTOR_LIMIT_MS);
		if (talk->silent)
			doctor_finding_untried(talk, "the service did not answer before");
		else
			talk->row->check(talk);
	}
	cancel_thread_after(LEAVE_MS);
	if (talk->own)
		talk->release(TAKE(talk->own));
	return NULL;
}

static void course_start(struct talk_course *course)
{
	int64_t limit_ms = ((int64_t)course->count + 1) * DOCTOR_LIMIT_MS + LEAVE_MS;

	clock_gettime(CLOCK_MONOTONIC, &course->end);
	course->end.tv_sec += limit_ms / 1000;
	course->is_started = pthread_create(&course->thread, NULL, course_run, course) == 0;
	if (!course->is_started)
		course_run(course);
}

/* A finding for each check of a talk that told nothing, into `findings`. */
static void untold(const struct talk_course *course, const char *why, json_t *findings)
{
	struct doctor_talk silent = { .on = course->talk->on, .findings = findings };

	for (size_t i = 0; i < course->count; i++) {
		silent.row = course->rows[i];
		doctor_finding_untried(&silent, why);
	}
}

/* Waits for its end. False if it has none: the course is its thread's then. */
static bool course_join(struct talk_course *course)
{
	if (course->is_started)
		course->is_lost = pthread_clockjoin_np(course->thread, NULL, CLOCK_MONOTONIC,
						       &course->end) != 0;
	course->is_started = false;
	return !course->is_lost;
}

/* ---- what there is to talk about ---- */

/* Adds a talk with the wanted checks of its kind, or with one of them. Returns NULL if there are
 * none. */
static struct doctor_talk *add_talk(struct examination *all, enum doctor_kind kind, const char *on,
				    const json_t *plan, const struct doctor_row *only)
{
	struct talk_course *course = mem_zero(1, sizeof *course);
	const struct doctor_options *options = all->options;

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (rows[i].kind == kind && (!only || only == &rows[i]) &&
		    (kind == DOCTOR_KEYS || is_wanted(options, &rows[i])))
			course->rows[course->count++] = &rows[i];
	if (course->count == 0) {
		free(course);
		return NULL;
	}
	course->talk = mem_zero(1, sizeof *course->talk);
	*course->talk = (struct doctor_talk){
		.kind = kind,
		.on = on ? mem_copy(on) : NULL,
		.plan = json_incref((json_t *)(uintptr_t)plan),
		.versions = mem_copy(options->versions),
		.state_dir = mem_copy(options->state_dir),
		.read_only = options->read_only,
		.needs_aws = all->needs_aws,
		.findings = json_array(),
	};
	if (options->state_why)
		(void)!err_again(&course->talk->state_why, options->state_why);
	all->courses = mem_grow(all->courses, all->count + 1, sizeof(struct talk_course *));
	all->courses[all->count++] = course;
	return course->talk;
}

static void add_places(struct examination *all, enum doctor_kind kind)
{
	const json_t *plan = all->options->plan;
	struct preflight_place places[PREFLIGHT_PLACES + 2];

	preflight_find(plan, all->options->state_url, places);
	places[PREFLIGHT_PLACES] =
		(struct preflight_place){ "place for results",
					  js_str(json_object_get(plan, "infer"), "output"),
					  "infer.output" };
	places[PREFLIGHT_PLACES + 1] =
		(struct preflight_place){ "place for promoted models",
					  js_str(json_object_get(plan, "promote"), "url"),
					  "promote.url" };
	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		struct doctor_talk *talk = NULL;

		if (places[i].url && places[i].url[0] != '/')
			talk = add_talk(all, kind, places[i].url, plan, NULL);
		if (!talk)
			continue;
		talk->what = places[i].what;
		talk->field = places[i].field;
	}
}

static const struct {
	const char *engine, *field;
} roles[] = {
	{ "batch", "batch.job_role" },
	{ "batch", "batch.execution_role" },
	{ "sagemaker", "sagemaker.role" },
};

/* The ARN of a role of the jobs; NULL: they have none. */
static const char *role_at(const json_t *plan, size_t number)
{
	AUTO(auto_free) char *path = mem_format("spec.%s", roles[number].field);

	return js_is(plan, "engine", roles[number].engine) ? json_string_value(js_path(plan, path))
							   : NULL;
}

static bool has_role(const json_t *plan)
{
	for (size_t i = 0; i < STK_LENGTH(roles); i++)
		if (role_at(plan, i))
			return true;
	return false;
}

/* What a talk about jobs is about. */
static const char *jobs_on(enum doctor_kind kind, const json_t *plan)
{
	const char *path = kind == DOCTOR_IMAGE   ? "spec.image"
			   : kind == DOCTOR_JOBS  ? "name"
			   : kind == DOCTOR_QUOTA ? "spec.resources.instance"
						  : "spec.batch.job_queue";

	if (kind == DOCTOR_EC2 && !js_is(plan, "engine", "batch"))
		return json_string_value(
			json_array_get(js_path(plan, "spec.sagemaker.vpc.subnets"), 0));
	return json_string_value(js_path(plan, path));
}

bool doctor_calls(const json_t *plan, enum aws_operation operation)
{
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (is_of_plan(plan, &rows[i]) && calls(&rows[i], operation) &&
		    (rows[i].kind < DOCTOR_JOBS ||
		     (rows[i].kind == DOCTOR_ROLE ? has_role(plan)
						  : jobs_on(rows[i].kind, plan) != NULL)))
			return true;
	return false;
}

static void add_job(struct examination *all, enum doctor_kind kind, const json_t *jobs)
{
	const char *on = jobs_on(kind, jobs);
	struct doctor_talk *talk = on ? add_talk(all, kind, on, jobs, NULL) : NULL;

	if (talk && kind == DOCTOR_EC2)
		talk->field = js_is(jobs, "engine", "batch") ? "batch.job_queue"
							     : "sagemaker.vpc.subnets";
}

/* The jobs of the training, and those of stages that have others. */
static void add_jobs(struct examination *all, enum doctor_kind kind)
{
	const json_t *plan = all->options->plan;

	for (enum phase phase = PHASE_TRAIN; plan && phase < PHASE_COUNT; phase++) {
		const json_t *section = json_object_get(plan, flow_phase_names[phase]);
		json_auto_t *jobs = NULL;

		if (phase != PHASE_TRAIN && !json_object_get(section, "job"))
			continue;
		jobs = plan_of_phase(plan, phase);
		add_job(all, kind, jobs);
	}
}

static void add_roles(struct examination *all)
{
	const json_t *plan = all->options->plan;

	for (size_t i = 0; plan && i < STK_LENGTH(roles); i++) {
		const char *arn = role_at(plan, i);
		struct doctor_talk *talk = arn ? add_talk(all, DOCTOR_ROLE, arn, plan, NULL) : NULL;

		if (talk)
			talk->field = roles[i].field;
	}
}

static void add_kind(struct examination *all, enum doctor_kind kind)
{
	if (kinds[kind].is_aws && all->options->plan && !all->needs_aws)
		return;
	if (kind == DOCTOR_PLACE || kind == DOCTOR_BUCKET)
		add_places(all, kind);
	else if (kind == DOCTOR_ROLE)
		add_roles(all);
	else if (kind >= DOCTOR_JOBS)
		add_jobs(all, kind);
	else if (!kinds[kind].is_alone)
		add_talk(all, kind, NULL, all->options->plan, NULL);
	else
		for (size_t i = 0; i < STK_LENGTH(rows); i++)
			if (rows[i].kind == kind)
				add_talk(all, kind, NULL, all->options->plan, &rows[i]);
}

/* ---- the examination ---- */

static enum doctor_kind kind_of(const struct talk_course *course)
{
	return course->talk->kind;
}

/* True for what was only needed by others. */
static bool is_aside(const struct examination *all, const struct talk_course *course)
{
	return kind_of(course) == DOCTOR_KEYS && !is_wanted(all->options, course->rows[0]);
}

static bool needs_keys(const struct examination *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (kinds[kind_of(all->courses[i])].has_keys)
			return true;
	return false;
}

/* Starts all talks: those that need credentials once there are some. Returns whether there are. */
static bool start_all(struct examination *all)
{
	bool has_keys = false;

	for (size_t i = 0; i < all->count; i++)
		if (!kinds[kind_of(all->courses[i])].has_keys &&
		    (!is_aside(all, all->courses[i]) || needs_keys(all)))
			course_start(all->courses[i]);
	for (size_t i = 0; i < all->count; i++)
		if (kind_of(all->courses[i]) == DOCTOR_KEYS && course_join(all->courses[i]))
			has_keys = all->courses[i]->talk->has_keys;
	for (size_t i = 0; i < all->count; i++)
		if (has_keys && kinds[kind_of(all->courses[i])].has_keys)
			course_start(all->courses[i]);
	return has_keys;
}

/* Takes the findings of a talk, and frees it once it is over. */
static void collect(const struct examination *all, struct talk_course *course, bool has_keys,
		    json_t *findings)
{
	bool is_over = course_join(course);

	if (is_aside(all, course))
		;
	else if (!is_over)
		untold(course, "no answer within its time", findings);
	else if (kinds[kind_of(course)].has_keys && !has_keys)
		untold(course, "there are no credentials", findings);
	else
		json_array_extend(findings, course->talk->findings);
	if (is_over)
		course_free(course);
}

json_t *doctor_examine(const struct doctor_options *options)
{
	struct examination all = { .options = options };
	json_t *findings = json_array();
	bool has_keys;

	all.needs_aws =
		options->state_url || (options->plan && (aws_account_is_needed(options->plan) ||
							 aws_account_needs_region(options->plan)));
	for (enum doctor_kind kind = 0; kind < DOCTOR_KINDS; kind++)
		add_kind(&all, kind);
	has_keys = start_all(&all);
	for (size_t i = 0; i < all.count; i++)
		collect(&all, all.courses[i], has_keys, findings);
	free(all.courses);
	return findings;
}
