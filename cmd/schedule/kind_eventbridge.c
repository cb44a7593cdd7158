/*
 * Alarms of EventBridge Scheduler: schedules that submit a job of AWS Batch, in which stoker runs.
 * One schedule an alarm: a cron that restricts both day fields needs two, and due times that clock
 * changes move a third.
 *
 * {"region", "definition": request of RegisterJobDefinition, "prefix": of the schedules' names,
 *  "schedules": [{"Name", …: request of CreateSchedule}…]}
 *
 * The job's definition is named after the digest of its content, as those of jobs/engine/batch are.
 *
 * Sources: service models of botocore 1.43 (scheduler, batch); EventBridge Scheduler, User Guide:
 * "Schedule types", "Universal targets", "Context attributes"; AWS Batch, API Reference, SubmitJob.
 */
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/settings.h"
#include "cmd/schedule/kind.h"
#include "cmd/screen/out.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/calendar/alarm_text.h"

#define NAME_MAX_   64 /* of a schedule */
#define ZONE_MAX_   50
#define WINDOW_MAX_ 1440 /* minutes */
#define SUBMIT_JOB  "arn:aws:scheduler:::aws-sdk:batch:submitJob"
/* An alarm that could not be delivered is repeated for this long; a later one has the same due
 * time, or a newer one. */
#define DELIVER_S 3600

/* ---- the requests ---- */

static int need(const json_t *driver, const char *name, const char *example, struct err **err)
{
	const char *value = js_str(driver, name);

	if (value && strcmp(value, "none") != 0)
		return 0;
	err_set(err, EXIT_SPEC, "'driver.%s' is missing: EventBridge needs it", name);
	return err_hint(err, "for example driver: {%s: %s}", name, example);
}

static bool is_on_s3(const char *url)
{
	return url && text_starts(url, "s3:");
}

static int check(const struct alarm_setting *setting, struct err **err)
{
	if (need(setting->driver, "image",
		 "123456789012.dkr.ecr.us-west-2.amazonaws.com/stoker:0.1", err) < 0 ||
	    need(setting->driver, "job_queue", "stoker", err) < 0 ||
	    need(setting->driver, "role", "arn:aws:iam::123456789012:role/stoker", err) < 0 ||
	    need(setting->driver, "scheduler_role", "arn:aws:iam::123456789012:role/scheduler",
		 err) < 0)
		return -1;
	if (!is_on_s3(setting->state) || !is_on_s3(setting->workspace)) {
		err_set(err, EXIT_REFUSED,
			"the job of an EventBridge schedule sees no directory of this machine: %s",
			is_on_s3(setting->state) ? "'workspace' must be on S3"
						 : "the state must be on S3");
		return err_hint(err, "give --state s3://BUCKET/PREFIX and workspace: "
				     "s3://BUCKET/PREFIX");
	}
	if (strlen(setting->timezone) <= ZONE_MAX_)
		return 0;
	err_set(err, EXIT_REFUSED, "EventBridge takes a time zone of %d characters", ZONE_MAX_);
	return err_hint(err, "choose another name of the zone");
}

/* The job in which stoker runs. */
static json_t *make_definition(const struct alarm_setting *setting)
{
	json_t *body = json_pack(
		"{s:s, s:{s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}]}, s:{s:i}}", "type", "container",
		"containerProperties", "image", js_str(setting->driver, "image"), "jobRoleArn",
		js_str(setting->driver, "role"), "resourceRequirements", "type", "VCPU", "value",
		"1", "type", "MEMORY", "value", "2048", "retryStrategy", "attempts", 1);
	char hex[SHA256_HEX];
	AUTO(auto_free) char *name = NULL;

	js_digest(body, hex);
	name = mem_format("stoker-%.16s", hex);
	js_put_str(body, "jobDefinitionName", name);
	return body;
}

