/* Columns of a list beyond the state of runs: see run_list_more.h. */
#include "cmd/list/run_list_more.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/parallel_for.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/engine/engine.h"
#include "jobs/run/plan/aws_account.h"

static int take_plan(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	json_t **plan = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED)
		*plan = json_incref(ev->plan);
	return 1;
}

/* Returns the plan of the run, a new reference; NULL if it cannot be read. */
static json_t *plan_of(struct journal *journal, const char *run)
{
	AUTO(err_freep) struct err *unreadable = NULL;
	json_t *plan = NULL;

	(void)!journal_read(journal, run, 1, take_plan, &plan, &unreadable);
	return plan;
}

/* ---- sizes ---- */

/* Adds the bytes below a folder; a folder that is not there holds none. */
static void add_size(const char *root, const char *run, int64_t *sum)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", root, run);
	AUTO(err_freep) struct err *unreadable = NULL;
	uint64_t files = 0, bytes = 0;

	if (fs_measure(folder, &files, &bytes, &unreadable) == 0)
		*sum += (int64_t)bytes;
}

void run_list_measure(struct journal *journal, struct listed *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_auto_t *plan = plan_of(journal, rows[i].run);
		const char *workspace = js_str(plan, "workspace");

		if (!workspace || workspace[0] != '/')
			continue;
		rows[i].size = 0;
		add_size(journal_dir(journal), rows[i].run, &rows[i].size);
		if (strcmp(workspace, journal_dir(journal)) != 0)
			add_size(workspace, rows[i].run, &rows[i].size);
	}
}

/* ---- engines ---- */

/* A question to the engine of a run. */
struct run_list_question {
	struct listed *row;
	json_t *plan;
	struct engine *engine; /* NULL: it could not be opened */
	char *job, *prefix;
	struct engine_status status;
	struct err *err;
	int answer;
};

struct run_list_questions {
	struct run_list_question *list;
	size_t count;
};

static void questions_release(struct run_list_questions *questions)
{
	for (size_t i = 0; i < questions->count; i++) {
		struct run_list_question *q = &questions->list[i];

		if (q->engine)
			q->engine->ops->close(q->engine);
		json_decref(q->plan);
		free(q->job);
		free(q->prefix);
		err_freep(&q->err);
	}
	free(questions->list);
}

/* Returns the attempt that the journal shows as under way; NULL if there is none. */
static const json_t *open_attempt(const json_t *status)
{
	const json_t *attempts = json_object_get(status, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);

	return last && !js_is(last, "state", "ended") && js_str(last, "job") ? last : NULL;
}

static int open_engine(struct run_list_question *q)
{
	const char *name = js_str(q->plan, "engine");
	const struct engine_ops *ops = engine_find(name);
	struct engine_where where = { .workspace = js_str(q->plan, "workspace"), .plan = q->plan };

	if (!ops)
		return err_set(&q->err, EXIT_REFUSED, "engine '%s' is not part of this version",
			       name ? name : "");
	return aws_account_enter_region(q->plan, &q->err) < 0
		       ? -1
		       : ops->open(&where, &q->engine, &q->err);
}

/* Adds the question about a run, if an attempt of it is under way. */
static void add_question(struct journal *journal, struct listed *row,
			 struct run_list_questions *ret)
{
	AUTO(err_freep) struct err *unreadable = NULL;
	json_auto_t *status = NULL;
	struct run_list_question *q;
	const json_t *attempt;

	if (row->is_damaged || row->has_ended ||
	    cmd_run_view_as(journal, row->run, RUN_VIEW_TRUSTS, true, &status, &unreadable) < 0)
		return;
	attempt = open_attempt(status);
	if (!attempt)
		return;
	ret->list = mem_room(ret->list, ret->count, sizeof *ret->list);
	q = &ret->list[ret->count++];
	*q = (struct run_list_question){ .row = row, .answer = -1 };
	q->job = mem_copy(js_str(attempt, "job"));
	q->prefix = mem_format("runs/%s/%s-%lld/", row->run, js_str(attempt, "phase"),
			       (long long)js_int(attempt, "attempt", 0));
	q->plan = plan_of(journal, row->run);
	(void)!open_engine(q);
}

