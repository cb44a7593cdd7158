/* Promotion of a run's model: see promotion.h. */
#include "jobs/run/promotion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/promotion_facts.h"

#define MANIFEST_MAX ((size_t)256 << 20) /* of outputs */
#define PATCH_MAX    ((size_t)16 << 20)

void promotion_intent_release(struct promotion_intent *intent)
{
	free(intent->url);
	*intent = (struct promotion_intent){ 0 };
}

void promotion_result_release(struct promotion_result *result)
{
	free(result->url);
	free(result->outputs);
	free(result->holder);
	free(result->reason);
	*result = (struct promotion_result){ 0 };
}

char *promotion_url(const json_t *plan)
{
	const char *url = js_str(json_object_get(plan, "promote"), "url");

	return url ? mem_copy(url)
		   : mem_format("%s/models/%s", js_str(plan, "workspace"), js_str(plan, "name"));
}

static int open_model(const json_t *plan, struct model **ret, struct err **err)
{
	AUTO(auto_free) char *url = promotion_url(plan);

	return model_open(url, js_str(plan, "name"), ret, err);
}

/* ---- the intent ---- */

static int refuse_debug(const json_t *plan, const char *run, struct err **err)
{
	if (!json_object_get(plan, "debug"))
		return 0;
	err_set(err, EXIT_REFUSED, "run %s is a debug run, and is never promoted", run);
	return err_hint(err, "run the spec without 'debug: true'");
}

static void overtaken(const struct model_entry *entry, struct promotion_result *ret)
{
	const char *run = js_str(entry->body, "run");

	ret->fate = PROMOTION_OVERTAKEN;
	ret->generation = entry->generation;
	memcpy(ret->digest, entry->digest, sizeof ret->digest);
	ret->holder = run ? mem_copy(run) : NULL;
	ret->reason =
		run ? mem_format("generation %" PRId64 " is of run %s", entry->generation, run)
		    : mem_copy("nothing is promoted any more where the run began");
}

/* True if the newest entry is the one that the run was given, or it was given none. */
static bool is_expected(const json_t *inputs, const struct model_entry *head)
{
	const char *digest = json_string_value(js_path(inputs, "pointer.digest"));

	if (digest)
		return strcmp(digest, head->digest) == 0;
	/* A turn that began when there was no promoted model. */
	return !js_bool(inputs, "promotes", false) || head->generation == 0;
}

int promotion_intend(struct journal *journal, const char *run, const char *url,
		     const struct promotion_how *how, struct promotion_intent *ret,
		     struct promotion_result *ret_overtaken, struct err **err)
{
	AUTO(promotion_facts_release) struct promotion_facts facts = PROMOTION_FACTS_INIT;
	AUTO(promotion_model_release) struct promotion_model found = { 0 };
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	const json_t *plan;

	/* The first event tells all about a candidate that is chosen already. */
	if (promotion_facts_read(journal, run, url ? 1 : 0, &facts, err) < 0)
		return -1;
	plan = promotion_plan(&facts);
	if (refuse_debug(plan, run, err) < 0 || open_model(plan, &model, err) < 0 ||
	    model_head(model, true, &head, err) < 0)
		return -1;
	if (!how->forced && !is_expected(promotion_inputs(&facts), &head)) {
		overtaken(&head, ret_overtaken);
		return 0;
	}
	if (model_entry_removes(&head, run)) {
		err_set(err, EXIT_REFUSED, "the model of run %s was removed by promote.keep", run);
		return err_hint(err, "train again, or promote another run");
	}
	if (!url && promotion_model_find(&facts, run, NULL, &found, err) < 0)
		return -1;
	ret->generation = head.generation + 1;
	memcpy(ret->before, head.digest, sizeof ret->before);
	hash_random_hex((sizeof ret->nonce - 1) / 2, ret->nonce);
	ret->url = url ? mem_copy(url) : TAKE(found.url);
	return 1;
}

static int take_intent(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct promotion_intent *intent = arg;
	const char *before = js_str(row, "digest"), *nonce = js_str(row, "nonce");

	(void)ev;
	(void)err;
	if (!js_is(row, "event", "promote.intended") || !nonce || !js_str(row, "url"))
		return 0;
	promotion_intent_release(intent);
	intent->seq = js_int(row, "seq", 0);
	intent->generation = js_int(row, "generation", 0);
	snprintf(intent->before, sizeof intent->before, "%s", before ? before : "");
	snprintf(intent->nonce, sizeof intent->nonce, "%s", nonce);
	intent->url = mem_copy(js_str(row, "url"));
	return 0;
}

int promotion_intent_find(struct journal *journal, const char *run, struct promotion_intent *ret,
			  struct err **err)
{
	if (journal_read(journal, run, 1, take_intent, ret, err) < 0)
		return -1;
	return ret->generation > 0;
}

/* ---- the version ---- */

/* Everything that one call of promotion_carry_out() works with. */
struct promotion {
	const char *run;
	const struct promotion_intent *intent;
	const struct promotion_how *how;
	struct promotion_facts facts;
	const json_t *plan;
	struct model *model;
	json_t *version;
};

