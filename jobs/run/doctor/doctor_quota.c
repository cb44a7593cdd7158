/* Checks of Service Quotas: what an account may have of machines and time, against what jobs need.
 */
#include <stdlib.h>
#include <string.h>

#include "aws/operation.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/sagemaker/sagemaker.h"
#include "jobs/run/doctor/doctor_queue.h"

#define PAGE      100 /* of a list, at most */
#define PAGES_MAX 200

static const char longest[] = "Longest run time for a training job";

struct quota_view {
	struct aws *aws;
	struct doctor_queue *queue; /* of AWS Batch; NULL: not asked for yet */
	bool is_listed;
	json_t *wanted; /* of SageMaker: {name: value, or null until it is found} */
};

static void view_release(void *own)
{
	struct quota_view *view = own;

	aws_freep(&view->aws);
	doctor_queue_freep(&view->queue);
	json_decref(view->wanted);
	free(view);
}

static struct quota_view *view_of(struct doctor_talk *talk)
{
	if (!talk->own) {
		talk->own = mem_zero(1, sizeof(struct quota_view));
		talk->release = view_release;
	}
	return talk->own;
}

static void tell(struct doctor_talk *talk, const char *name, int64_t needs, int64_t has,
		 const char *of, const char *raise)
{
	AUTO(auto_free)
	char *cure = mem_format("raise it, or take fewer: aws service-quotas "
				"request-service-quota-increase %s --desired-value %lld",
				raise, (long long)needs);

	if (has < needs)
		doctor_finding(talk, DOCTOR_FAIL, cure,
			       "the quota '%s' is too small: needs %lld%s, has %lld", name,
			       (long long)needs, of, (long long)has);
	else
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "the quota '%s' is enough: needs %lld%s, has %lld", name,
			       (long long)needs, of, (long long)has);
}

/* ---- EC2's, for AWS Batch ---- */

/* Returns the quota, or what an account has that never asked for more: a new reference. */
static json_t *ask_code(struct quota_view *view, const char *code, enum aws_operation *ret_asked,
			struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:s}", "ServiceCode", "ec2", "QuotaCode", code);
	json_t *ret = doctor_ask(&view->aws, AWS_GET_SERVICE_QUOTA, body, "Quota", err);

	*ret_asked = AWS_GET_SERVICE_QUOTA;
	if (ret || !doctor_finding_has_code(*err, "NoSuchResourceException"))
		return ret;
	err_freep(err);
	*ret_asked = AWS_GET_AWS_DEFAULT_SERVICE_QUOTA;
	return doctor_ask(&view->aws, AWS_GET_AWS_DEFAULT_SERVICE_QUOTA, body, "Quota", err);
}

static void check_code(struct doctor_talk *talk, const char *code, const char *kind)
{
	const json_t *instance = json_object_get(talk->plan, "instance");
	int64_t needs = js_int(instance, "vcpus", 0) * js_int(talk->plan, "nodes", 1);
	AUTO(err_freep) struct err *why = NULL;
	enum aws_operation asked;
	json_auto_t *quota = NULL;
	AUTO(auto_free) char *name = NULL, *raise = NULL;

	if (!code || needs <= 0) {
		doctor_finding_untried(talk, "the catalogue has no quota for the type");
		return;
	}
	quota = ask_code(view_of(talk), code, &asked, &why);
	if (!quota) {
		doctor_finding_of(talk, why, operation_row(asked)->action);
		return;
	}
	name = mem_format("%s (%s, %s)",
			  js_str(quota, "QuotaName") ? js_str(quota, "QuotaName") : kind, code,
			  kind);
	raise = mem_format("--service-code ec2 --quota-code %s", code);
	tell(talk, name, needs, (int64_t)js_real(quota, "Value", 0), " vCPUs", raise);
}

void doctor_quota_vcpus(struct doctor_talk *talk)
{
	const char *name = json_string_value(js_path(talk->plan, "spec.batch.job_queue"));
	const json_t *instance = json_object_get(talk->plan, "instance"), *row, *environments;
	struct quota_view *view = view_of(talk);
	size_t i, spot = 0, plain = 0;

	view->queue = doctor_queue_ask(name);
	if (view->queue->why) {
		doctor_finding_of(talk, view->queue->why, DOCTOR_LOOK_QUEUES);
		return;
	}
	environments = doctor_queue_environments(talk, view->queue);
	json_array_foreach (environments, i, row) {
		const char *type = js_str(doctor_queue_machines(row), "type");
		bool is_spot = type && text_starts(type, "SPOT");

		spot += is_spot;
		plain += !is_spot;
	}
	if (plain > 0)
		check_code(talk, js_str(instance, "quota"), "On-Demand");
	if (spot > 0)
		check_code(talk, js_str(instance, "spot_quota"), "Spot");
	if (environments && spot + plain == 0)
		doctor_finding_untried(talk, "the queue has no compute environment");
}

/* ---- SageMaker's, which have names ---- */

static const json_t *spec_of(const struct doctor_talk *talk, const char *path)
{
	return js_path(json_object_get(talk->plan, "spec"), path);
}

/* Adds how many machines of a type jobs have: {name of the quota: count}. */
static void add_machines(json_t *ret, const char *type, int64_t count, const char *use)
{
	AUTO(auto_free)
	char *name = mem_format("%s%s %s", text_starts(type, "ml.") ? "" : "ml.", type, use);

	js_put(ret, name, json_integer(js_int(ret, name, 0) + count));
}