/* The job that the schedule submits, as its target takes it: keys in Pascal case. */
static char *make_input(const struct alarm_setting *setting, const json_t *definition)
{
	json_t *words = json_array();
	json_auto_t *input = json_object();
	AUTO(auto_free) char *job = mem_format("stoker-%.100s", setting->name);

	for (char *c = job; *c; c++)
		if (*c == '.')
			*c = '_'; /* names of jobs have no dots */
	for (size_t i = 0; setting->command[i]; i++)
		json_array_append_new(words, json_string(i == 0 ? "stoker" : setting->command[i]));
	json_array_append_new(words, json_string("--at"));
	json_array_append_new(words, json_string("<aws.scheduler.scheduled-time>"));
	js_put_str(input, "JobName", job);
	js_put_str(input, "JobQueue", js_str(setting->driver, "job_queue"));
	js_put_str(input, "JobDefinition", js_str(definition, "jobDefinitionName"));
	js_put(input, "ContainerOverrides", json_pack("{s:o}", "Command", words));
	return js_line(input);
}

static json_t *make_window(int64_t jitter_ms)
{
	int64_t minutes = (jitter_ms + 59999) / 60000;

	if (jitter_ms <= 0)
		return json_pack("{s:s}", "Mode", "OFF");
	return json_pack("{s:s, s:I}", "Mode", "FLEXIBLE", "MaximumWindowInMinutes",
			 (json_int_t)(minutes > WINDOW_MAX_ ? WINDOW_MAX_ : minutes));
}

/* "stoker-m5-": what does not fit is shortened, with the begin of its SHA-256. */
static char *make_prefix(const char *name)
{
	char hex[SHA256_HEX];

	if (strlen(name) <= NAME_MAX_ - strlen("stoker--1"))
		return mem_format("stoker-%s-", name);
	hash_sha256_hex(name, strlen(name), hex);
	return mem_format("stoker-%.40s-%.8s-", name, hex);
}

static json_t *make_schedule(const struct alarm_setting *setting, const char *prefix, size_t number,
			     const char *times, const char *input)
{
	AUTO(auto_free) char *name = mem_format("%s%zu", prefix, number);
	AUTO(auto_free) char *what = mem_format("stoker: alarms of %s", setting->name);
	json_t *body = json_object();
	char hex[SHA256_HEX];

	js_put_str(body, "Name", name);
	js_put_str(body, "Description", what);
	js_put_str(body, "ScheduleExpression", times);
	js_put_str(body, "ScheduleExpressionTimezone", setting->timezone);
	js_put(body, "FlexibleTimeWindow", make_window(setting->jitter_ms));
	js_put_str(body, "State", "ENABLED");
	js_put(body, "Target",
	       json_pack("{s:s, s:s, s:s, s:{s:i, s:i}}", "Arn", SUBMIT_JOB, "RoleArn",
			 js_str(setting->driver, "scheduler_role"), "Input", input, "RetryPolicy",
			 "MaximumEventAgeInSeconds", DELIVER_S, "MaximumRetryAttempts", 185));
	js_digest(body, hex);
	js_put_str(body, "ClientToken", hex); /* 64 characters, the most */
	return body;
}

static int make(const struct alarm_setting *setting, json_t **ret, struct err **err)
{
	json_auto_t *definition = NULL, *schedules = json_array();
	AUTO(auto_free) char *input = NULL, *prefix = make_prefix(setting->name);
	struct alarm alarms[ALARMS_MAX];
	char times[ALARM_TEXT];
	const char *region;
	size_t count;

	if (check(setting, err) < 0)
		return -1;
	region = aws_region(err);
	if (!region)
		return -1;
	definition = make_definition(setting);
	input = make_input(setting, definition);
	count = alarms_in_zone(&setting->cron, setting->zone, setting->from, alarms);
	for (size_t i = 0; i < count; i++) {
		if (!alarm_text_eventbridge(&alarms[i], times)) {
			err_set(err, EXIT_REFUSED,
				"EventBridge cannot have days of the month and of the week that "
				"must both fit, as '%s' asks for",
				setting->line);
			return err_hint(err, "write '*' in one of the two day fields, or use --to "
					     "systemd");
		}
		json_array_append_new(schedules,
				      make_schedule(setting, prefix, i + 1, times, input));
	}
	*ret = json_object();
	js_put_str(*ret, "region", region);
	js_put_str(*ret, "prefix", prefix);
	js_put(*ret, "definition", TAKE(definition));
	js_put(*ret, "schedules", TAKE(schedules));
	return 0;
}

static void print_request(const char *operation, const json_t *body)
{
	AUTO(auto_free) char *text = json_dumps(body, JSON_INDENT(2));
	AUTO(auto_free) char *lines = mem_format("%s\n", text);

	out_line("# %s", operation);
	out_block(lines);
}

