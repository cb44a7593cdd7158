/* What an entry says of a run: see promotion_facts.h. */
#include "jobs/run/promotion_facts.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/flow/phase.h"
#include "jobs/store/store.h"

#define OUTPUT    "output:"
#define DONE_MAX  ((size_t)64 << 20)
#define OUTPUT_OF "node-0" /* the node whose outputs promote.from means */

/* ---- the journal ---- */

static void take(json_t **member, json_t *row)
{
	json_decref(*member);
	*member = json_incref(row);
}

static void take_root(struct promotion_facts *facts, const json_t *row)
{
	AUTO(auto_free) char *root = fs_dirname(js_str(row, "url") ? js_str(row, "url") : "");

	js_put(facts->roots, root, json_integer(js_int(row, "attempt", 0)));
}

static void take_event(struct promotion_facts *facts, const char *name, json_t *row)
{
	if (strcmp(name, "run.created") == 0)
		take(&facts->created, row);
	else if (strcmp(name, "candidate.chosen") == 0)
		take(&facts->candidate, row);
	else if (strcmp(name, "gate.judged") == 0)
		take(&facts->gate, row);
	else if (strcmp(name, "evaluate.measured") == 0)
		json_array_append(facts->evaluations, row);
	else if (strcmp(name, "attempt.versions") == 0 && js_is(row, "phase", "train"))
		take(&facts->versions, json_object_get(row, "versions"));
	else if (strcmp(name, "checkpoint.complete") == 0)
		take_root(facts, row);
	else if (strcmp(name, "attempt.ended") == 0 && js_is(row, "phase", "train") &&
		 js_path(row, "outputs.url"))
		take(&facts->outputs, row);
	else if (strcmp(name, "run.ended") == 0)
		take(&facts->ended, row);
}

static void add_seconds(json_t *took, const char *member, int64_t ms)
{
	if (ms > 0)
		js_put(took, member, json_real(js_real(took, member, 0) + (double)ms / 1000));
}

/* Keeps the times that the next turn is to expect after its training. */
static void take_time(struct promotion_facts *facts, const struct event *ev)
{
	const char *phase;
	json_t *took;

	if (ev->kind == EV_ATTEMPT_INTENDED)
		facts->intended_ms = ev->at.ms;
	if (ev->kind != EV_ATTEMPT_ENDED || !flow_phases[ev->phase].has_tasks)
		return;
	phase = flow_phase_names[ev->phase];
	took = json_object_get(facts->took, phase);
	if (!took)
		js_put(facts->took, phase, took = json_object());
	add_seconds(took, "seconds", ev->at.ms - facts->intended_ms);
	if (EVENT_HAS(ev, started) && EVENT_HAS(ev, finished))
		add_seconds(took, "machine_seconds", ev->finished - ev->started);
}

struct promotion_reading {
	struct promotion_facts *facts;
	int64_t seq;
};

/* Rows are taken by their names, so that those of later versions are evidence too. */
static int on_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct promotion_reading *reading = arg;
	struct promotion_facts *facts = reading->facts;
	AUTO(auto_free) char *line = NULL;

	(void)err;
	if (reading->seq > 0 && js_int(row, "seq", 0) > reading->seq)
		return 1;
	line = js_line(row);
	sb_adds(&facts->journal, line);
	sb_addc(&facts->journal, '\n');
	facts->events++;
	free(TAKE(facts->sum));
	facts->sum = js_str(row, "sum") ? mem_copy(js_str(row, "sum")) : NULL;
	if (js_str(row, "event"))
		take_event(facts, js_str(row, "event"), row);
	if (ev)
		take_time(facts, ev);
	return 0;
}

int promotion_facts_read(struct journal *journal, const char *run, int64_t seq,
			 struct promotion_facts *ret, struct err **err)
{
	struct promotion_reading reading = { ret, seq };

	ret->evaluations = json_array();
	ret->roots = json_object();
	ret->took = json_object();
	if (journal_read(journal, run, 1, on_event, &reading, err) < 0)
		return -1;
	if (!ret->created)
		return err_set(err, EXIT_NOT_FOUND, "run %s has no first event", run);
	if (ret->journal.truncated)
		return err_set(err, EXIT_REFUSED, "the journal of run %s is too large", run);
	return 0;
}

void promotion_facts_release(struct promotion_facts *facts)
{
	json_decref(facts->created);
	json_decref(facts->candidate);
	json_decref(facts->gate);
	json_decref(facts->evaluations);
	json_decref(facts->versions);
	json_decref(facts->roots);
	json_decref(facts->took);
	json_decref(facts->outputs);
	json_decref(facts->ended);
	sb_release(&facts->journal);
	free(facts->sum);
}

const json_t *promotion_plan(const struct promotion_facts *facts)
{
	return json_object_get(facts->created, "plan");
}

const json_t *promotion_inputs(const struct promotion_facts *facts)
{
	return json_object_get(facts->created, "inputs");
}

/* ---- the model ---- */

void promotion_model_release(struct promotion_model *model)
{
	free(model->url);
	free(model->kind);
	json_decref(model->files);
}

/* Roots of checkpoints, as the events name them; those in a store with the store open. */
struct promotion_roots {
	struct ckpt_root *items;
	size_t count;
};

static void roots_release(struct promotion_roots *roots)
{
	for (size_t i = 0; i < roots->count; i++)
		store_freep(&roots->items[i].store);
	free(roots->items);
}

