/* list: all runs, filtered and sorted. */
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/list/list_text.h"
#include "cmd/list/run_list_more.h"
#include "cmd/screen/live.h"
#include "cmd/screen/out.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/columns.h"
#include "jobs/engine/engine.h"
#include "jobs/report/screen.h"

#define WATCH_MS        2000
#define WATCH_REMOTE_MS 10000 /* if each look is many requests to a service */

/* ---- filters and options ---- */

static const char *const state_words[] = { "running",   "waiting", "succeeded",
					   "failed",    "refused", "stopped",
					   "no driver", "damaged", "unreadable" };

enum list_key { BY_AGE, BY_NAME, BY_STATE, BY_COST, BY_DURATION, BY_SIZE, LIST_KEYS };
static const char *const key_words[LIST_KEYS] = {
	"age", "name", "state", "cost", "duration", "size"
};

struct list_query {
	bool states[STK_LENGTH(state_words)]; /* wanted; `any_state`: all are */
	bool any_state;
	const char *name, *engine; /* NULL: all */
	struct utc since;          /* ms 0: all */
	enum list_key key;
	bool reverse;
	int64_t limit; /* 0: all */
	bool sizes, live, diff;
	enum run_view_trust trust;
};

static void join_words(const char *const *words, size_t count, struct sb *ret)
{
	for (size_t i = 0; i < count; i++)
		sb_addf(ret, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", words[i]);
}

/* True if the word is this state; "no-driver" needs no quotes in a shell. */
static bool is_state(const char *state, const char *word, size_t len)
{
	if (strlen(state) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (word[i] != state[i] && !(word[i] == '-' && state[i] == ' '))
			return false;
	return true;
}

/* True if every word is a state. */
static bool are_states(const char *text)
{
	for (const char *word = text; word;) {
		size_t len = strcspn(word, ","), i = 0;

		while (i < STK_LENGTH(state_words) && !is_state(state_words[i], word, len))
			i++;
		if (i == STK_LENGTH(state_words))
			return false;
		word = word[len] ? word + len + 1 : NULL;
	}
	return true;
}

/* True if --state is meant as --status: `list --state failed` where no such place is. */
static bool state_is_filter(const struct args *args)
{
	const char *state = args->value[OPT_STATE];

	return state && are_states(state) && access(state, F_OK) < 0;
}

/* Returns the place of the runs; NULL: the usual one. */
static const char *place(const struct args *args)
{
	return state_is_filter(args) ? NULL : args->value[OPT_STATE];
}

static int parse_states(const char *text, struct list_query *query, struct err **err)
{
	AUTO(sb_release) struct sb all = SB_INIT;

	query->any_state = !text;
	for (const char *word = text; word;) {
		size_t len = strcspn(word, ","), i = 0;

		while (i < STK_LENGTH(state_words) && !is_state(state_words[i], word, len))
			i++;
		if (i == STK_LENGTH(state_words)) {
			join_words(state_words, STK_LENGTH(state_words), &all);
			err_set(err, EXIT_USAGE, "--status: no run is ever '%.*s'", (int)len, word);
			return err_hint(err, "give %s; several separated by commas", all.text);
		}
		query->states[i] = true;
		word = word[len] ? word + len + 1 : NULL;
	}
	return 0;
}

static int parse_sort(const char *text, struct list_query *query, struct err **err)
{
	AUTO(sb_release) struct sb all = SB_INIT;
	const char *word = text;

	if (!text)
		return 0;
	if (*word == '-') {
		query->reverse = true;
		word++;
	}
	for (int key = 0; key < LIST_KEYS; key++)
		if (strcmp(word, key_words[key]) == 0) {
			query->key = (enum list_key)key;
			return 0;
		}
	join_words(key_words, LIST_KEYS, &all);
	err_set(err, EXIT_USAGE, "--sort: runs cannot be sorted by '%s'", word);
	return err_hint(err, "give %s, with a '-' before it for the reverse", all.text);
}

static int parse_query(const struct args *args, struct list_query *query, struct err **err)
{
	*query = (struct list_query){
		.name = args->value[OPT_NAME],
		.engine = args->value[OPT_ENGINE],
		.diff = args->given[OPT_DIFF],
		.live = args->given[OPT_LIVE],
		.trust = out_is_verbose() ? RUN_VIEW_PROVES : RUN_VIEW_TRUSTS,
	};
	const char *states =
		state_is_filter(args) ? args->value[OPT_STATE] : args->value[OPT_STATUS];

	if (parse_states(states, query, err) < 0 ||
	    parse_sort(args->value[OPT_SORT], query, err) < 0 ||
	    args_moment(args, OPT_SINCE, clock_utc_now(), &query->since, err) < 0 ||
	    args_number(args, OPT_LIMIT, 0, &query->limit, err) < 0)
		return -1;
	query->sizes = args->given[OPT_SIZE] || query->key == BY_SIZE;
	if (args->given[OPT_LIMIT] && query->limit == 0) {
		err_set(err, EXIT_USAGE, "--limit 0 leaves no run");
		return err_hint(err, "give the number of runs, or omit --limit");
	}
	if (query->engine && !engine_find(query->engine)) {
		err_set(err, EXIT_USAGE, "--engine: there is no engine '%s'", query->engine);
		return err_hint(err, "'stoker help engine' lists the engines");
	}
	return 0;
}

/* The filters are no filter of --prune, and a mistake there would cost runs. */
static int check_options(const struct args *args, struct err **err)
{
	static const enum opt_id apart[] = {
		OPT_STATUS, OPT_NAME,  OPT_SINCE, OPT_ENGINE, OPT_SORT,
		OPT_LIMIT,  OPT_WATCH, OPT_DIFF,  OPT_LIVE,   OPT_SIZE
	};
	for (size_t i = 0; args->given[OPT_PRUNE] && i < STK_LENGTH(apart); i++)
		if (args->given[apart[i]]) {
			err_set(err, EXIT_USAGE, "--prune and --%s do not go together",
				args_opt_rows[apart[i]].name);
			return err_hint(err, "--prune forgets all runs that ended longer ago; "
					     "'stoker rm RUN…' forgets chosen ones");
		}
	return 0;
}

static int check_watch(const struct args *args, struct err **err)
{
	if (!args->given[OPT_WATCH])
		return 0;
	if (out_draws() && out_width() > 0)
		return 0;
	err_set(err, EXIT_USAGE, "--watch redraws a terminal, and this output is none%s",
		out_is_json() ? ": --json" : "");
	return err_hint(err, "omit --watch, -q, -v and --json, or repeat 'stoker list' yourself");
}

/* ---- filters and order ---- */

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static bool is_wanted(const struct listed *row, const void *arg)
{
	const struct list_query *query = arg;
	const char *name = row->head.name;
	bool state = query->any_state;

	for (size_t i = 0; i < STK_LENGTH(state_words); i++)
		state |= query->states[i] && row->word && strcmp(row->word, state_words[i]) == 0;
	return state && (!query->name || (name && fnmatch(query->name, name, 0) == 0)) &&
	       (!query->engine || compare_text(row->head.engine, query->engine) == 0) &&
	       (query->since.ms == 0 || row->created.ms >= query->since.ms);
}

struct list_order {
	const struct list_query *query;
	struct utc now;
};

/* The natural order of each key: names from A, figures from the largest. */
static int compare(const void *x, const void *y, void *arg)
{
	const struct listed *a = x, *b = y;
	const struct list_order *order = arg;
	int64_t of_a = 0, of_b = 0;
	int result = 0;

	switch (order->query->key) {
	case BY_NAME:
		result = compare_text(a->head.name, b->head.name);
		break;
	case BY_STATE:
		result = compare_text(a->word, b->word);
		break;
	case BY_COST:
		result = (a->cost < b->cost) - (a->cost > b->cost);
		break;
	case BY_DURATION:
		of_a = run_list_duration(a, order->now);
		of_b = run_list_duration(b, order->now);
		break;
	case BY_SIZE:
		of_a = a->size;
		of_b = b->size;
		break;
	case BY_AGE:
	case LIST_KEYS:
		break;
	}
	if (result == 0)
		result = (of_a < of_b) - (of_a > of_b);
	return order->query->reverse ? -result : result;
}

/* Runs that the key does not tell apart stay newest first. */
static void sort(const struct list_query *query, struct run_list *list, struct utc now)
{
	struct list_order order = { query, now };
	size_t n = list->count;

	if (query->key != BY_AGE && n > 1)
		run_list_sort(list, compare, &order);
	else if (query->reverse)
		for (size_t i = 0; i < n / 2; i++) {
			struct listed row = list->rows[i];

			list->rows[i] = list->rows[n - 1 - i];
			list->rows[n - 1 - i] = row;
		}
}

/* ---- one listing ---- */

/* Reads what is asked for; `ret_diff` is NULL unless --diff is given. */
static int look(struct journal *journal, const struct list_query *query, struct run_list *list,
		json_t **ret_diff, struct err **err)
{
	*ret_diff = NULL;
	if (run_list_read(journal, query->trust, list, err) < 0)
		return -1;
	run_list_filter(list, is_wanted, query);
	if (query->key == BY_SIZE)
		run_list_measure(journal, list->rows, list->count);
	sort(query, list, clock_utc_now());
	if (query->limit > 0 && (size_t)query->limit < list->count)
		run_list_cut(list, (size_t)query->limit);
	if (query->sizes && query->key != BY_SIZE)
		run_list_measure(journal, list->rows, list->count);
	for (size_t i = 0; out_is_json() && i < list->count; i++)
		if (run_list_whole(journal, &list->rows[i], err) < 0)
			return -1;
	if (query->live)
		run_list_ask(journal, list->rows, list->count);
	return query->diff ? run_list_differ(journal, list->rows, list->count, ret_diff, err) : 0;
}

static void print_json(const struct run_list *list, const json_t *diff)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct listed *row = &list->rows[i];
		json_t *settings = diff ? json_object() : NULL, *values;
		const char *path;

		if (row->size >= 0)
			js_put(row->status, "size_bytes", json_integer(row->size));
		json_object_foreach ((json_t *)diff, path, values)
			if (!json_is_null(json_array_get(values, i)))
				json_object_set(settings, path, json_array_get(values, i));
		js_put(row->status, "settings", settings);
		out_json(row->status);
	}
}

