/*
 * A watched attempt without a driver's loop: an engine that says what a test has put, a journal and
 * a workspace of the test's own, and the events that are recorded. For one file of tests each.
 */
#ifndef TEST_RUN_ATTEMPT_FIXTURE_H
#define TEST_RUN_ATTEMPT_FIXTURE_H

#include "jobs/run/attempt/watch_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../quoted.h"
#include "jobs/base/fs/fs.h"

#define NODES_MAX 2

/* The engine's answers. */
static struct {
	char *reports[NODES_MAX]; /* JSON; NULL: none */
	char *beside;             /* the agent's pace, JSON; NULL: none */
	struct sb logs[NODES_MAX];
	uint64_t sizes[NODES_MAX]; /* of the logs, once something is asked of it; 0: as they are */
	bool away;                 /* the engine answers nothing */
	int stops;
} said;

static char dir[64];
static struct driver driver;
static struct driver_options options;
static struct engine engine;
static json_t *recorded; /* rows, in their order */

static int no_answer(struct err **err)
{
	return err_set(err, EXIT_UNREACHABLE, "the engine does not answer");
}

static int say_report(struct engine *of, const char *name, const char *prefix, int node,
		      struct node_report *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix;
	if (said.away)
		return no_answer(err);
	if (!said.reports[node])
		return 0;
	return node_report_parse(said.reports[node], strlen(said.reports[node]), ret, err) < 0 ? -1
											       : 1;
}

static int say_beside(struct engine *of, const char *name, const char *prefix, int node,
		      const char *file, json_t **ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)file, (void)err;
	*ret = said.beside ? quoted_json(said.beside) : NULL;
	return *ret != NULL;
}

static int say_log(struct engine *of, const char *name, const char *prefix, int node,
		   uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	const struct sb *log = &said.logs[node];
	size_t len;

	(void)of, (void)name, (void)prefix;
	if (said.away)
		return no_answer(err);
	if (*offset >= log->len)
		return 0;
	len = log->len - *offset < max ? log->len - *offset : max;
	sb_add(ret, log->text + *offset, len);
	*offset += len;
	return 0;
}

static int say_size(struct engine *of, const char *name, const char *prefix, int node,
		    uint64_t *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix;
	if (said.away)
		return no_answer(err);
	*ret = said.sizes[node] ? said.sizes[node] : said.logs[node].len;
	return 1;
}

static int take_stop(struct engine *of, const char *name, const char *prefix, int64_t grace_ms,
		     struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)grace_ms;
	if (said.away)
		return no_answer(err);
	said.stops++;
	return 0;
}

/* Each test may change it; begin() sets it anew. */
static struct engine_ops ops;

static void keep_event(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)ev;
	json_array_append_new(recorded, json_deep_copy(row));
}

/* Attempt 1 of a phase, claimed, by a plan in the quotes of quoted.h. */
static struct attempt_watch *begin(enum phase phase, const char *plan)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *state = NULL;
	AUTO(auto_free) char *work = NULL;

	snprintf(dir, sizeof dir, "/tmp/stoker-attempt-XXXXXX");
	assert_non_null(mkdtemp(dir));
	state = mem_format("dir:%s/state", dir);
	work = mem_format("%s/ws", dir);
	memset(&said, 0, sizeof said);
	for (int node = 0; node < NODES_MAX; node++)
		said.logs[node] = SB_INIT;
	recorded = json_array();
	ops = (struct engine_ops){ .name = "local",
				   .report = say_report,
				   .beside = say_beside,
				   .logs = say_log,
				   .log_size = say_size,
				   .stop = take_stop };
	engine.ops = &ops;
	options = (struct driver_options){ .on_event = keep_event };
	driver = (struct driver){ .run = "r1", .options = &options, .engine = &engine };
	driver.flow.stage = PHASE_TRAIN;
	driver.plan = quoted_json(plan);
	driver.kind = compile_kind_find("neuron");
	driver.flow.claimed = true;
	driver.flow.phase = phase;
	driver.flow.attempt = 1;
	driver.flow.attempts[phase] = 1;
	driver.live = true;
	driver.live_at = clock_utc_now();
	driver.live_since = clock_mono_now();
	if (journal_open(state, JOURNAL_WRITE, &driver.journal, &err) < 0 ||
	    store_open(work, &driver.workspace, &err) < 0 ||
	    watch_open(&driver, phase, 1, "stk-r1-1", &err) < 0)
		fail_msg("%s", err->message);
	return driver.watch;
}