static void ask(struct parallel_for *loop, void *arg)
{
	struct run_list_questions *questions = arg;
	size_t first, end;

	while (parallel_for_take(loop, &first, &end))
		for (size_t i = first; i < end; i++) {
			struct run_list_question *q = &questions->list[i];

			if (q->engine)
				q->answer = q->engine->ops->describe(q->engine, q->job, q->prefix,
								     &q->status, &q->err);
		}
}

/* Returns a state in the words of `status --json`. */
static const char *word_of(enum engine_state state)
{
	switch (state) {
	case ENGINE_QUEUED:
		return "queued";
	case ENGINE_STARTING:
		return "starting";
	case ENGINE_RUNNING:
		return "running";
	case ENGINE_STOPPING:
		return "stopping";
	case ENGINE_ENDED:
		return "ended";
	case ENGINE_UNKNOWN:
		break;
	}
	return "not seen";
}

static void put_answer(const struct run_list_question *q)
{
	json_t *live = json_object();

	js_put_str(live, "job", q->job);
	if (q->answer >= 0) {
		js_put_str(live, "state", word_of(q->status.state));
		if (q->status.reason[0])
			js_put_str(live, "reason", q->status.reason);
		if (q->status.state == ENGINE_ENDED && q->status.exit_known)
			js_put(live, "exit", json_integer(q->status.exit));
	} else {
		js_put_str(live, "error", q->err ? q->err->message : "no answer");
		js_put_str(live, "hint", q->err ? q->err->hint : NULL);
	}
	js_put(q->row->status, "live", live);
}

void run_list_ask(struct journal *journal, struct listed *rows, size_t count)
{
	AUTO(questions_release) struct run_list_questions questions = { 0 };

	for (size_t i = 0; i < count; i++)
		add_question(journal, &rows[i], &questions);
	parallel_for(questions.count, 1, ask, &questions);
	for (size_t i = 0; i < questions.count; i++)
		put_answer(&questions.list[i]);
}

/* ---- settings ---- */

/* Notes the value of a setting of row `at` of `count`. */
static void note(json_t *all, const char *path, json_t *value, size_t at, size_t count)
{
	json_t *values = json_object_get(all, path);

	if (!values) {
		values = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(values, json_null());
		json_object_set_new(all, path, values);
	}
	json_array_set(values, at, value);
}

/* Settings are the leaves of the spec; a list is one setting. */
static void note_all(json_t *all, const char *path, json_t *value, size_t at, size_t count)
{
	const char *name;
	json_t *member;

	if (!json_is_object(value)) {
		note(all, path, value, at, count);
		return;
	}
	json_object_foreach (value, name, member) {
		AUTO(auto_free) char *below = mem_format("%s%s%s", path, *path ? "." : "", name);

		note_all(all, below, member, at, count);
	}
}

static bool is_equal(const json_t *values)
{
	for (size_t i = 1; i < json_array_size(values); i++)
		if (!json_equal(json_array_get(values, 0), json_array_get(values, i)))
			return false;
	return true;
}

/* Refuses runs of several names: they differ in everything. */
static int check_names(const struct listed *rows, size_t count, struct err **err)
{
	AUTO(sb_release) struct sb names = SB_INIT_MAX(200);
	json_auto_t *seen = json_object();
	const char *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *name = rows[i].head.name;

		if (!name || json_object_get(seen, name))
			continue;
		json_object_set_new(seen, name, json_true());
		first = first ? first : name;
		sb_addf(&names, "%s%s", names.len ? ", " : "", name);
	}
	if (json_object_size(seen) <= 1)
		return 0;
	err_set(err, EXIT_USAGE, "--diff compares runs of one name, and these are of %zu: %s",
		json_object_size(seen), names.text);
	return err_hint(err, "choose one of them: stoker list --diff --name '%s'", first);
}

int run_list_differ(struct journal *journal, const struct listed *rows, size_t count, json_t **ret,
		    struct err **err)
{
	json_t *all = json_object(), *values;
	const char *path;
	void *next;

	*ret = all;
	if (check_names(rows, count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		json_auto_t *plan = plan_of(journal, rows[i].run);
		json_auto_t *spec = json_deep_copy(json_object_get(plan, "spec"));

		graph_key_ingredients_hide_secrets(spec);
		if (spec)
			note_all(all, "", spec, i, count);
	}
	json_object_foreach_safe (all, next, path, values)
		if (is_equal(values))
			json_object_del(all, path);
	return 0;
}
