/*
 * A whole driver on an engine of the test's own: the run lies in a journal, the jobs are what the
 * test says of them, and all that is journalled is kept in `recorded`. Programs that include it
 * wrap engine_find() and loop_after(): waits are cut short, and noted. For one file of tests each.
 */
#ifndef TEST_RUN_DRIVE_FIXTURE_H
#define TEST_RUN_DRIVE_FIXTURE_H

#include "jobs/run/driver_internal.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../quoted.h"
#include "jobs/base/fs/fs.h"

#define HOUR_MS INT64_C(3600000)

/* The engine's questions and answers. */
static struct {
	/* calls so far */
	int checks, submits, finds, describes, stops;
	/* how many of the next calls get no answer */
	int silent_checks, silent_submits, silent_finds, silent_describes, silent_stops;
	int unsure_submits; /* of the next ones it is not known whether they arrived */
	int found;          /* the answer of find; -1: nothing */
	int until_end;      /* looks that see the job run, before it has ended */
	int ends_at_stop;   /* the job runs until it is stopped */
	struct engine_status end;
	int64_t stop_grace_ms;
	char job[FLOW_ID_MAX], prefix[128]; /* of the newest call */
	void (*at_describe)(int number);    /* before each look */
	const char *report;                 /* of the agent, JSON; NULL: none */
	const char *log;                    /* of the job; NULL: nothing */
} play;

static char dir[64];
static struct journal *journal;
static json_t *recorded; /* rows, in their order */
static struct driver_options options;
static int aways;          /* calls of on_away */
static char away_why[256]; /* the refusal's words */
static int loops;          /* calls of on_loop with a loop, less those without */
static int loop_calls;
static int loops_shown; /* calls with a loop */

static bool is_silent(int *calls, struct err **err)
{
	if (*calls == 0)
		return false;
	--*calls;
	(void)!err_set(err, EXIT_UNREACHABLE, "the engine does not answer");
	return true;
}

static void note_call(const char *name, const char *prefix)
{
	snprintf(play.job, sizeof play.job, "%s", name);
	snprintf(play.prefix, sizeof play.prefix, "%s", prefix);
}

static int play_open(const struct engine_where *where, struct engine **ret, struct err **err);

static void play_close(struct engine *engine)
{
	free(engine);
}

static int play_check(struct engine *engine, struct err **err)
{
	(void)engine;
	play.checks++;
	return is_silent(&play.silent_checks, err) ? -1 : 0;
}

static int play_submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	(void)engine;
	play.submits++;
	note_call(job->name, job->prefix);
	if (is_silent(&play.silent_submits, err))
		return -1;
	return is_silent(&play.unsure_submits, err) ? 1 : 0;
}

static int play_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	(void)engine;
	play.finds++;
	note_call(name, prefix);
	return is_silent(&play.silent_finds, err) ? -1 : play.found;
}

static int play_describe(struct engine *engine, const char *name, const char *prefix,
			 struct engine_status *ret, struct err **err)
{
	(void)engine;
	play.describes++;
	note_call(name, prefix);
	if (play.at_describe)
		play.at_describe(play.describes);
	if (is_silent(&play.silent_describes, err))
		return -1;
	*ret = (struct engine_status){ .state = ENGINE_RUNNING };
	if (play.ends_at_stop ? play.stops > 0 : play.until_end-- <= 0)
		*ret = play.end;
	if (play.ends_at_stop)
		ret->exit = 128 + SIGTERM;
	return 0;
}

static int play_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		     struct err **err)
{
	(void)engine;
	note_call(name, prefix);
	play.stop_grace_ms = grace_ms;
	if (is_silent(&play.silent_stops, err))
		return -1;
	play.stops++;
	return 0;
}

static int play_logs(struct engine *engine, const char *name, const char *prefix, int node,
		     uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	size_t len = play.log ? strlen(play.log) : 0;

	(void)engine, (void)name, (void)prefix, (void)node, (void)err;
	if (*offset >= len)
		return 0;
	len = len - *offset < max ? len - *offset : max;
	sb_add(ret, play.log + *offset, len);
	*offset += len;
	return 0;
}

static int play_report(struct engine *engine, const char *name, const char *prefix, int node,
		       struct node_report *ret, struct err **err)
{
	AUTO(auto_free) char *text = play.report ? quoted(play.report) : NULL;

	(void)engine, (void)name, (void)prefix, (void)node;
	return !text ? 0 : node_report_parse(text, strlen(text), ret, err) < 0 ? -1 : 1;
}

