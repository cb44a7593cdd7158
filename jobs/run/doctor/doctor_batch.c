/* Checks of AWS Batch: the queue of the jobs, and the compute environments behind it. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/run/doctor/doctor_queue.h"
#include "jobs/spec/machines/compatibility.h"

static void view_release(void *own)
{
	struct doctor_queue *view = own;

	doctor_queue_freep(&view);
}

/* Asked once for all checks. */
static struct doctor_queue *view_of(struct doctor_talk *talk)
{
	if (!talk->own) {
		talk->own = doctor_queue_ask(talk->on);
		talk->release = view_release;
	}
	return talk->own;
}

void doctor_batch_queue(struct doctor_talk *talk)
{
	const struct doctor_queue *view = view_of(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (view->why)
		doctor_finding_of(talk, view->why, DOCTOR_LOOK_QUEUES);
	else if (batch_check_queue(talk->plan, view->queue, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the queue takes jobs");
}

/* Returns the environments; NULL if they are not known, which is told. Borrowed. */
static const json_t *environments_of(struct doctor_talk *talk)
{
	return doctor_queue_environments(talk, view_of(talk));
}

/* ---- each environment ---- */

static void tell_environment(struct doctor_talk *talk, const json_t *environment, bool others)
{
	const char *why = js_str(environment, "statusReason");
	const char *state = js_str(environment, "state"), *status = js_str(environment, "status");

	if (doctor_queue_is_usable(environment))
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "compute environment '%s' is enabled and valid",
			       doctor_queue_name(environment));
	else
		doctor_finding(talk, others ? DOCTOR_WARN : DOCTOR_FAIL,
			       "enable it and mend what the reason says, or name another queue in "
			       "'batch.job_queue'",
			       "compute environment '%s' starts no machines: state %s, %s%s%s",
			       doctor_queue_name(environment), state ? state : "ENABLED",
			       status ? status : "without a status", why ? ": " : "",
			       why ? why : "");
}

void doctor_batch_environments(struct doctor_talk *talk)
{
	const json_t *environments = environments_of(talk), *row;
	size_t i, usable = 0;

	json_array_foreach (environments, i, row)
		usable += doctor_queue_is_usable(row);
	json_array_foreach (environments, i, row)
		tell_environment(talk, row, usable > 0);
	if (environments && json_array_size(environments) == 0)
		doctor_finding(talk, DOCTOR_FAIL, "give the queue a compute environment",
			       "the queue has no compute environment");
}

/* ---- the machines ---- */

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
		sb_addf(ret, "%s'%s'", i > 0 ? ", " : "", doctor_queue_name(row));
		json_array_foreach (json_object_get(doctor_queue_machines(row), "instanceTypes"), j,
				    type)
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
		told += json_object_get(doctor_queue_machines(row), "instanceTypes") != NULL;
		if (type && doctor_queue_is_usable(row) &&
		    doctor_queue_holds(row, talk->plan, type)) {
			doctor_finding(talk, DOCTOR_OK, NULL,
				       "compute environment '%s' starts machines of %s",
				       doctor_queue_name(row), type);
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
		int64_t has = js_int(doctor_queue_machines(row), "maxvCpus", -1);

		if (doctor_queue_is_usable(row) && has > most)
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
	const json_t *machines = doctor_queue_machines(environment);
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
			       doctor_queue_name(environment), js_str(rule, "says"));
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