static void print_text(const struct list_query *query, const struct run_list *list,
		       const json_t *diff)
{
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb lines = SB_INIT_MAX(SIZE_MAX / 2);
	size_t width = out_width();
	struct list_text_options options = { .terminal = width > 0,
					     .sizes = query->sizes,
					     .live = query->live,
					     .diff = diff,
					     .now = clock_utc_now() };

	if (list->count == 0)
		return;
	list_text_make(list->rows, list->count, &options, &table);
	/* With -v nothing is left out, even if it takes two lines. */
	table_print(&table, out_is_verbose() ? 0 : width, SIZE_MAX, out_style(), &lines);
	out_finished(lines.text);
}

static size_t count_alone(const struct run_list *list)
{
	size_t alone = 0;

	for (size_t i = 0; i < list->count; i++)
		alone += run_list_is_alone(&list->rows[i]);
	return alone;
}

static void print_errors(const struct run_list *list)
{
	json_t *error;
	size_t i;

	json_array_foreach (list->errors, i, error) {
		out_error_line(js_str(error, "message"));
		if (js_str(error, "hint"))
			out_hint("%s", js_str(error, "hint"));
	}
}

static int print_once(struct journal *journal, const struct list_query *query, struct err **err)
{
	AUTO(run_list_release) struct run_list list = { 0 };
	json_auto_t *diff = NULL;
	size_t alone;

	if (look(journal, query, &list, &diff, err) < 0)
		return -1;
	out_bulk(true);
	if (out_is_json())
		print_json(&list, diff);
	else
		print_text(query, &list, diff);
	out_bulk(false);
	print_errors(&list);
	if (list.total == 0 && !list.unfound)
		out_note("no runs in %s", journal_url(journal));
	else if (list.count == 0 && !list.unfound)
		out_note("none of the %zu runs is like that", list.total);
	if (query->diff && list.count > 1 && json_object_size(diff) == 0)
		out_note("the settings of these %zu runs are the same", list.count);
	alone = count_alone(&list);
	if (alone > 0)
		out_note("%zu of them have no driver: 'stoker resume --all' continues %s", alone,
			 alone == 1 ? "it" : "them");
	*err = TAKE(list.unfound);
	return *err ? -1 : list.worst;
}

