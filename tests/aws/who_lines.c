/*
 * who_lines: does what is asked of it as JSON, one object a line on stdin, and writes what
 * came of it as a line on stdout. Tests in Python drive credentials, STS and secrets with it.
 *
 *   {"do":"credentials"}                  who we are: {"provider","access","secret","token",
 *                                         "expires","account"}
 *   {"do":"expired","access":KEY}         {"may_change"}
 *   {"do":"account"}                      {"account"}
 *   {"do":"require","account":ACCOUNT}    {}
 *   {"do":"secret","from":…,"max":BYTES}  {"value"}
 *   {"do":"region"}, {"do":"endpoint","suffix":…}, {"do":"lend"}
 *   {"do":"config","path":…,"keys":[[kind,section,key]…]}   what a config file says: {"values"}
 *   {"do":"threads","count":N}            N threads ask for credentials at once: {"same"}
 *   {"do":"logs","group","stream" or "prefix","at","count","page"}
 *                                         begin to read a log, all streams of a prefix from
 *                                         that position
 *   {"do":"read","pages":N}               {"state","events":[[at,stream,message]…]}, of a prefix
 *                                         also {"at","count"}
 *   {"do":"streams","group","prefix"}     {"streams"}
 *
 * A failure has "error", "hint" and "exit" instead.
 *
 * usage: who_lines [PROFILE [REGION]]   as --profile and --region of stoker; "" for none
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aws/child_aws_env.h"
#include "aws/credentials/credentials.h"
#include "aws/credentials/profile.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/secrets.h"
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "aws/logs/logs.h"
#include "jobs/base/text/js.h"

#define THREADS_MAX 64

static int say_credentials(json_t *ret, struct err **err)
{
	AUTO(credentials_release) struct credentials ours = { 0 };

	if (credentials_get(&ours, err) < 0)
		return -1;
	js_put_str(ret, "provider", ours.provider);
	js_put_str(ret, "access", ours.access_key);
	js_put_str(ret, "secret", ours.secret_key);
	js_put_str(ret, "token", ours.token);
	js_put_str(ret, "account", ours.account);
	js_put(ret, "expires", json_integer(ours.expires.ms));
	return 0;
}

static int say_secret(const json_t *asked, json_t *ret, struct err **err)
{
	AUTO(secret_freep) char *value = NULL;

	if (aws_secret_read(js_str(asked, "from"), (size_t)js_int(asked, "max", 65536), &value,
			    err) < 0)
		return -1;
	js_put_str(ret, "value", value);
	return 0;
}

static int say_account(json_t *ret, struct err **err)
{
	AUTO(auto_free) char *account = NULL;

	if (sts_account(&account, err) < 0)
		return -1;
	js_put_str(ret, "account", account);
	return 0;
}

static int say_region(json_t *ret, struct err **err)
{
	const char *region = aws_region(err);

	js_put_str(ret, "region", region);
	return region ? 0 : -1;
}

static int say_config(const json_t *asked, json_t *ret, struct err **err)
{
	AUTO(profile_freep) struct profile_file *file = NULL;
	json_t *values = json_array();
	const json_t *row;
	size_t i;

	js_put(ret, "values", values);
	if (profile_read(js_str(asked, "path"), PROFILE_CONFIG, &file, err) < 0)
		return -1;
	json_array_foreach (json_object_get(asked, "keys"), i, row) {
		const char *value = profile_value(file, json_string_value(json_array_get(row, 0)),
						  json_string_value(json_array_get(row, 1)),
						  json_string_value(json_array_get(row, 2)));

		json_array_append_new(values, value ? js_text(value, strlen(value)) : json_null());
	}
	return 0;
}

static void say_lent(json_t *ret)
{
	size_t count = 0;
	AUTO(secret_strv_freep) char **lent = child_aws_env(&count);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(lent[i]));
	js_put(ret, "lent", list);
}

static void *one_thread(void *arg)
{
	struct credentials *ours = arg;
	AUTO(err_freep) struct err *err = NULL;

	(void)!credentials_get(ours, &err);
	return NULL;
}

static void say_threads(const json_t *asked, json_t *ret)
{
	size_t count = (size_t)js_int(asked, "count", 8), same = 0;
	struct credentials each[THREADS_MAX] = { 0 };
	pthread_t threads[THREADS_MAX];

	for (size_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, one_thread, &each[i]);
	for (size_t i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		if (each[0].access_key && each[i].access_key)
			same += strcmp(each[0].access_key, each[i].access_key) == 0;
	}
	for (size_t i = 0; i < count; i++)
		credentials_release(&each[i]);
	js_put(ret, "same", json_integer((json_int_t)same));
}

/* ---- logs ------------------------------------------------------------------------ */