static void print(const json_t *alarm)
{
	const json_t *schedule;
	size_t i;

	print_request("RegisterJobDefinition", json_object_get(alarm, "definition"));
	json_array_foreach (json_object_get(alarm, "schedules"), i, schedule)
		print_request("CreateSchedule", schedule);
}

/* ---- the service ---- */

/* A call about one schedule. Returns 1 with the reply in `ret` (may be NULL), 0 if there is no such
 * schedule, -1. */
static int call_schedule(struct aws *aws, enum aws_operation operation, const json_t *alarm,
			 const char *name, const json_t *body, json_t **ret, struct err **err)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	struct aws_call call = AWS_CALL_INIT(GET_SCHEDULE);

	call.operation = operation;
	call.key = name;
	call.region = js_str(alarm, "region");
	call.json = body;
	if (aws_perform(aws, &call, &reply, err) < 0) {
		if (strcmp(reply.code, "ResourceNotFoundException") != 0)
			return -1;
		err_freep(err);
		return 0;
	}
	if (ret)
		*ret = json_incref(reply.json);
	return 1;
}

/* The body of Create and Update: all but the name, which is part of the path. */
static json_t *body_of(const json_t *schedule)
{
	json_t *body = json_copy((json_t *)(uintptr_t)schedule);

	json_object_del(body, "Name");
	return body;
}

/* True if the service has the schedule as it was made. Its text of the target may be another one
 * of the same meaning. */
static bool is_as_made(const json_t *found, const json_t *schedule)
{
	static const char *const keys[] = { "ScheduleExpression", "ScheduleExpressionTimezone",
					    "FlexibleTimeWindow", "State", "Description" };
	static const char *const of_target[] = { "Arn", "RoleArn", "Input", "RetryPolicy" };
	const json_t *target = json_object_get(found, "Target");
	const json_t *wanted = json_object_get(schedule, "Target");

	for (size_t i = 0; i < STK_LENGTH(keys); i++)
		if (!json_equal(json_object_get(found, keys[i]),
				json_object_get(schedule, keys[i])))
			return false;
	for (size_t i = 0; i < STK_LENGTH(of_target); i++)
		if (!json_equal(json_object_get(target, of_target[i]),
				json_object_get(wanted, of_target[i])))
			return false;
	return true;
}

static int set_schedule(struct aws *aws, const json_t *alarm, const json_t *schedule,
			struct err **err)
{
	const char *name = js_str(schedule, "Name");
	json_auto_t *found = NULL, *body = body_of(schedule);
	int there = call_schedule(aws, AWS_GET_SCHEDULE, alarm, name, NULL, &found, err);

	if (there < 0 || (there > 0 && is_as_made(found, schedule)))
		return there < 0 ? -1 : 0;
	/* Update puts back to its default what is left out, so it gets everything. */
	there = call_schedule(aws, there > 0 ? AWS_UPDATE_SCHEDULE : AWS_CREATE_SCHEDULE, alarm,
			      name, body, NULL, err);
	if (there > 0)
		return 0;
	return there < 0
		       ? -1
		       : err_set(err, EXIT_REFUSED, "EventBridge has no schedule group 'default'");
}

/* True for the prefix and a number: a longer name belongs to another schedule. */
static bool is_ours(const char *name, const char *prefix)
{
	const char *number = name + strlen(prefix);

	return text_starts(name, prefix) && *number &&
	       strspn(number, "0123456789") == strlen(number);
}

static bool is_wanted(const json_t *alarm, const char *name)
{
	const json_t *schedule;
	size_t i;

	json_array_foreach (json_object_get(alarm, "schedules"), i, schedule)
		if (js_is(schedule, "Name", name))
			return true;
	return false;
}