static void promotion_release(struct promotion *p)
{
	promotion_facts_release(&p->facts);
	model_freep(&p->model);
	json_decref(p->version);
}

static int add_model(struct promotion *p, struct err **err)
{
	AUTO(promotion_model_release) struct promotion_model found = { 0 };
	struct model_source source = { .run = p->run };
	json_t *model = NULL;

	if (promotion_model_find(&p->facts, p->run, p->intent->url, &found, err) < 0)
		return -1;
	source.attempt = found.attempt;
	source.url = found.url;
	source.files = found.files;
	if (model_bring(p->model, &source, p->how->progress, p->how->arg, &model, err) < 0)
		return -1;
	js_put_str(model, "kind", found.kind);
	if (found.files)
		js_put(model, "step", json_integer(found.step));
	js_put(p->version, "model", model);
	return 0;
}

/* Keeps the list that an input names under `url_key` with its digest, and adds it as `name`. */
static int keep_list(struct promotion *p, const json_t *input, const char *url_key,
		     const char *digest_key, json_t *to, const char *name, struct err **err)
{
	const char *url = js_str(input, url_key);
	json_t *file = NULL;

	if (!url)
		return 0;
	if (model_keep_object(p->model, p->run, url, js_str(input, digest_key), &file, err) < 0)
		return err_wrap(err, "cannot keep what the run was given");
	js_put(to, name, file);
	return 0;
}

static int add_data(struct promotion *p, const char *input, const char *name, struct err **err)
{
	static const char *const counts[] = { "objects", "new", "replaced", "bytes" };
	const json_t *given = json_object_get(promotion_inputs(&p->facts), input);
	json_t *data;

	if (!json_is_object(given))
		return 0;
	data = json_object();
	js_put(p->version, name, data);
	if (keep_list(p, given, "manifest", "digest", data, "manifest", err) < 0 ||
	    keep_list(p, given, "seen", "seen_digest", data, "seen", err) < 0)
		return -1;
	for (size_t i = 0; i < STK_LENGTH(counts); i++)
		if (json_object_get(given, counts[i]))
			js_put(data, counts[i], json_incref(json_object_get(given, counts[i])));
	if (strcmp(name, "data") == 0 && p->how->drift)
		js_put(data, "drift", json_deep_copy(p->how->drift));
	return 0;
}

static int add_patch(struct promotion *p, json_t *source, struct store *workspace, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("sources/%s.patch", js_str(source, "digest"));
	AUTO(sb_release) struct sb text = SB_INIT_MAX(PATCH_MAX + 1);
	json_t *file = NULL;
	int there;

	if (!js_str(source, "digest") || !js_bool(source, "dirty", false))
		return 0;
	there = store_get(workspace, key, PATCH_MAX, &text, NULL, err);
	if (there <= 0)
		return there;
	if (model_keep_bytes(p->model, p->run, "patch", ".patch", text.text, text.len, &file, err) <
	    0)
		return -1;
	js_put(source, "patch", file);
	return 0;
}

static int add_source(struct promotion *p, struct store *workspace, struct err **err)
{
	static const char *const members[] = { "kind", "commit", "dirty", "digest" };
	const json_t *pinned = json_object_get(p->plan, "source");
	json_t *source = json_object();

	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (json_object_get(pinned, members[i]))
			js_put(source, members[i],
			       json_incref(json_object_get(pinned, members[i])));
	js_put(p->version, "source", source);
	return add_patch(p, source, workspace, err);
}

static int add_journal(struct promotion *p, struct err **err)
{
	const struct sb *text = &p->facts.journal;
	json_t *file = NULL;

	if (model_keep_bytes(p->model, p->run, "journal", ".jsonl", text->text, text->len, &file,
			     err) < 0)
		return -1;
	js_put(file, "events", json_integer(p->facts.events));
	js_put_str(file, "sum", p->facts.sum);
	js_put(p->version, "journal", file);
	return 0;
}

/* The outputs of inference, whole once their manifest is there. */
static int add_outputs(struct promotion *p, struct err **err)
{
	const char *folder = js_str(json_object_get(p->plan, "infer"), "output");
	AUTO(auto_free) char *url = NULL;
	AUTO(store_freep) struct store *store = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MANIFEST_MAX + 1);
	json_t *file = NULL, *outputs;
	int there;

	if (!folder)
		return 0;
	url = mem_format("%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", p->run);
	if (store_open(url, &store, err) < 0)
		return -1;
	there = store_get(store, "manifest.json", MANIFEST_MAX, &text, NULL, err);
	if (there <= 0)
		return there;
	if (model_keep_bytes(p->model, p->run, "outputs", ".json", text.text, text.len, &file,
			     err) < 0)
		return -1;
	outputs = json_object();
	js_put_str(outputs, "url", store_url(store));
	js_put(outputs, "manifest", file);
	js_put(p->version, "outputs", outputs);
	return 0;
}