/* ---- --watch ---- */

struct list_watch {
	const struct list_query *query;
	const struct args *args;
	struct loop *loop;
	struct run_list list;
	json_t *diff;
	struct err *err; /* the last look failed */
	bool remote;
};

/* The journal is opened anew each time: it may be made, removed or mended meanwhile. */
static void look_again(void *arg)
{
	struct list_watch *watch = arg;
	AUTO(journal_freep) struct journal *journal = NULL;

	run_list_release(&watch->list);
	watch->list = (struct run_list){ 0 };
	json_decref(TAKE(watch->diff));
	err_freep(&watch->err);
	if (journal_open(place(watch->args), JOURNAL_READ, &journal, &watch->err) == 0)
		(void)!look(journal, watch->query, &watch->list, &watch->diff, &watch->err);
	watch->remote = journal && journal_is_remote(journal);
	loop_after(watch->loop, watch->remote ? WATCH_REMOTE_MS : WATCH_MS, look_again, watch);
}

static void render(void *arg, const struct screen_frame *frame, struct sb *out)
{
	struct list_watch *watch = arg;
	AUTO(table_release) struct table table = { 0 };
	size_t room = frame->height > 2 ? frame->height - 2 : 1; /* the title, and what is left */
	struct list_text_options options = { .terminal = true,
					     .sizes = watch->query->sizes,
					     .live = watch->query->live,
					     .diff = watch->diff,
					     .now = frame->now };
	AUTO(auto_free) char *line = NULL;

	list_text_make(watch->list.rows, watch->list.count, &options, &table);
	table_print(&table, frame->width, room, &frame->style, out);
	if (watch->err)
		line = err_format(watch->err);
	else if (watch->list.count > room)
		line = mem_format("and %zu more", watch->list.count - room);
	else
		line = mem_format("%zu run%s", watch->list.count,
				  watch->list.count == 1 ? "" : "s");
	sb_adds(out, text_style_on(&frame->style, MARK_FAINT));
	columns_fit(out, line, strlen(line), frame->width, frame->style.utf8);
	sb_adds(out, text_style_off(&frame->style));
}

