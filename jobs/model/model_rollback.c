/* Going back to an earlier version: see model.h. */
#include <inttypes.h>
#include <string.h>

#include "jobs/model/model_internal.h"
#include "jobs/model/model_version.h"

#define TRIES 3 /* of a commit whose outcome is not known */

struct model_target {
	int64_t generation; /* 0: the newest of another run */
	const char *run;    /* of the newest entry */
	struct model_entry found;
};

static void target_release(struct model_target *target)
{
	model_entry_release(&target->found);
}

static int find_target(void *arg, const struct model_entry *entry, struct err **err)
{
	struct model_target *target = arg;

	(void)err;
	if (target->generation > 0 ? entry->generation != target->generation
				   : js_is(entry->body, "run", target->run))
		return 0;
	target->found = *entry;
	target->found.body = json_incref(entry->body);
	return 1;
}

static int no_target(const struct model *model, int64_t generation, struct err **err)
{
	if (generation > 0)
		err_set(err, EXIT_NOT_FOUND, "'%s' has no generation %" PRId64, model_url(model),
			generation);
	else
		err_set(err, EXIT_NOT_FOUND, "'%s' has no earlier version", model_url(model));
	return err_hint(err, "'stoker lineage' shows the generations");
}

/* The files must be there before the pointer moves: sizes alone, 'lineage --verify' reads them. */
static int is_there(void *arg, const struct model_named *named, struct err **err)
{
	struct model *model = arg;
	struct store_object object;
	int there = named->is_model ? store_stat(model->store, named->key, &object, err) : 1;

	if (there < 0)
		return -1;
	if (there > 0 && (!named->is_model || object.size == named->size))
		return 0;
	err_set(err, EXIT_GATE, "'%s/%s' of that version %s", model_url(model), named->key,
		there > 0 ? "has another size" : "is missing");
	return err_hint(err, "restore it from a copy, or name another generation");
}

static int commit(struct model *model, const struct model_draft *draft, struct model_entry *ret,
		  struct err **err)
{
	for (int try = 1;; try++) {
		int fate = model_commit(model, draft, ret, err);

		if (fate >= 0 || try == TRIES || (*err)->damage)
			return fate;
		err_freep(err);
	}
}

int model_roll_back(struct model *model, int64_t generation, const char *reason,
		    struct model_entry *ret, struct err **err)
{
	AUTO(model_entry_release) struct model_entry head = { 0 };
	AUTO(target_release) struct model_target target = { .generation = generation };
	struct model_draft draft = { .reason = reason };
	char nonce[33];

	if (model_head(model, true, &head, err) < 0)
		return -1;
	if (head.generation == 0 || generation > head.generation)
		return no_target(model, generation, err);
	target.run = js_str(head.body, "run");
	if (model_each(model, &head, find_target, &target, err) < 0)
		return -1;
	if (target.found.generation == 0)
		return no_target(model, generation, err);
	draft.run = js_str(target.found.body, "run");
	if (strcmp(draft.run, target.run) == 0) {
		*ret = head;
		head = (struct model_entry){ 0 };
		return MODEL_SAME;
	}
	if (model_entry_removes(&head, draft.run)) {
		err_set(err, EXIT_REFUSED,
			"the model files of generation %" PRId64 " were removed by promote.keep",
			target.found.generation);
		return err_hint(err, "'stoker lineage' shows the generations that have theirs");
	}
	draft.version = json_object_get(target.found.body, "version");
	if (model_version_each(draft.version, is_there, model, err) < 0)
		return -1;
	hash_random_hex((sizeof nonce - 1) / 2, nonce);
	draft.nonce = nonce;
	draft.generation = head.generation + 1;
	draft.before = head.digest;
	draft.of = target.found.generation;
	return commit(model, &draft, ret, err);
}
