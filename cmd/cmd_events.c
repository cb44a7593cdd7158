/* events, logs: output of a run's journal and of its jobs. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/follow.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/engine/engine.h"
#include "jobs/run/attempt/tail.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"
#include "jobs/store/order.h"

#define LOG_CHUNK ((size_t)1 << 20)

static int print_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct follow *follow = arg;

	(void)err;
	follow->next = js_int(row, "seq", follow->next) + 1;
	if (ev && ev->kind == EV_RUN_ENDED)
		follow->ended = true;
	out_json(row);
	return 0;
}

static int events_turn(struct follow *follow)
{
	return journal_read(follow->journal, follow->run, follow->next, print_event, follow,
			    follow->err);
}

int cmd_events(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	struct follow follow = { .run = run, .next = 1, .err = err, .turn = events_turn };

	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	follow.journal = journal;
	return args->given[OPT_FOLLOW] ? follow_run(&follow, err) : events_turn(&follow);
}

struct log_view {
	struct follow follow; /* first: the turn gets this */
	const struct args *args;
	json_t *plan;
	struct engine *engine;
	enum phase phase;
	int64_t attempt, node;
	char job[128];
	struct tail tail;
};

/* Prints a line; marks it if its end was dropped. */
static void print_text_line(const char *line, size_t len, uint64_t lost)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	sb_add(&text, line, len);
	if (lost)
		sb_addf(&text, " … (%llu more bytes)", (unsigned long long)lost);
	out_text(text.text, text.len);
}

static void print_log_line(void *arg, const char *line, size_t len)
{
	const struct log_view *view = arg;
	json_auto_t *object = NULL;

	if (is_agent_line(line, len))
		return; /* not output of the command */
	if (!out_is_json()) {
		print_text_line(line, len, view->tail.lost);
		return;
	}
	object = json_object();
	js_put_str(object, "run", view->follow.run);
	js_put_str(object, "phase", flow_phase_names[view->phase]);
	js_put(object, "attempt", json_integer(view->attempt));
	js_put(object, "node", json_integer(view->node));
	js_put(object, "line", js_text(line, len));
	if (view->tail.lost)
		js_put(object, "cut", json_integer((json_int_t)view->tail.lost));
	out_json(object);
}

/* Finds the newest attempt, or the requested one. */
static int find_attempt(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct log_view *view = arg;
	const char *phase = view->args->value[OPT_PHASE];

	(void)err;
	view->follow.next = js_int(row, "seq", view->follow.next) + 1;
	if (!ev)
		return 0;
	if (ev->kind == EV_RUN_CREATED)
		view->plan = json_incref(ev->plan);
	if (ev->kind == EV_RUN_ENDED)
		view->follow.ended = true;
	if (ev->kind != EV_ATTEMPT_INTENDED ||
	    (phase && strcmp(phase, flow_phase_names[ev->phase]) != 0))
		return 0;
	if (view->args->given[OPT_ATTEMPT] && ev->attempt != view->attempt)
		return 0;
	tail_end(&view->tail, print_log_line, view);
	view->phase = ev->phase;
	view->attempt = ev->attempt;
	snprintf(view->job, sizeof view->job, "%s", ev->job);
	view->tail.offset = 0;
	return 0;
}

static char *log_prefix(const struct log_view *view)
{
	return mem_format("runs/%s/%s-%lld/", view->follow.run, flow_phase_names[view->phase],
			  (long long)view->attempt);
}

/* Prints a piece of the current attempt's unread log; `*ret_more` is set if more is left. */
static int print_chunk(struct log_view *view, bool *ret_more, struct err **err)
{
	AUTO(sb_release) struct sb chunk = SB_INIT_MAX(LOG_CHUNK);
	AUTO(auto_free) char *prefix = NULL;

	*ret_more = false;
	if (!view->job[0])
		return 0;
	prefix = log_prefix(view);
	if (view->engine->ops->logs(view->engine, view->job, prefix, (int)view->node,
				    &view->tail.offset, LOG_CHUNK, &chunk, err) < 0)
		return -1;
	tail_feed(&view->tail, chunk.text, chunk.len, print_log_line, view);
	*ret_more = chunk.len == LOG_CHUNK;
	return 0;
}