static int roots_add(struct promotion_roots *roots, const char *url, int64_t attempt,
		     struct err **err)
{
	struct ckpt_root *root;

	roots->items = mem_room(roots->items, roots->count, sizeof *roots->items);
	root = &roots->items[roots->count++];
	*root = (struct ckpt_root){ .path = url, .attempt = attempt };
	if (url[0] == '/')
		return 0;
	root->path = "";
	return store_open(url, &root->store, err);
}

static void take_mark(const struct ckpt_mark *mark, struct promotion_model *ret)
{
	ret->url = mem_copy(mark->url);
	ret->kind = mem_copy(checkpoint_kind_name(mark->kind));
	ret->attempt = mark->attempt;
	ret->step = mark->step;
	ret->files = json_deep_copy(mark->files);
}

static int no_model(const char *run, const char *what, const char *why, struct err **err)
{
	err_set(err, EXIT_RUN_FAILED, "run %s has no %s to promote%s%s", run, what,
		*why ? ": " : "", why);
	return err_hint(err, "'stoker status %s' shows what it has made", run);
}

static int newest_checkpoint(const struct promotion_facts *facts, const char *run,
			     struct promotion_model *ret, struct err **err)
{
	AUTO(roots_release) struct promotion_roots roots = { 0 };
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	const json_t *attempt;
	const char *url;

	json_object_foreach (facts->roots, url, attempt)
		if (roots_add(&roots, url, json_integer_value(attempt), err) < 0)
			return -1;
	if (roots.count > 0 &&
	    checkpoint_choose(roots.items, roots.count, run, INT64_MAX, &choice, err) < 0)
		return err_wrap(err, "cannot look for the checkpoints of run %s", run);
	if (!choice.found)
		return no_model(run, "complete checkpoint", "", err);
	take_mark(&choice.mark, ret);
	return 0;
}

/* A checkpoint that was chosen before. */
static int this_checkpoint(const struct promotion_facts *facts, const char *run, const char *url,
			   struct promotion_model *ret, struct err **err)
{
	AUTO(roots_release) struct promotion_roots roots = { 0 };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(auto_free) char *root = fs_dirname(url);
	AUTO(auto_free) char *why = NULL;
	const json_t *attempt = json_object_get(facts->roots, root);
	int there;

	if (roots_add(&roots, root, json_integer_value(attempt), err) < 0)
		return -1;
	there = checkpoint_mark_read(roots.items, fs_basename(url), &mark, err);
	if (there > 0)
		there = checkpoint_mark_holds(&mark, &why, err);
	if (there < 0)
		return err_wrap(err, "cannot look at the checkpoint '%s'", url);
	if (there == 0)
		return no_model(run, "complete checkpoint", why ? why : "its mark is gone", err);
	take_mark(&mark, ret);
	return 0;
}

static int this_output(const struct promotion_facts *facts, const char *run, const char *path,
		       struct promotion_model *ret, struct err **err)
{
	const char *outputs = json_string_value(js_path(facts->outputs, "outputs.url"));

	if (!outputs || !store_key_fits(path, false))
		return no_model(run, "output", outputs ? path : "it left no outputs", err);
	ret->url = mem_format("%s/" OUTPUT_OF "/%s", outputs, path);
	ret->kind = mem_copy("output");
	ret->attempt = js_int(facts->outputs, "attempt", 0);
	return 0;
}

/* Adds the SHA-256 of each file, as the node of the first task had them on its disk. */
static int add_digests(const json_t *plan, const char *run, struct promotion_model *ret,
		       struct err **err)
{
	AUTO(store_freep) struct store *workspace = NULL;
	AUTO(auto_free)
	char *key = mem_format("runs/%s/tasks/evaluate/candidate-1/done.json", run);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(DONE_MAX + 1);
	AUTO(err_freep) struct err *garbage = NULL;
	json_auto_t *done = NULL, *digests = json_object();
	json_t *file;
	size_t i;
	int there;

	if (store_open(js_str(plan, "workspace"), &workspace, err) < 0)
		return -1;
	there = store_get(workspace, key, DONE_MAX, &text, NULL, err);
	if (there <= 0)
		return there;
	if (js_parse(text.text, text.len, "done.json", &done, &garbage) < 0)
		return 0; /* the files are read instead */
	json_array_foreach (js_path(done, "model.files"), i, file)
		if (js_str(file, "file") && js_str(file, "sha256"))
			js_put_str(digests, js_str(file, "file"), js_str(file, "sha256"));
	json_array_foreach (ret->files, i, file)
		js_put_str(file, "sha256", js_str(digests, js_str(file, "path")));
	return 0;
}

int promotion_model_find(const struct promotion_facts *facts, const char *run, const char *url,
			 struct promotion_model *ret, struct err **err)
{
	const json_t *plan = promotion_plan(facts);
	const char *from = js_str(json_object_get(plan, "promote"), "from");
	int found;

	if (!url)
		url = js_str(facts->candidate, "url");
	if (from && text_starts(from, OUTPUT))
		found = this_output(facts, run, from + strlen(OUTPUT), ret, err);
	else
		found = url ? this_checkpoint(facts, run, url, ret, err)
			    : newest_checkpoint(facts, run, ret, err);
	return found < 0 ? -1 : add_digests(plan, run, ret, err);
}
