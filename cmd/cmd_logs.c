/* logs: the output of an attempt's command, on one node or on all. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/follow/attempt_of.h"
#include "cmd/follow/follow.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/regex.h"
#include "jobs/base/text/tail.h"
#include "jobs/base/text/when.h"
#include "jobs/store/order.h"

#define LOG_CHUNK ((size_t)1 << 20)
/* The first guess at the bytes that hold the last lines of a log; four times as many from then on,
 * until there are enough lines. */
#define LAST_BYTES ((uint64_t)64 << 10)
/* Most lines of --tail: they are kept in memory, at most TAIL_LINE_MAX bytes each. */
#define LAST_LINES_MAX 100000

/* A line that --tail keeps until the log's end is known. */
struct kept_line {
	char *text;
	size_t len;
	uint64_t lost;
	struct utc at;
};

struct node_output {
	struct log_view *view;
	int node;
	struct tail tail;
	struct kept_line *last; /* a ring of view->last_count lines; NULL: lines are printed */
	size_t kept;            /* lines ever put into it */
};

struct log_view {
	struct follow follow; /* first: the turn gets this */
	const struct args *args;
	struct attempt_of of;
	struct node_output *nodes;
	size_t node_count;
	bool all_nodes;
	int64_t last_count; /* --tail; -1: all lines */
	struct utc since;   /* ms 0: all lines */
	struct regex *grep; /* NULL: all lines */
};

/* --- lines --- */

static void print_json_line(const struct node_output *log, const struct kept_line *line)
{
	const struct log_view *view = log->view;
	json_auto_t *object = json_object();
	char at[UTC_TEXT];

	js_put_str(object, "run", view->follow.run);
	js_put_str(object, "phase", flow_phase_names[view->of.phase]);
	js_put(object, "attempt", json_integer(view->of.attempt));
	js_put(object, "node", json_integer(log->node));
	if (line->at.ms > 0)
		js_put_str(object, "at", clock_utc_format(line->at, at));
	js_put(object, "line", js_text(line->text, line->len));
	if (line->lost)
		js_put(object, "cut_bytes", json_integer((json_int_t)line->lost));
	out_json(object);
}

/* Prints a line; marks it if its end was dropped. */
static void print_line(const struct node_output *log, const struct kept_line *line)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	char at[WHEN_TEXT], utc[UTC_TEXT];

	if (out_is_json()) {
		print_json_line(log, line);
		return;
	}
	if (log->view->all_nodes)
		sb_addf(&text, "[node %d] ", log->node);
	if (log->view->args->given[OPT_TIMESTAMPS])
		sb_addf(&text, "%s ",
			line->at.ms == 0  ? "-"
			: out_width() > 0 ? when_instant(line->at, clock_utc_now(), true, at)
					  : clock_utc_format(line->at, utc));
	sb_add(&text, line->text, line->len);
	if (line->lost)
		sb_addf(&text, " … (%llu more bytes)", (unsigned long long)line->lost);
	out_text(text.text, text.len);
}

static void keep_line(struct node_output *log, const struct kept_line *line)
{
	struct kept_line *slot;

	if (log->view->last_count == 0)
		return;
	slot = &log->last[log->kept++ % (size_t)log->view->last_count];
	free(slot->text);
	*slot = *line;
	slot->text = mem_copy_n(line->text, line->len);
}

static struct utc line_time(const struct node_output *log)
{
	const struct engine *engine = log->view->of.engine;

	if (!engine->ops->log_written)
		return (struct utc){ 0 };
	return engine->ops->log_written(log->view->of.engine, log->view->of.job,
					log->view->of.prefix, log->node, log->tail.line_at);
}

static void take_line(void *arg, const char *text, size_t len)
{
	struct node_output *log = arg;
	const struct log_view *view = log->view;
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	struct kept_line line = { .text = (char *)text, .len = len, .lost = log->tail.lost };

	if (is_agent_line(text, len))
		return; /* not output of the command */
	if (view->grep && !regex_find(view->grep, text, len, 0, spans))
		return;
	line.at = line_time(log);
	if (line.at.ms < view->since.ms)
		return;
	if (log->last)
		keep_line(log, &line);
	else
		print_line(log, &line);
}

/* Prints the lines that --tail has kept; those that follow are printed as they come. */
static void print_kept(struct node_output *log)
{
	size_t most = (size_t)log->view->last_count;
	size_t first = log->kept > most ? log->kept - most : 0;

	for (size_t i = first; i < log->kept; i++)
		print_line(log, &log->last[i % most]);
}