static int play_beside(struct engine *engine, const char *name, const char *prefix, int node,
		       const char *file, json_t **ret, struct err **err)
{
	(void)engine, (void)name, (void)prefix, (void)node, (void)file, (void)ret, (void)err;
	return 0;
}

/* Each test may change it; set_up() sets it anew. */
static struct engine_ops play_ops;

static int play_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	(void)where, (void)err;
	*ret = mem_zero(1, sizeof **ret);
	(*ret)->ops = &play_ops;
	return 0;
}

const struct engine_ops *__wrap_engine_find(const char *name);

const struct engine_ops *__wrap_engine_find(const char *name)
{
	return name && strcmp(name, "local") == 0 ? &play_ops : NULL;
}

struct watch *__real_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);
struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);

static int64_t wait_max; /* how long a wait may take in fact */
static int64_t waits[4096];
static size_t wait_count;     /* waits so far, in the order in which they began */
static void (*at_wait)(void); /* before each */

struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg)
{
	if (at_wait)
		at_wait();
	if (wait_count < STK_LENGTH(waits))
		waits[wait_count++] = delay_ms;
	return __real_loop_after(loop, delay_ms < wait_max ? delay_ms : wait_max, fn, arg);
}

/* Returns how many waits were to take that long. */
static inline size_t waits_of(int64_t ms)
{
	size_t count = 0;

	for (size_t i = 0; i < wait_count; i++)
		count += waits[i] == ms;
	return count;
}

static void keep_event(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)ev;
	json_array_append_new(recorded, json_deep_copy(row));
}

static void note_away(void *arg, const struct err *why)
{
	(void)arg;
	aways++;
	snprintf(away_why, sizeof away_why, "%s", why->message);
}

static void note_loop(void *arg, struct loop *loop)
{
	(void)arg;
	loop_calls++;
	loops_shown += loop != NULL;
	loops += loop ? 1 : -1;
}

/* ---- the run ---- */

static char *in_dir(const char *name)
{
	return fs_join(dir, name);
}

static int set_up(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *agent = NULL;
	AUTO(auto_free) char *program = NULL;
	AUTO(auto_free) char *url = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-drive-XXXXXX");
	assert_non_null(mkdtemp(dir));
	agent = in_dir("agent");
	program = fs_join(agent, "stoker-node");
	url = in_dir("state");
	assert_int_equal(fs_mkdirs(agent, &err), 0);
	assert_int_equal(fs_write_atomic(program, "agent", 5, 0700, &err), 0);
	setenv("STOKER_AGENT", agent, 1);
	memset(&play, 0, sizeof play);
	play.end = (struct engine_status){ .state = ENGINE_ENDED, .exit_known = true };
	play_ops = (struct engine_ops){ .name = "local",
					.open = play_open,
					.close = play_close,
					.check = play_check,
					.submit = play_submit,
					.find = play_find,
					.describe = play_describe,
					.stop = play_stop,
					.logs = play_logs,
					.report = play_report,
					.beside = play_beside };
	recorded = json_array();
	aways = loops = loop_calls = loops_shown = 0;
	wait_max = 2;
	at_wait = NULL;
	wait_count = 0;
	options = (struct driver_options){
		.run = "r1", .on_event = keep_event, .on_away = note_away, .on_loop = note_loop
	};
	return journal_open(url, JOURNAL_WRITE, &journal, &err);
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	unsetenv("STOKER_AGENT");
	journal_freep(&journal);
	json_decref(recorded);
	return fs_remove_tree(dir, &err);
}

/* A plan of one training, with these members besides. */
static json_t *plan_with(const char *members)
{
	AUTO(auto_free)
	char *text = mem_format(
		"{'v':1,'name':'n','engine':'local','nodes':1,'workspace':'%s/ws','grace_ms':1234,"
		"'source':{'bundle':'s/x.tar.gz','links':[]},'secrets':{},'metrics':[],'stall':"
		"{'mode':'auto'},'checkpoint':{'kind':'auto','sync':'none','on_mismatch':'stop'},"
		"'phases':[{'phase':'train','command':['train'],'env':{}}],'spec':{},'retry':{"
		"'attempts':3,'without_progress':3,'backoff_first_ms':1,'backoff_max_ms':1}}",
		dir);
	AUTO(auto_free) char *more = mem_format("{%s}", members ? members : "");
	json_auto_t *other = quoted_json(more);
	json_t *plan = quoted_json(text);

	json_object_update(plan, other);
	return plan;
}

static int64_t appended; /* number of the newest event that the test has appended */