static inline void end(void)
{
	AUTO(err_freep) struct err *err = NULL;

	watch_close(&driver);
	store_freep(&driver.workspace);
	store_freep(&driver.cache);
	journal_freep(&driver.journal);
	json_decref(driver.plan);
	json_decref(recorded);
	for (int node = 0; node < NODES_MAX; node++) {
		free(said.reports[node]);
		sb_release(&said.logs[node]);
	}
	free(said.beside);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

/* Makes the agent of this node report these members from now on, in the quotes of quoted.h. */
static inline void report(int node, const char *members)
{
	AUTO(auto_free) char *text = mem_format("{'v':1,%s}", members);

	free(said.reports[node]);
	said.reports[node] = quoted(text);
}

/* The member of the newest event of this name; NULL if it is not there. */
static inline const json_t *newest_value(const char *event, const char *member)
{
	for (size_t i = json_array_size(recorded); i-- > 0;)
		if (js_is(json_array_get(recorded, i), "event", event))
			return json_object_get(json_array_get(recorded, i), member);
	fail_msg("there is no %s", event);
	return NULL;
}

static inline const char *newest(const char *event, const char *member)
{
	const char *text = json_string_value(newest_value(event, member));

	return text ? text : "";
}

/* A number as it is; an instant and a duration in milliseconds. */
static inline int64_t newest_int(const char *event, const char *member)
{
	const json_t *value = newest_value(event, member);
	struct utc at;

	if (clock_utc_parse(json_is_string(value) ? json_string_value(value) : "", &at))
		return at.ms;
	return json_is_real(value) ? llround(json_real_value(value) * 1000)
				   : json_integer_value(value);
}

static inline size_t count_of(const char *event)
{
	size_t count = 0, i;
	const json_t *row;

	json_array_foreach (recorded, i, row)
		count += js_is(row, "event", event);
	return count;
}

/* Instants and durations of an event become whole milliseconds. */
static inline void in_ms(const char *event, json_t *row)
{
	for (int id = 0; id < EVF_COUNT; id++) {
		const struct event_field_row *field = &event_fields[id];

		if ((field->type == EVT_INSTANT || field->type == EVT_DURATION) &&
		    json_object_get(row, field->name))
			js_put(row, field->name, json_integer(newest_int(event, field->name)));
	}
}

/* Asserts that the newest event of this name has these members beside those that each event has;
 * instants and durations in milliseconds. */
static inline void assert_event(const char *event, const json_t *members)
{
	static const char *const of_each[] = { "event", "seq", "at", "run", "v", "sum" };
	json_auto_t *got = NULL;
	AUTO(auto_free) char *shown = NULL;

	for (size_t i = json_array_size(recorded); !got && i-- > 0;)
		if (js_is(json_array_get(recorded, i), "event", event))
			got = json_deep_copy(json_array_get(recorded, i));
	assert_non_null(got);
	for (size_t i = 0; i < STK_LENGTH(of_each); i++)
		json_object_del(got, of_each[i]);
	in_ms(event, got);
	shown = js_line(got);
	if (!json_equal(members, got))
		fail_msg("%s", shown);
}

static inline void say(int node, const char *text)
{
	sb_adds(&said.logs[node], text);
}

static inline void read_all(struct attempt_watch *watch)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more = true;

	while (more)
		assert_int_equal(reading_turn(watch, false, false, &more, &err), 0);
}

/* Node 0 prints this, and the driver reads it. */
static inline void say_and_read(const char *text)
{
	say(0, text);
	read_all(driver.watch);
}

static inline void assert_recorded(size_t count)
{
	assert_int_equal(json_array_size(recorded), count);
}

/* A driver that was taken over records nothing more. */
static inline void assert_taken_over(int result, struct err **err)
{
	assert_int_equal(result, -1);
	assert_int_equal((*err)->code, EXIT_BUSY);
	assert_string_equal((*err)->message, "another driver took run r1 over");
	err_freep(err);
	driver.stood_down = false;
}

static inline void assert_away(int result, struct err **err)
{
	assert_int_equal(result, -1);
	assert_int_equal((*err)->code, EXIT_UNREACHABLE);
	assert_string_equal((*err)->message, "the engine does not answer");
	err_freep(err);
	said.away = false;
}

#endif