static void forget_kept(struct node_output *log)
{
	for (int64_t i = 0; log->last && i < log->view->last_count; i++)
		free(log->last[i].text);
	free(TAKE(log->last));
	log->kept = 0;
}

/* --- logs --- */

/* Reads a piece of a node's unread log; `*ret_more` is set if more is left. */
static int read_chunk(struct node_output *log, bool *ret_more, struct err **err)
{
	struct log_view *view = log->view;
	AUTO(sb_release) struct sb chunk = SB_INIT_MAX(LOG_CHUNK);
	uint64_t next = log->tail.offset;

	if (view->of.engine->ops->logs(view->of.engine, view->of.job, view->of.prefix, log->node,
				       &next, LOG_CHUNK, &chunk, err) < 0)
		return -1;
	tail_feed(&log->tail, chunk.text, chunk.len, take_line, log);
	log->tail.offset = next;
	*ret_more |= chunk.len == LOG_CHUNK;
	return 0;
}

static int read_up_to(struct node_output *log, uint64_t size, struct err **err)
{
	bool more = true;

	while (more && log->tail.offset < size) {
		more = false;
		if (read_chunk(log, &more, err) < 0)
			return -1;
	}
	return 0;
}

/* Reads the log from `from` on, up to `size`, and keeps its last lines. */
static int keep_last(struct node_output *log, uint64_t from, uint64_t size, struct err **err)
{
	forget_kept(log);
	log->last = mem_zero((size_t)log->view->last_count + 1, sizeof *log->last);
	tail_release(&log->tail);
	tail_init(&log->tail);
	if (from > 0)
		tail_skip(&log->tail, from);
	if (read_up_to(log, size, err) < 0)
		return -1;
	if (!log->view->args->given[OPT_FOLLOW])
		tail_end(&log->tail, take_line, log);
	return 0;
}

/* Prints the last lines of the log. Its end is read first, and more only if that is not enough. */
static int print_last(struct node_output *log, uint64_t size, struct err **err)
{
	uint64_t bytes = LAST_BYTES, from;

	do {
		from = size != UINT64_MAX && size > bytes && !log->view->grep ? size - bytes : 0;
		if (keep_last(log, from, size, err) < 0)
			return -1;
		bytes *= 4;
	} while (from > 0 && log->kept < (size_t)log->view->last_count);
	print_kept(log);
	forget_kept(log);
	return 0;
}

/* Prints the log of a node as it is now: a job may add lines faster than they are printed. */
static int print_log(struct node_output *log, struct err **err)
{
	struct log_view *view = log->view;
	uint64_t size = UINT64_MAX;

	if (view->of.engine->ops->log_size(view->of.engine, view->of.job, view->of.prefix,
					   log->node, &size, err) < 0)
		return -1;
	/* The size of a log that only the service has is unknown. */
	size = size == 0 ? UINT64_MAX : size;
	if (view->last_count >= 0)
		return print_last(log, size, err);
	if (read_up_to(log, size, err) < 0)
		return -1;
	if (!view->args->given[OPT_FOLLOW])
		tail_end(&log->tail, take_line, log);
	return 0;
}

static int print_logs(struct log_view *view, struct err **err)
{
	for (size_t i = 0; view->of.job[0] && i < view->node_count; i++)
		if (print_log(&view->nodes[i], err) < 0)
			return -1;
	return 0;
}

/* --- the attempt --- */

/* Prints what is left of the attempt before. */
static void leave_attempt(struct log_view *view)
{
	for (size_t i = 0; i < view->node_count; i++) {
		struct node_output *log = &view->nodes[i];

		tail_end(&log->tail, take_line, log);
		tail_release(&log->tail);
		tail_init(&log->tail);
	}
}

/* Finds the newest attempt, or the requested one. */
static int find_attempt(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct log_view *view = arg;

	(void)err;
	view->follow.next = js_int(row, "seq", view->follow.next) + 1;
	if (!ev)
		return 0;
	if (ev->kind == EV_RUN_ENDED)
		view->follow.ended = true;
	if (attempt_of_is_wanted(&view->of, ev))
		leave_attempt(view);
	attempt_of_add(&view->of, ev);
	return 0;
}

static int logs_turn(struct follow *follow)
{
	struct log_view *view = (struct log_view *)(void *)follow;

	for (int pass = 0; pass < 2; pass++) {
		/* The rest of an attempt comes before the next attempt. */
		for (size_t i = 0; view->of.job[0] && i < view->node_count; i++)
			if (read_chunk(&view->nodes[i], &follow->more, follow->err) < 0)
				return -1;
		if (follow->more)
			return 0;
		if (pass == 0 && journal_read(follow->journal, follow->run, follow->next,
					      find_attempt, view, follow->err) < 0)
			return -1;
	}
	return 0;
}