/* Prints the log as it is now: a job may add lines faster than they are printed. */
static int print_log(struct log_view *view, struct err **err)
{
	AUTO(auto_free) char *prefix = log_prefix(view);
	uint64_t size = UINT64_MAX;
	bool more = true;

	if (view->engine->ops->log_size(view->engine, view->job, prefix, (int)view->node, &size,
					err) < 0)
		return -1;
	/* The size of a log that only the service has is unknown. */
	size = size == 0 ? UINT64_MAX : size;
	while (more && view->tail.offset < size)
		if (print_chunk(view, &more, err) < 0)
			return -1;
	return 0;
}

static int logs_turn(struct follow *follow)
{
	struct log_view *view = (struct log_view *)(void *)follow;

	/* The rest of an attempt comes before the next attempt. */
	if (print_chunk(view, &follow->more, follow->err) < 0)
		return -1;
	if (follow->more)
		return 0;
	if (journal_read(follow->journal, follow->run, follow->next, find_attempt, view,
			 follow->err) < 0)
		return -1;
	return print_chunk(view, &follow->more, follow->err);
}

static int open_log_view(struct log_view *view, struct err **err)
{
	const struct engine_ops *ops;
	struct engine_where where;

	if (journal_read(view->follow.journal, view->follow.run, 1, find_attempt, view, err) < 0)
		return -1;
	if (!view->job[0] && !view->args->given[OPT_FOLLOW]) {
		const char *phase = view->args->value[OPT_PHASE];

		if (view->args->given[OPT_ATTEMPT])
			err_set(err, EXIT_USAGE, "run %s has no attempt %lld%s%s", view->follow.run,
				(long long)view->attempt, phase ? " of " : "", phase ? phase : "");
		else
			err_set(err, EXIT_USAGE, "run %s has no attempt%s%s yet", view->follow.run,
				phase ? " of " : "", phase ? phase : "");
		return err_hint(err, "'stoker status %s' shows its attempts", view->follow.run);
	}
	ops = engine_find(js_str(view->plan, "engine"));
	if (!ops)
		return err_set(err, EXIT_REFUSED, "engine '%s' is not part of this version",
			       js_str(view->plan, "engine"));
	if (view->node >= js_int(view->plan, "nodes", 1)) {
		err_set(err, EXIT_USAGE, "run %s has no node %lld", view->follow.run,
			(long long)view->node);
		return err_hint(err, "nodes are counted from 0");
	}
	where = (struct engine_where){ .workspace = js_str(view->plan, "workspace"),
				       .plan = view->plan };
	return aws_account_enter_region(view->plan, err) < 0
		       ? -1
		       : ops->open(&where, &view->engine, err);
}

static void log_view_release(struct log_view *view)
{
	if (view->engine)
		view->engine->ops->close(view->engine);
	json_decref(view->plan);
	tail_release(&view->tail);
}

int cmd_logs(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	AUTO(log_view_release)
	struct log_view view = { .follow = { .run = run, .next = 1, .err = err, .turn = logs_turn },
				 .args = args };

	tail_init(&view.tail);
	if (args_number(args, OPT_ATTEMPT, 0, &view.attempt, err) < 0 ||
	    args_number(args, OPT_NODE, 0, &view.node, err) < 0 ||
	    cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	view.follow.journal = journal;
	if (open_log_view(&view, err) < 0)
		return -1;
	if (args->given[OPT_FOLLOW] ? follow_run(&view.follow, err) < 0 : print_log(&view, err) < 0)
		return -1;
	tail_end(&view.tail, print_log_line, &view);
	return EXIT_DONE;
}
