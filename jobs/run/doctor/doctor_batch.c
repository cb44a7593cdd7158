/* Checks of AWS Batch: the queue of the jobs, and the compute environments behind it. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/run/doctor/doctor_internal.h"
#include "jobs/spec/machines/compatibility.h"

#define LOOK_QUEUES       "batch:DescribeJobQueues"
#define LOOK_ENVIRONMENTS "batch:DescribeComputeEnvironments"

struct batch_view {
	struct aws *aws;
	struct err *queue_why, *environments_why; /* NULL: answered */
	json_t *queue;                            /* NULL: there is none */
	json_t *environments;                     /* an array; NULL: not known */
};

static void view_release(void *own)
{
	struct batch_view *view = own;

	aws_freep(&view->aws);
	err_free(view->queue_why);
	err_free(view->environments_why);
	json_decref(view->queue);
	json_decref(view->environments);
	free(view);
}

/* Returns the member `name` of the reply, a new reference; NULL with an error. */
static json_t *ask(struct batch_view *view, enum aws_operation operation, const json_t *body,
		   const char *name, struct err **err)
{
	struct aws_call call = { .operation = operation, .body_fd = -1, .json = body };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	json_t *rows;

	if ((!view->aws && aws_open(&view->aws, err) < 0) ||
	    aws_perform(view->aws, &call, &reply, err) < 0)
		return NULL;
	rows = json_object_get(reply.json, name);
	if (!rows)
		err_set(err, EXIT_UNREACHABLE, "the reply of AWS Batch has no '%s'", name);
	return json_incref(rows);
}

/* Asked once for all checks. */
static struct batch_view *view_of(struct doctor_talk *talk)
{
	struct batch_view *view = talk->own;
	json_auto_t *body = NULL, *queues = NULL, *wanted = NULL;

	if (view)
		return view;
	view = mem_zero(1, sizeof *view);
	talk->own = view;
	talk->release = view_release;
	body = json_pack("{s:[s]}", "jobQueues", talk->on);
	queues = ask(view, AWS_DESCRIBE_JOB_QUEUES, body, "jobQueues", &view->queue_why);
	view->queue = json_incref(json_array_get(queues, 0));
	if (!view->queue)
		return view;
	wanted = batch_check_environments(view->queue);
	view->environments = ask(view, AWS_DESCRIBE_COMPUTE_ENVIRONMENTS, wanted,
				 "computeEnvironments", &view->environments_why);
	return view;
}

void doctor_batch_queue(struct doctor_talk *talk)
{
	const struct batch_view *view = view_of(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (view->queue_why)
		doctor_finding_of(talk, view->queue_why, LOOK_QUEUES);
	else if (batch_check_queue(talk->plan, view->queue, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the queue takes jobs");
}

/* Returns the environments; NULL if they are not known, which is told. Borrowed. */
static const json_t *environments_of(struct doctor_talk *talk)
{
	const struct batch_view *view = view_of(talk);

	if (view->environments)
		return view->environments;
	if (view->environments_why)
		doctor_finding_of(talk, view->environments_why, LOOK_ENVIRONMENTS);
	else
		doctor_finding_untried(talk, "the queue is not known");
	return NULL;
}

/* ---- each environment ---- */

static const char *name_of(const json_t *environment)
{
	const char *name = js_str(environment, "computeEnvironmentName");

	return name ? name : "without a name";
}

static const json_t *machines_of(const json_t *environment)
{
	return json_object_get(environment, "computeResources");
}

static bool is_usable(const json_t *environment)
{
	const char *state = js_str(environment, "state");

	return (!state || strcmp(state, "ENABLED") == 0) && js_is(environment, "status", "VALID");
}

static void tell_environment(struct doctor_talk *talk, const json_t *environment, bool others)
{
	const char *why = js_str(environment, "statusReason");
	const char *state = js_str(environment, "state"), *status = js_str(environment, "status");

	if (is_usable(environment))
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "compute environment '%s' is enabled and valid",
			       name_of(environment));
	else
		doctor_finding(talk, others ? DOCTOR_WARN : DOCTOR_FAIL,
			       "enable it and mend what the reason says, or name another queue in "
			       "'batch.job_queue'",
			       "compute environment '%s' starts no machines: state %s, %s%s%s",
			       name_of(environment), state ? state : "ENABLED",
			       status ? status : "without a status", why ? ": " : "",
			       why ? why : "");
}

void doctor_batch_environments(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk), *row;
	size_t i, usable = 0;

	json_array_foreach (environments, i, row)
		usable += is_usable(row);
	json_array_foreach (environments, i, row)
		tell_environment(talk, row, usable > 0);
	if (environments && json_array_size(environments) == 0)
		doctor_finding(talk, DOCTOR_FAIL, "give the queue a compute environment",
			       "the queue has no compute environment");
}

/* ---- the machines ---- */

/* True if an environment starts machines of the type: it names the type or its family, or lets AWS
 * Batch choose, which takes none with accelerators (user guide, instanceTypes). */
static bool holds_type(const json_t *environment, const json_t *plan, const char *type)
{
	const char *accelerator = js_str(json_object_get(plan, "instance"), "accelerator");
	bool is_plain = !accelerator && js_int(plan, "nodes", 1) < 2;
	size_t i, family = strcspn(type, ".");
	const json_t *row;

	json_array_foreach (json_object_get(machines_of(environment), "instanceTypes"), i, row) {
		const char *named = json_string_value(row);

		if (named && (strcmp(named, type) == 0 ||
			      (strlen(named) == family && strncmp(named, type, family) == 0) ||
			      (is_plain &&
			       (strcmp(named, "optimal") == 0 || text_starts(named, "default_")))))
			return true;
	}
	return false;
}

static const char *type_of(const json_t *plan)
{
	return json_string_value(js_path(plan, "spec.resources.instance"));
}

/* Appends "name: trn1, inf2" of each environment. */
static void add_types(const json_t *environments, struct sb *ret)
{
	const json_t *row, *type;
	size_t i, j;

	json_array_foreach (environments, i, row) {
		sb_addf(ret, "%s'%s'", i > 0 ? ", " : "", name_of(row));
		json_array_foreach (json_object_get(machines_of(row), "instanceTypes"), j, type)
			sb_addf(ret, "%s%s", j > 0 ? ", " : " has ", json_string_value(type));
	}
}

void doctor_batch_types(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk), *row;
	const char *type = type_of(talk->plan);
	AUTO(sb_release) struct sb has = SB_INIT_MAX(2048);
	size_t i, told = 0;

	if (!environments)
		return;
	json_array_foreach (environments, i, row) {
		told += json_object_get(machines_of(row), "instanceTypes") != NULL;
		if (type && is_usable(row) && holds_type(row, talk->plan, type)) {
			doctor_finding(talk, DOCTOR_OK, NULL,
				       "compute environment '%s' starts machines of %s",
				       name_of(row), type);
			return;
		}
	}
	if (!type || told < json_array_size(environments)) {
		doctor_finding_untried(talk, "not every compute environment tells its types");
		return;
	}
	add_types(environments, &has);
	doctor_finding(talk, DOCTOR_FAIL,
		       "add the type to the compute environment, or name another queue or type",
		       "no compute environment that can be used starts machines of %s: %s", type,
		       has.text);
}

