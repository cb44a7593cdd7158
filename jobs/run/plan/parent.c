/* The models that a run is given: see parent.h. */
#include "jobs/run/plan/parent.h"

#include <string.h>

#include "jobs/checkpoint/pin.h"
#include "jobs/model/model.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/promotion.h"

static const char correct[] = "correct its place in section 'parent', or restore the model";

/* All of it is borrowed, but the model folder and its entry. */
struct giving {
	const json_t *plan;
	struct store *workspace;
	json_t *inputs;
	struct model *model;
	struct model_entry entry; /* the promoted version; generation 0: none */
};

static void giving_release(struct giving *giving)
{
	model_freep(&giving->model);
	model_entry_release(&giving->entry);
}

static const char *of_parent(const struct giving *giving, const char *name)
{
	return js_str(json_object_get(giving->plan, "parent"), name);
}

static int give(struct giving *giving, const char *role, const struct ckpt_pin *pin,
		int64_t generation, struct err **err)
{
	bool reshard = json_is_true(js_path(giving->plan, "parent.reshard"));
	json_t *given;

	/* A baseline is not trained, and loads as its command likes. */
	if (strcmp(role, "parent") == 0 && !reshard &&
	    checkpoint_pin_fits(pin, plan_world_size(giving->plan), err) < 0)
		return err_wrap(err, "the training cannot begin from its parent");
	if (checkpoint_pin_put(pin, giving->workspace, err) < 0)
		return -1;
	given = json_object();
	js_put_str(given, "url", pin->url);
	js_put_str(given, "kind", checkpoint_kind_name(pin->kind));
	js_put_str(given, "digest", pin->digest);
	if (generation > 0)
		js_put(given, "generation", json_integer(generation));
	js_put(giving->inputs, role, given);
	return 0;
}

static int give_place(struct giving *giving, const char *role, const char *place, struct err **err)
{
	const char *name = of_parent(giving, "kind");
	const struct ckpt_kind *kind = checkpoint_kind_find(name ? name : "auto");
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };

	if (!kind)
		return err_set(err, EXIT_REFUSED, "parent.kind '%s' is not part of this version",
			       name);
	if (checkpoint_pin_take(place, kind, correct, &pin, err) < 0)
		return err_wrap(err, "the run cannot be given its %s", role);
	return give(giving, role, &pin, 0, err);
}

/* The version that is promoted; while there is none, parent.first, or nothing. */
static int give_promoted(struct giving *giving, const char *role, struct err **err)
{
	const json_t *version = js_path(giving->entry.body, "version.model");
	const char *name = js_str(version, "kind"), *first = of_parent(giving, "first");
	/* A file of the outputs is a model of no known kind. */
	const struct ckpt_kind *kind =
		checkpoint_kind_find(name && strcmp(name, "output") != 0 ? name : "files");
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };
	AUTO(auto_free) char *url = NULL;

	if (giving->entry.generation == 0)
		return first ? give_place(giving, role, first, err) : 0;
	url = model_entry_url(giving->model, &giving->entry);
	if (!url || !kind)
		return err_set(err, EXIT_REFUSED,
			       "the promoted version has a model that this version does not know");
	if (checkpoint_pin_known(url, kind, json_object_get(version, "files"), &pin, err) < 0)
		return -1;
	return give(giving, role, &pin, giving->entry.generation, err);
}

/* Reads the promoted version: the one that the inputs name, or the newest. */
static int find_promoted(struct giving *giving, struct err **err)
{
	AUTO(auto_free) char *url = promotion_url(giving->plan);
	json_t *pointer = json_object_get(giving->inputs, "pointer");
	int64_t generation = js_int(pointer, "generation", 0);
	int there;

	if (model_open(url, js_str(giving->plan, "name"), &giving->model, err) < 0)
		return -1;
	there = generation > 0 ? model_entry_read(giving->model, generation, &giving->entry, err)
			       : model_head(giving->model, false, &giving->entry, err);
	if (there < 0)
		return -1;
	if (there == 0 && generation > 0)
		return err_set(err, EXIT_REFUSED, "generation %lld of '%s' is not found",
			       (long long)generation, url);
	if (there == 0 || pointer)
		return 0;
	pointer = json_object();
	js_put(pointer, "generation", json_integer(giving->entry.generation));
	js_put_str(pointer, "digest", giving->entry.digest);
	js_put(giving->inputs, "pointer", pointer);
	return 0;
}

int parent_add(const json_t *plan, struct store *workspace, json_t *inputs, struct err **err)
{
	AUTO(giving_release)
	struct giving giving = { .plan = plan, .workspace = workspace, .inputs = inputs };
	const char *from = of_parent(&giving, "from");
	bool promotes = json_is_true(json_object_get(inputs, "promotes"));
	bool compares = js_is(json_object_get(plan, "evaluate"), "baseline", "promoted");
	bool promoted =
		from && (strcmp(from, "promoted") == 0 || (strcmp(from, "auto") == 0 && promotes));
	bool place = from && (from[0] == '/' || strstr(from, "://"));

	if ((promoted || compares || promotes) && find_promoted(&giving, err) < 0)
		return -1;
	if (!json_object_get(inputs, "parent") &&
	    ((place && give_place(&giving, "parent", from, err) < 0) ||
	     (promoted && give_promoted(&giving, "parent", err) < 0)))
		return -1;
	return compares && !json_object_get(inputs, "baseline")
		       ? give_promoted(&giving, "baseline", err)
		       : 0;
}

void parent_order(struct order_model *ret, const json_t *given)
{
	if (!given)
		return;
	MESSAGE_SET_TEXT(ret, url, js_str(given, "url"));
	MESSAGE_SET_TEXT(ret, kind, js_str(given, "kind"));
	MESSAGE_SET_TEXT(ret, digest, js_str(given, "digest"));
	if (json_object_get(given, "generation"))
		MESSAGE_SET(ret, generation, js_int(given, "generation", 0));
}