/* An event as evidence: without what its place in the journal says. */
static json_t *bare_event(const json_t *row)
{
	json_t *bare = json_copy((json_t *)(uintptr_t)row);

	json_object_del(bare, "v");
	json_object_del(bare, "run");
	json_object_del(bare, "sum");
	return bare;
}

/* A stage may have graphs of its own. */
static json_t *graph_keys(const json_t *plan)
{
	const char *evaluate = json_string_value(js_path(plan, "evaluate.job.compile.graph_key"));
	const char *infer = json_string_value(js_path(plan, "infer.job.compile.graph_key"));
	json_t *keys = json_object();

	js_put_str(keys, "train", plan_graph_key(plan));
	js_put_str(keys, "evaluate", evaluate);
	js_put_str(keys, "infer", infer);
	return keys;
}

static void add_plain(struct promotion *p)
{
	const json_t *parent = json_object_get(promotion_inputs(&p->facts), "parent"), *row;
	json_t *list = json_array(), *keys = graph_keys(p->plan);
	size_t i;

	if (parent)
		js_put(p->version, "parent", json_incref((json_t *)(uintptr_t)parent));
	js_put_str(p->version, "image", js_str(json_object_get(p->plan, "image"), "digest"));
	if (p->facts.versions)
		js_put(p->version, "versions", json_incref(p->facts.versions));
	if (json_object_size(keys) > 0)
		js_put(p->version, "graph_keys", json_incref(keys));
	json_decref(keys);
	js_put_str(p->version, "plan_digest", js_str(p->facts.created, "plan_digest"));
	if (p->facts.gate)
		js_put(p->version, "gate", bare_event(p->facts.gate));
	json_array_foreach (p->facts.evaluations, i, row)
		json_array_append_new(list, bare_event(row));
	if (json_array_size(list) > 0)
		js_put(p->version, "evaluate", list);
	else
		json_decref(list);
	if (json_object_size(p->facts.took) > 0)
		js_put(p->version, "took", json_incref(p->facts.took));
	if (js_bool(p->plan, "benchmark", false))
		js_put(p->version, "benchmark", json_true());
}

static int make_version(struct promotion *p, struct err **err)
{
	AUTO(store_freep) struct store *workspace = NULL;

	p->version = json_object();
	if (store_open(js_str(p->plan, "workspace"), &workspace, err) < 0 ||
	    add_model(p, err) < 0 || add_data(p, "data", "data", err) < 0 ||
	    add_data(p, "hold_out", "hold_out", err) < 0 || add_source(p, workspace, err) < 0 ||
	    add_outputs(p, err) < 0 || add_journal(p, err) < 0)
		return -1;
	add_plain(p);
	return 0;
}

/* ---- the steps ---- */

static void promoted(const struct promotion *p, const struct model_entry *entry,
		     struct promotion_result *ret)
{
	const char *outputs = json_string_value(js_path(entry->body, "version.outputs.url"));

	ret->fate = PROMOTION_DONE;
	ret->generation = entry->generation;
	memcpy(ret->digest, entry->digest, sizeof ret->digest);
	ret->url = model_entry_url(p->model, entry);
	ret->outputs = outputs ? mem_copy(outputs) : NULL;
}

/* Promotions of one model that keep few versions remove the others, whoever wrote the entry. */
static int clean(struct promotion *p, struct err **err)
{
	AUTO(model_entry_release) struct model_entry head = { 0 };

	if (model_head(p->model, true, &head, err) < 0)
		return -1;
	return model_remove_old(p->model, &head, err);
}

static int commit(struct promotion *p, struct model_entry *ret, struct err **err)
{
	const struct model_draft draft = {
		.generation = p->intent->generation,
		.before = p->intent->before,
		.nonce = p->intent->nonce,
		.run = p->run,
		.reason = p->how->reason,
		.forced = p->how->forced,
		.keep = js_int(json_object_get(p->plan, "promote"), "keep", 0),
		.version = p->version,
	};

	return model_commit(p->model, &draft, ret, err);
}

int promotion_carry_out(struct journal *journal, const char *run,
			const struct promotion_intent *intent, const struct promotion_how *how,
			struct promotion_result *ret, struct err **err)
{
	AUTO(promotion_release)
	struct promotion p = {
		.run = run, .intent = intent, .how = how, .facts = PROMOTION_FACTS_INIT
	};
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	int there;

	if (promotion_facts_read(journal, run, intent->seq, &p.facts, err) < 0)
		return -1;
	p.plan = promotion_plan(&p.facts);
	if (refuse_debug(p.plan, run, err) < 0 || open_model(p.plan, &p.model, err) < 0)
		return -1;
	/* If the generation is taken already, by us or by another run, nothing is copied. */
	there = model_entry_read(p.model, intent->generation, &entry, err);
	if (there < 0)
		return -1;
	if (there == 0 && (make_version(&p, err) < 0 || commit(&p, &entry, err) < 0))
		return -1;
	if (clean(&p, err) < 0)
		return -1;
	if (js_is(entry.body, "nonce", intent->nonce))
		promoted(&p, &entry, ret);
	else
		overtaken(&entry, ret);
	return 0;
}