void doctor_batch_vcpus(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk), *row;
	int64_t each = js_int(json_object_get(talk->plan, "instance"), "vcpus", 0);
	int64_t needs = each * js_int(talk->plan, "nodes", 1), most = -1;
	size_t i;

	if (!environments)
		return;
	json_array_foreach (environments, i, row) {
		int64_t has = js_int(machines_of(row), "maxvCpus", -1);

		if (is_usable(row) && has > most)
			most = has;
	}
	if (most < 0 || each <= 0)
		doctor_finding_untried(talk, "the vCPUs of machines or environments are not known");
	else if (most < needs)
		doctor_finding(talk, DOCTOR_FAIL,
			       "raise maxvCpus of the compute environment, or take fewer nodes",
			       "a job needs %lld vCPUs, the compute environment has %lld at most",
			       (long long)needs, (long long)most);
	else
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "a job needs %lld vCPUs, the compute environment has up to %lld",
			       (long long)needs, (long long)most);
}

void doctor_batch_spot(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!environments)
		return;
	if (batch_check_spot(talk->plan, environments, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the queue has machines for %lld node%s",
			       (long long)js_int(talk->plan, "nodes", 1),
			       js_int(talk->plan, "nodes", 1) > 1 ? "s" : "");
}

/* ---- the machines' image ---- */

/* Returns the fact "ami" of compatibility.yaml; NULL: not known. Borrowed. */
static const char *machine_image_of(const json_t *environment)
{
	const json_t *machines = machines_of(environment);
	const json_t *chosen = json_array_get(json_object_get(machines, "ec2Configuration"), 0);

	if (js_str(chosen, "imageIdOverride") || js_str(machines, "imageId") ||
	    json_object_get(machines, "launchTemplate"))
		return "own";
	return js_str(chosen, "imageType");
}

static bool is_about_machine_image(const json_t *rule)
{
	const json_t *word;
	size_t i;

	json_array_foreach (json_object_get(rule, "of"), i, word)
		if (strcmp(json_string_value(word), "ami") == 0)
			return true;
	return false;
}

/* Holds the rules against one environment. Returns how many apply, which are told. */
static size_t tell_rules(struct doctor_talk *talk, const json_t *environment)
{
	const struct compatibility_job job = {
		.engine = js_str(talk->plan, "engine"),
		.type = type_of(talk->plan),
		.accelerator = js_str(json_object_get(talk->plan, "instance"), "accelerator"),
	};
	json_auto_t *facts = compatibility_facts(&job), *rules = NULL;
	const json_t *rule;
	size_t i, count = 0;

	js_put_str(facts, "ami", machine_image_of(environment));
	rules = compatibility_check(facts);
	json_array_foreach (rules, i, rule) {
		if (!is_about_machine_image(rule))
			continue;
		count++;
		doctor_finding(talk, js_is(rule, "state", "fail") ? DOCTOR_FAIL : DOCTOR_WARN,
			       js_str(rule, "cure"), "compute environment '%s': %s",
			       name_of(environment), js_str(rule, "says"));
	}
	return count;
}

void doctor_batch_machine_image(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk), *row;
	size_t i, count = 0, known = 0;

	if (!environments)
		return;
	json_array_foreach (environments, i, row) {
		known += machine_image_of(row) != NULL;
		count += tell_rules(talk, row);
	}
	if (count == 0 && known < json_array_size(environments))
		doctor_finding_untried(talk,
				       "not every compute environment tells its machine image");
	else if (count == 0)
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "nothing is known against the machine image of the environments");
}