/* Chooses the nodes whose logs are printed. */
static int choose_nodes(struct log_view *view, int64_t node, struct err **err)
{
	if (attempt_of_check_node(&view->of, node, err) < 0)
		return -1;
	view->node_count = view->all_nodes ? (size_t)view->of.nodes : 1;
	view->nodes = mem_zero(view->node_count, sizeof *view->nodes);
	for (size_t i = 0; i < view->node_count; i++) {
		view->nodes[i].view = view;
		view->nodes[i].node = view->all_nodes ? (int)i : (int)node;
		tail_init(&view->nodes[i].tail);
	}
	return 0;
}

/* A log whose lines have no times would seem to have none since then. */
static int check_times(struct log_view *view, struct err **err)
{
	struct utc at = { 0 };

	for (size_t i = 0; view->of.job[0] && i < view->node_count && at.ms == 0; i++) {
		AUTO(sb_release) struct sb first = SB_INIT_MAX(LOG_CHUNK);
		uint64_t offset = 0;

		if (view->of.engine->ops->logs(view->of.engine, view->of.job, view->of.prefix,
					       view->nodes[i].node, &offset, LOG_CHUNK, &first,
					       err) < 0)
			return -1;
		if (first.len == 0)
			return 0; /* nothing is written yet */
		at = line_time(&view->nodes[i]);
	}
	if (at.ms > 0 || !view->of.job[0])
		return 0;
	err_set(err, EXIT_REFUSED, "the times of the lines of job %s are not known", view->of.job);
	return err_hint(err, "leave out --%s; --tail N prints the last lines",
			view->since.ms > 0 ? "since" : "timestamps");
}

static void log_view_release(struct log_view *view)
{
	for (size_t i = 0; i < view->node_count; i++) {
		forget_kept(&view->nodes[i]);
		tail_release(&view->nodes[i].tail);
	}
	free(view->nodes);
	regex_freep(&view->grep);
	attempt_of_release(&view->of);
}

/* Reads the options that choose lines. */
static int read_options(struct log_view *view, struct err **err)
{
	const struct args *args = view->args;

	view->all_nodes = args->given[OPT_ALL_NODES];
	if (view->all_nodes && args->given[OPT_NODE]) {
		err_set(err, EXIT_USAGE, "--node and --all-nodes exclude each other");
		return err_hint(err, "give one of them");
	}
	if (attempt_of_ask(&view->of, args, view->follow.run, err) < 0 ||
	    args_number(args, OPT_TAIL, -1, &view->last_count, err) < 0 ||
	    args_moment(args, OPT_SINCE, clock_utc_now(), &view->since, err) < 0)
		return -1;
	if (view->last_count > LAST_LINES_MAX) {
		err_set(err, EXIT_USAGE, "--tail takes at most %d lines", LAST_LINES_MAX);
		return err_hint(err, "leave it out, and pipe the output into tail");
	}
	if (args->given[OPT_GREP] && regex_compile(args->value[OPT_GREP], &view->grep, err) < 0) {
		(*err)->code = EXIT_USAGE;
		err_wrap(err, "--grep");
		return err_hint(err, "it is a regular expression of PCRE2: \\( is a parenthesis");
	}
	return 0;
}

int cmd_logs(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX] = "";
	AUTO(log_view_release)
	struct log_view view = { .follow = { .run = run, .next = 1, .err = err, .turn = logs_turn },
				 .args = args };
	int64_t node;

	if (read_options(&view, err) < 0 || args_number(args, OPT_NODE, 0, &node, err) < 0 ||
	    cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	view.follow.journal = journal;
	if (journal_read(journal, run, 1, find_attempt, &view, err) < 0)
		return -1;
	if (!view.of.job[0] && !args->given[OPT_FOLLOW])
		return attempt_of_absent(&view.of, err);
	if (choose_nodes(&view, node, err) < 0 || attempt_of_open(&view.of, err) < 0)
		return -1;
	if ((args->given[OPT_SINCE] || args->given[OPT_TIMESTAMPS]) && check_times(&view, err) < 0)
		return -1;
	if (!args->given[OPT_FOLLOW] || view.last_count >= 0)
		if (print_logs(&view, err) < 0)
			return -1;
	if (!args->given[OPT_FOLLOW])
		return EXIT_DONE;
	if (follow_run(&view.follow, err) < 0)
		return -1;
	for (size_t i = 0; i < view.node_count; i++)
		tail_end(&view.nodes[i].tail, take_line, &view.nodes[i]);
	return EXIT_DONE;
}