static void append(struct event *ev)
{
	AUTO(err_freep) struct err *err = NULL;
	const json_t *last = json_array_get(recorded, json_array_size(recorded) - 1);

	if (js_int(last, "seq", 0) > appended)
		appended = js_int(last, "seq", 0);
	ev->seq = ++appended;
	if (ev->at.ms == 0)
		ev->at = clock_utc_now();
	if (journal_append(journal, "r1", ev, &err) != 1)
		fail_msg("%s", err ? err->message : "the event is there");
}

/* The run has begun, at that time before now, by a plan with these members besides. */
static void create_ago(int64_t ago_ms, const char *members)
{
	json_auto_t *plan = plan_with(members);
	struct event ev = { .kind = EV_RUN_CREATED };

	appended = 0;
	ev.at.ms = clock_utc_now().ms - ago_ms;
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	append(&ev);
}

static inline void create(const char *members)
{
	create_ago(0, members);
}

/* The same, and attempt 1 of its training is under way since then: submitted, or claimed too. */
static inline void create_under_way(int64_t ago_ms, bool claimed, const char *members)
{
	static const enum event_kind kinds[] = { EV_DRIVER_TOOK_OVER, EV_CACHE_CHECKED,
						 EV_ATTEMPT_INTENDED, EV_ATTEMPT_SUBMITTED,
						 EV_ATTEMPT_CLAIMED };

	create_ago(ago_ms, members);
	for (size_t i = 0; i < STK_LENGTH(kinds) - !claimed; i++) {
		struct event ev = { .kind = kinds[i] };

		ev.at.ms = clock_utc_now().ms - ago_ms;
		if (i == 0) {
			EVENT_SET_STR(&ev, host, "h");
			EVENT_SET(&ev, pid, 1);
			EVENT_SET(&ev, epoch, 1);
		} else if (i == 1) {
			EVENT_SET(&ev, verdict, CACHE_NONE);
		} else {
			EVENT_SET(&ev, phase, PHASE_TRAIN);
			EVENT_SET(&ev, attempt, 1);
			EVENT_SET_STR(&ev, job, "stk-r1-train-1");
		}
		if (i == 2 || i == 4)
			EVENT_SET_STR(&ev, nonce, "x");
		append(&ev);
	}
}

static inline void append_stop_ago(int64_t ago_ms)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	ev.at.ms = clock_utc_now().ms - ago_ms;
	EVENT_SET_STR(&ev, reason, "enough");
	append(&ev);
}

/* Returns what driver_run() does; `ret_exit` is -1 where it set none. */
static int drive(int *ret_exit, struct err **err)
{
	enum exit_code code = EXIT_DEFECT;
	int result = driver_run(journal, &options, &code, err);

	*ret_exit = result < 0 ? -1 : (int)code;
	return result;
}

static inline void drive_ends(enum exit_code code)
{
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	if (drive(&exit_code, &err) < 0)
		fail_msg("%s", err->message);
	assert_int_equal(exit_code, code);
	assert_int_equal(loops, 0);
}

static inline void drive_fails(enum exit_code code, const char *words, const char *hint)
{
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	assert_int_equal(drive(&exit_code, &err), -1);
	assert_string_equal(err->message, words);
	assert_int_equal(err->code, code);
	if (hint)
		assert_string_equal(err->hint, hint);
	assert_int_equal(loops, 0);
}

/* ---- events in the journal ---- */

/* The names of all events since the driver began, "a b c". */
static inline char *told(void)
{
	struct sb words = SB_INIT;
	const json_t *row;
	size_t i;

	json_array_foreach (recorded, i, row)
		sb_addf(&words, "%s%s", i ? " " : "", js_str(row, "event"));
	return sb_take(&words);
}

static inline void assert_told(const char *names)
{
	AUTO(auto_free) char *words = told();

	assert_string_equal(words ? words : "", names);
}

static inline size_t count_of(const char *event)
{
	size_t count = 0, i;
	const json_t *row;

	json_array_foreach (recorded, i, row)
		count += js_is(row, "event", event);
	return count;
}

/* The newest event of that name. */
static inline const json_t *newest_row(const char *event)
{
	for (size_t i = json_array_size(recorded); i-- > 0;)
		if (js_is(json_array_get(recorded, i), "event", event))
			return json_array_get(recorded, i);
	fail_msg("there is no %s", event);
	return NULL;
}

static inline const char *newest(const char *event, const char *member)
{
	const char *text = js_str(newest_row(event), member);

	return text ? text : "";
}

/* A number as it is; an instant in milliseconds. */
static inline int64_t newest_int(const char *event, const char *member)
{
	struct utc at;

	if (clock_utc_parse(newest(event, member), &at))
		return at.ms;
	return js_int(newest_row(event), member, INT64_MIN);
}

#endif