static void on_signal(void *arg)
{
	loop_quit(arg);
}

static void watch_release(struct list_watch *watch)
{
	run_list_release(&watch->list);
	json_decref(watch->diff);
	err_freep(&watch->err);
}

static int watch_runs(const struct args *args, const struct list_query *query, struct err **err)
{
	AUTO(watch_release) struct list_watch watch = { .query = query, .args = args };
	AUTO(loop_freep) struct loop *loop = NULL;
	struct live *live = NULL;
	int result;

	if (loop_new(&loop, err) < 0)
		return -1;
	watch.loop = loop;
	loop_on_signal(loop, SIGINT, on_signal, loop);
	loop_on_signal(loop, SIGTERM, on_signal, loop);
	look_again(&watch);
	/* A wrong question is no state of affairs. */
	if (watch.err && watch.err->code == EXIT_USAGE) {
		*err = TAKE(watch.err);
		return -1;
	}
	live_open_with(&live, loop, render, &watch);
	result = loop_run(loop, err);
	live_close(&live);
	return result < 0 ? -1 : EXIT_DONE;
}

int cmd_list(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	struct list_query query;

	if (check_options(args, err) < 0)
		return -1;
	if (args->given[OPT_PRUNE])
		return cmd_prune(args, err);
	if (args->given[OPT_DRY_RUN] || args->given[OPT_WITH_CHECKPOINTS]) {
		err_set(err, EXIT_USAGE, "%s needs --prune",
			args->given[OPT_DRY_RUN] ? "--dry-run" : "--with-checkpoints");
		return err_hint(err, "give an age: stoker list --prune 30d --dry-run");
	}
	if (parse_query(args, &query, err) < 0 || check_watch(args, err) < 0)
		return -1;
	if (args->given[OPT_WATCH])
		return watch_runs(args, &query, err);
	if (journal_open(place(args), JOURNAL_READ, &journal, err) < 0)
		return -1;
	return print_once(journal, &query, err);
}
