/* Writing an entry, moving the pointer, and removing what `keep` lets go: see model.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/model/model_internal.h"

/* The promoted version and the one before are never removed. */
#define KEEP_LEAST 2

/* ---- versions that lose their model files ---- */

struct model_kept {
	size_t count, most;
	json_t *seen;    /* {run: true} of versions met so far, newest first */
	json_t *removed; /* ["run"…] */
};

static int note_version(void *arg, const struct model_entry *entry, struct err **err)
{
	struct model_kept *kept = arg;
	const char *run = js_str(entry->body, "run");

	(void)err;
	if (json_object_get(kept->seen, run))
		return 0;
	json_object_set_new(kept->seen, run, json_true());
	if (++kept->count > kept->most)
		json_array_append_new(kept->removed, json_string(run));
	return 0;
}

static bool has_run(const json_t *runs, const char *run)
{
	const json_t *one;
	size_t i;

	json_array_foreach (runs, i, one)
		if (strcmp(json_string_value(one), run) == 0)
			return true;
	return false;
}

/* Adds "removed": without `keep`, what the entry before has removed already. */
static int add_removed(struct model *model, const struct model_draft *draft,
		       const struct model_entry *before, json_t *body, struct err **err)
{
	json_auto_t *seen = json_object(), *removed = json_array();
	struct model_kept kept = { .count = 1, .seen = seen, .removed = removed };
	const json_t *run;
	size_t i;

	kept.most = draft->keep > KEEP_LEAST ? (size_t)draft->keep : KEEP_LEAST;
	json_object_set_new(seen, draft->run, json_true());
	if (draft->keep > 0 && before->generation > 0 &&
	    model_each(model, before, note_version, &kept, err) < 0)
		return -1;
	json_array_foreach (json_object_get(before->body, "removed"), i, run)
		if (!has_run(removed, json_string_value(run)))
			json_array_append(removed, (json_t *)(uintptr_t)run);
	if (json_array_size(removed) > 0)
		js_put(body, "removed", json_incref(removed));
	return 0;
}

bool model_entry_removes(const struct model_entry *head, const char *run)
{
	return has_run(json_object_get(head->body, "removed"), run);
}

static int remove_object(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	json_array_append_new(arg, json_string(object->key));
	return 0;
}

int model_remove_old(struct model *model, const struct model_entry *entry, struct err **err)
{
	const json_t *run, *key;
	size_t i, n;

	json_array_foreach (json_object_get(entry->body, "removed"), i, run) {
		AUTO(auto_free) char *prefix = model_files_prefix(json_string_value(run));
		json_auto_t *keys = json_array();

		if (store_list(model->store, prefix, remove_object, keys, err) < 0)
			return err_wrap(err, "cannot remove the model of version %s",
					json_string_value(run));
		json_array_foreach (keys, n, key)
			if (store_delete(model->store, json_string_value(key), err) < 0)
				return err_wrap(err, "cannot remove the model of version %s",
						json_string_value(run));
	}
	return 0;
}

/* ---- the entry ---- */

static json_t *who(void)
{
	const char *user = getenv("USER");
	AUTO(auto_free) char *number = mem_format("%lld", (long long)geteuid());
	char host[256] = "";
	json_t *by = json_object();

	(void)gethostname(host, sizeof host - 1);
	js_put_str(by, "user", user && *user ? user : number);
	js_put_str(by, "host", host);
	return by;
}

static json_t *entry_body(const struct model *model, const struct model_draft *draft,
			  const struct model_entry *before)
{
	json_t *body = json_pack("{s:i}", "v", MODEL_FORMAT);
	char at[UTC_TEXT];

	js_put_str(body, "name", model->name ? model->name : js_str(before->body, "name"));
	js_put(body, "generation", json_integer(draft->generation));
	js_put_str(body, "before", draft->before[0] ? draft->before : NULL);
	js_put_str(body, "action", draft->of > 0 ? "rollback" : "promote");
	js_put_str(body, "nonce", draft->nonce);
	js_put_str(body, "at", clock_utc_format(clock_utc_now(), at));
	js_put(body, "by", who());
	js_put_str(body, "reason", draft->reason);
	if (draft->forced)
		js_put(body, "forced", json_true());
	if (draft->of > 0)
		js_put(body, "of", json_integer(draft->of));
	js_put_str(body, "run", draft->run);
	return body;
}

/* Checks the entry before: what the new one continues is what the caller knows. Returns 1; 0 with
 * the newest entry if the chain has gone another way; -1. */
static int check_before(struct model *model, const struct model_draft *draft,
			struct model_entry *ret, struct err **err)
{
	int there = 0;

	if (draft->generation > 1)
		there = model_entry_read(model, draft->generation - 1, ret, err);
	if (there < 0)
		return -1;
	if (draft->generation == 1 || (there > 0 && strcmp(ret->digest, draft->before) == 0))
		return 1;
	err_set(err, EXIT_REFUSED, "entry %" PRId64 " of '%s' is not the one that was read before",
		draft->generation - 1, model_url(model));
	err_hint(err, "'stoker lineage --verify' tells what differs");
	return err_damage(err);
}

/* Looks who has the generation. Returns 1 if there is an entry. */
static int look(struct model *model, const struct model_draft *draft, struct model_entry *ret,
		struct err **err)
{
	return model_entry_read(model, draft->generation, ret, err);
}

/* Writes the entry, unless there is one. Returns 1 with what is there, -1. */
static int write_entry(struct model *model, const struct model_draft *draft,
		       struct model_entry *ret, struct err **err)
{
	AUTO(model_entry_release) struct model_entry before = { 0 };
	AUTO(auto_free) char *key = model_entry_key(draft->generation);
	AUTO(auto_free) char *text = NULL;
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *body = NULL;
	int there = look(model, draft, ret, err);

	if (there != 0)
		return there;
	if (check_before(model, draft, &before, err) < 0)
		return -1;
	body = entry_body(model, draft, &before);
	if (add_removed(model, draft, &before, body, err) < 0)
		return -1;
	js_put(body, "version", json_incref((json_t *)(uintptr_t)draft->version));
	text = model_seal(TAKE(body));
	if (strlen(text) > MODEL_ENTRY_MAX)
		return err_set(err, EXIT_REFUSED,
			       "the model of run %s has too many files for an entry", draft->run);
	if (store_put_if_absent(model->store, key, text, strlen(text), &why) < 0) {
		AUTO(err_freep) struct err *ignored = NULL;

		/* The entry may be there all the same: if that cannot be seen, the first error
		 * counts. */
		if (look(model, draft, ret, &ignored) > 0)
			return 1;
		*err = TAKE(why);
		return -1;
	}
	there = look(model, draft, ret, err);
	if (there == 0)
		return err_set(err, EXIT_UNREACHABLE, "entry %" PRId64 " of '%s' is not seen yet",
			       draft->generation, model_url(model));
	return there;
}

int model_commit(struct model *model, const struct model_draft *draft, struct model_entry *ret,
		 struct err **err)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(model_entry_release) struct model_entry head = { 0 };

	if (write_entry(model, draft, &entry, err) < 0)
		return -1;
	/* The entry may be another machine's, which may have died before it moved the pointer. */
	if (model_head(model, true, &head, err) < 0)
		return -1;
	*ret = entry;
	entry = (struct model_entry){ 0 };
	return js_is(ret->body, "nonce", draft->nonce) ? MODEL_PROMOTED : MODEL_OVERTAKEN;
}