/* Adds the names of our schedules in the service. */
static int list_ours(struct aws *aws, const json_t *alarm, json_t *ret, struct err **err)
{
	const char *prefix = js_str(alarm, "prefix");
	AUTO(auto_free) char *next = NULL;

	do {
		struct sigv4_pair params[] = { { "NamePrefix", prefix },
					       { "ScheduleGroup", "default" },
					       { "NextToken", next } };
		AUTO(aws_reply_release) struct aws_reply reply = { 0 };
		struct aws_call call = AWS_CALL_INIT(LIST_SCHEDULES);
		const json_t *schedule;
		size_t i;

		call.region = js_str(alarm, "region");
		call.params = params;
		call.param_count = next ? 3 : 2;
		if (aws_perform(aws, &call, &reply, err) < 0)
			return -1;
		json_array_foreach (json_object_get(reply.json, "Schedules"), i, schedule)
			if (js_str(schedule, "Name") && is_ours(js_str(schedule, "Name"), prefix))
				json_array_append_new(ret, json_string(js_str(schedule, "Name")));
		auto_free(&next);
		if (js_str(reply.json, "NextToken"))
			next = mem_copy(js_str(reply.json, "NextToken"));
	} while (next);
	return 0;
}

/* Deletes our schedules, but for those that the alarm has if `keep` is true. */
static int delete_ours(struct aws *aws, const json_t *alarm, bool keep, struct err **err)
{
	json_auto_t *names = json_array();
	const json_t *name;
	size_t i;

	if (list_ours(aws, alarm, names, err) < 0)
		return -1;
	json_array_foreach (names, i, name)
		if (!(keep && is_wanted(alarm, json_string_value(name))) &&
		    call_schedule(aws, AWS_DELETE_SCHEDULE, alarm, json_string_value(name), NULL,
				  NULL, err) < 0)
			return -1;
	return 0;
}

static int call_batch(struct aws *aws, enum aws_operation operation, const json_t *alarm,
		      const json_t *body, json_t **ret, struct err **err)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	struct aws_call call = AWS_CALL_INIT(DESCRIBE_JOB_DEFINITIONS);

	call.operation = operation;
	call.region = js_str(alarm, "region");
	call.json = body;
	if (aws_perform(aws, &call, &reply, err) < 0)
		return -1;
	if (ret)
		*ret = json_incref(reply.json);
	return 0;
}

/* Registers the job's definition unless it is there: the same content makes no second revision. */
static int register_definition(struct aws *aws, const json_t *alarm, struct err **err)
{
	const json_t *definition = json_object_get(alarm, "definition");
	json_auto_t *body = json_pack("{s:s, s:s}", "jobDefinitionName",
				      js_str(definition, "jobDefinitionName"), "status", "ACTIVE");
	json_auto_t *found = NULL;

	if (call_batch(aws, AWS_DESCRIBE_JOB_DEFINITIONS, alarm, body, &found, err) < 0)
		return -1;
	if (json_array_size(json_object_get(found, "jobDefinitions")) > 0)
		return 0;
	return call_batch(aws, AWS_REGISTER_JOB_DEFINITION, alarm, definition, NULL, err);
}

static int set(const json_t *alarm, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	const json_t *schedule;
	size_t i;

	if (aws_open(&aws, err) < 0 || register_definition(aws, alarm, err) < 0)
		return -1;
	json_array_foreach (json_object_get(alarm, "schedules"), i, schedule)
		if (set_schedule(aws, alarm, schedule, err) < 0)
			return -1;
	return delete_ours(aws, alarm, true, err);
}

static int look(const json_t *alarm, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	const json_t *schedule;
	size_t i;

	if (aws_open(&aws, err) < 0)
		return -1;
	json_array_foreach (json_object_get(alarm, "schedules"), i, schedule) {
		json_auto_t *found = NULL;
		int there = call_schedule(aws, AWS_GET_SCHEDULE, alarm, js_str(schedule, "Name"),
					  NULL, &found, err);

		if (there <= 0 || !is_as_made(found, schedule))
			return there < 0 ? -1 : 0;
	}
	return 1;
}

/* The definition stays: its name is that of its content, so schedules of other states may submit
 * it, and without it their nights would be lost in silence. */
static int clear(const json_t *alarm, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;

	if (aws_open(&aws, err) < 0 || delete_ours(aws, alarm, false, err) < 0)
		return -1;
	out_note("AWS Batch keeps the job definition '%s', which costs nothing: other schedules "
		 "with this image and role use it too",
		 js_str(json_object_get(alarm, "definition"), "jobDefinitionName"));
	return 0;
}

const struct schedule_kind kind_eventbridge_row = { .name = "eventbridge",
						    .elsewhere = true,
						    .make = make,
						    .print = print,
						    .set = set,
						    .look = look,
						    .remove = clear };