/* Returns {name of the quota: count} of a use. */
static json_t *machines_of(const struct doctor_talk *talk, const char *use)
{
	const json_t *groups = spec_of(talk, "sagemaker.instance_groups"), *group;
	const char *type = json_string_value(spec_of(talk, "resources.instance"));
	json_t *ret = json_object();
	size_t i;

	json_array_foreach (groups, i, group)
		if (js_str(group, "instance"))
			add_machines(ret, js_str(group, "instance"), js_int(group, "nodes", 1),
				     use);
	if (i == 0 && type)
		add_machines(ret, type, js_int(talk->plan, "nodes", 1), use);
	return ret;
}

static bool is_spot(const struct doctor_talk *talk)
{
	return json_is_true(spec_of(talk, "sagemaker.spot"));
}

static bool has_pool(const struct doctor_talk *talk)
{
	const char *pool = json_string_value(spec_of(talk, "sagemaker.warm_pool"));
	int64_t ms = 0;

	return pool && text_duration(pool, &ms) && ms > 0;
}

static json_t *usage_of(const struct doctor_talk *talk)
{
	return machines_of(talk, is_spot(talk) ? "for spot training job usage"
					       : "for training job usage");
}

static json_t *pool_of(const struct doctor_talk *talk)
{
	return machines_of(talk, "for training warm pool usage");
}

/* Takes the values out of a page. Returns whether some are still missing. */
static bool take(json_t *wanted, const json_t *rows)
{
	const json_t *row;
	json_t *value;
	const char *name;
	size_t i;

	json_array_foreach (rows, i, row)
		if (js_str(row, "QuotaName") && json_object_get(wanted, js_str(row, "QuotaName")))
			json_object_set_new(wanted, js_str(row, "QuotaName"),
					    json_incref((json_t *)(uintptr_t)row));
	json_object_foreach (wanted, name, value)
		if (json_is_null(value))
			return true;
	return false;
}

static json_t *all_wanted(const struct doctor_talk *talk)
{
	json_auto_t *usage = usage_of(talk), *pool = pool_of(talk);
	json_t *ret = json_object(), *count;
	const char *name;

	json_object_foreach (usage, name, count)
		js_put(ret, name, json_null());
	json_object_foreach (pool, name, count)
		if (has_pool(talk))
			js_put(ret, name, json_null());
	js_put(ret, longest, json_null());
	return ret;
}

/* Reads the list until all names are found. */
static int list(struct quota_view *view, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:i}", "ServiceCode", "sagemaker", "MaxResults", PAGE);

	for (size_t page = 0; page < PAGES_MAX; page++) {
		json_auto_t *reply =
			doctor_ask(&view->aws, AWS_LIST_SERVICE_QUOTAS, body, NULL, err);
		const char *next = js_str(reply, "NextToken");

		if (!reply)
			return -1;
		if (!take(view->wanted, json_object_get(reply, "Quotas")) || !next)
			return 0;
		js_put_str(body, "NextToken", next);
	}
	return 0;
}

/* Returns {name: quota, or null} of all that the checks want, asked once; NULL if it is not known,
 * which is told. Borrowed. */
static const json_t *quotas_of(struct doctor_talk *talk)
{
	struct quota_view *view = view_of(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!view->is_listed) {
		view->is_listed = true;
		view->wanted = all_wanted(talk);
		if (list(view, &why) < 0) {
			json_decref(TAKE(view->wanted));
			doctor_finding_of(talk, why,
					  operation_row(AWS_LIST_SERVICE_QUOTAS)->action);
		}
	} else if (!view->wanted) {
		doctor_finding_untried(talk, "the quotas of SageMaker are not known");
	}
	return view->wanted;
}

static void check_name(struct doctor_talk *talk, const json_t *quotas, const char *name,
		       int64_t needs, const char *of)
{
	const json_t *quota = json_object_get(quotas, name);
	const char *code = js_str(quota, "QuotaCode");
	AUTO(auto_free)
	char *raise = mem_format("--service-code sagemaker --quota-code %s", code ? code : "");

	if (json_is_object(quota))
		tell(talk, name, needs, (int64_t)js_real(quota, "Value", 0), of, raise);
	else
		doctor_finding(talk, DOCTOR_UNKNOWN, "look it up on the page of Service Quotas",
			       "Service Quotas lists no quota '%s'", name);
}

static void check_all(struct doctor_talk *talk, const json_t *needs)
{
	const json_t *quotas = quotas_of(talk);
	const char *name;
	json_t *count;

	if (!quotas)
		return;
	json_object_foreach ((json_t *)(uintptr_t)needs, name, count)
		check_name(talk, quotas, name, json_integer_value(count), "");
}

void doctor_quota_machines(struct doctor_talk *talk)
{
	json_auto_t *needs = usage_of(talk);

	if (json_is_string(spec_of(talk, "sagemaker.training_plan")))
		doctor_finding_untried(talk, "machines of a training plan have no such quota");
	else
		check_all(talk, needs);
}

void doctor_quota_warm_pool(struct doctor_talk *talk)
{
	json_auto_t *needs = pool_of(talk);

	if (has_pool(talk))
		check_all(talk, needs);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "no machines are kept for a next job");
}

void doctor_quota_longest_run(struct doctor_talk *talk)
{
	const json_t *quotas = quotas_of(talk);

	if (quotas)
		check_name(talk, quotas, longest, sagemaker_runtime_s(talk->plan), " s");
}