static struct logs *logs;
static struct logs_cursor *cursor;
static struct logs_filter *filter;

static void end_logs(void)
{
	logs_cursor_freep(&cursor);
	logs_filter_freep(&filter);
	logs_freep(&logs);
}

static int begin_logs(const json_t *asked, struct err **err)
{
	const struct logs_position from = { js_int(asked, "at", 0), js_int(asked, "count", 0) };
	const char *group = js_str(asked, "group");

	end_logs();
	if (logs_open((int)js_int(asked, "page", 0), &logs, err) < 0)
		return -1;
	if (js_str(asked, "stream"))
		cursor = logs_cursor_new(group, js_str(asked, "stream"));
	else
		filter = logs_filter_new(group, js_str(asked, "prefix"), &from);
	return 0;
}

static void take_event(void *arg, const struct logs_event *event)
{
	json_array_append_new(arg, json_pack("[I,s,o]", (json_int_t)event->at_ms, event->stream,
					     js_text(event->message, event->len)));
}

/* Reads until there is no more for now, or so many pages have come. */
static int read_logs(const json_t *asked, json_t *ret, struct err **err)
{
	static const char *const states[] = { "more", "no more", "not yet" };
	enum logs_state state = LOGS_MORE;
	json_t *events = json_array();
	int outcome = 0;

	js_put(ret, "events", events);
	for (int64_t pages = js_int(asked, "pages", 1000);
	     outcome == 0 && state == LOGS_MORE && pages > 0; pages--)
		outcome = cursor ? logs_read(logs, cursor, take_event, events, &state, err)
				 : logs_filter_read(logs, filter, take_event, events, &state, err);
	js_put_str(ret, "state", states[state]);
	if (filter) {
		struct logs_position at = logs_filter_position(filter);

		js_put(ret, "at", json_integer(at.at_ms));
		js_put(ret, "count", json_integer(at.count));
	}
	return outcome;
}

static int list_streams(const json_t *asked, json_t *ret, struct err **err)
{
	AUTO(auto_strv) char **names = NULL;
	json_t *list = json_array();

	js_put(ret, "streams", list);
	end_logs();
	if (logs_open(0, &logs, err) < 0 ||
	    logs_streams(logs, js_str(asked, "group"), js_str(asked, "prefix"), &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++)
		json_array_append_new(list, json_string(*name));
	return 0;
}

static int act(const json_t *asked, json_t *ret, struct err **err)
{
	const char *what = js_str(asked, "do");

	if (strcmp(what, "credentials") == 0)
		return say_credentials(ret, err);
	if (strcmp(what, "account") == 0)
		return say_account(ret, err);
	if (strcmp(what, "require") == 0)
		return sts_require_account(js_str(asked, "account"), err);
	if (strcmp(what, "secret") == 0)
		return say_secret(asked, ret, err);
	if (strcmp(what, "region") == 0)
		return say_region(ret, err);
	if (strcmp(what, "config") == 0)
		return say_config(asked, ret, err);
	if (strcmp(what, "logs") == 0)
		return begin_logs(asked, err);
	if (strcmp(what, "read") == 0)
		return read_logs(asked, ret, err);
	if (strcmp(what, "streams") == 0)
		return list_streams(asked, ret, err);
	if (strcmp(what, "expired") == 0)
		js_put(ret, "may_change",
		       json_boolean(credentials_default.expired(js_str(asked, "access"))));
	else if (strcmp(what, "endpoint") == 0)
		js_put_str(ret, "endpoint", aws_endpoint_configured(js_str(asked, "suffix")));
	else if (strcmp(what, "lend") == 0)
		say_lent(ret);
	else if (strcmp(what, "threads") == 0)
		say_threads(asked, ret);
	else
		return err_set(err, EXIT_USAGE, "nobody can '%s' here", what);
	return 0;
}

static void answer(const char *line, size_t len)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *asked = NULL, *ret = json_object();
	AUTO(auto_free) char *text = NULL;

	if (js_parse(line, len, "the line", &asked, &err) == 0 && act(asked, ret, &err) < 0)
		js_put(ret, "exit", json_integer(err->code));
	if (err) {
		AUTO(auto_free) char *words = err_format(err);

		js_put_str(ret, "error", words);
		js_put_str(ret, "hint", err->hint);
	}
	text = js_line(ret);
	puts(text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	AUTO(auto_free) char *line = NULL;
	size_t size = 0;
	ssize_t len;

	aws_settings_option(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
	while ((len = getline(&line, &size, stdin)) > 0)
		answer(line, (size_t)len);
	end_logs();
	credentials_forget();
	aws_settings_forget();
	return 0;
}
