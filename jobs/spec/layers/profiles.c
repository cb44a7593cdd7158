/* Named overlays over the rest of the spec: see layers.h. */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/layers/layers.h"
#include "jobs/spec/lint/suggest.h"
#include "jobs/spec/yaml.h"

#define PROFILES "profiles"
#define USE      "use"

/* Fields of the spec alone. */
static const char *const never[] = { "version", PROFILES, "extends" };

/* A profile that is being used, and who uses it. */
struct user {
	const struct user *up; /* NULL: --use does */
	const char *name;
	int depth;
};

struct profile_set {
	struct binder *binder;
	const struct node *profiles; /* NULL: the spec has none */
	size_t room;                 /* nodes that may still be made */
};

static char *names_of(const struct node *profiles)
{
	struct sb names = SB_INIT_MAX(1000);

	for (size_t i = 0; i < profiles->count; i++)
		sb_addf(&names, "%s%s", i ? ", " : "", profiles->entries[i].key);
	return sb_take(&names);
}

/* Reports a name that no profile has, with the nearest one. */
static void unknown_profile(struct profile_set *set, struct mark at, const char *name)
{
	const struct node *profiles = set->profiles;
	AUTO(auto_free) char *names = profiles && profiles->count ? names_of(profiles) : NULL;
	const char *near = NULL;
	size_t least = strlen(name) < 6 ? strlen(name) / 2 : 3;
	struct problem *problem =
		problem_error(&set->binder->reporter, at, PROFILES, "no profile '%.80s'", name);

	for (size_t i = 0; profiles && i < profiles->count; i++) {
		size_t far = text_distance(name, profiles->entries[i].key, least);

		if (far <= least) {
			near = profiles->entries[i].key;
			least = far;
		}
	}
	if (strchr(name, ',') && names)
		problem_hint(problem, "repeat the option for each one; the spec has %s", names);
	else if (near)
		problem_hint(problem, "did you mean '%s'? the spec has %s", near, names);
	else if (names)
		problem_hint(problem, "the spec has %s", names);
	else
		problem_hint(problem, "the spec has no profiles; write them below 'profiles:'");
}

static void put_profile(struct profile_set *set, const struct user *user, struct mark at);

/* Puts the profiles on which one builds below it. */
static void put_used(struct profile_set *set, const struct user *user, const struct node *use)
{
	size_t count = use->kind == NODE_LIST ? use->count : 1;

	for (size_t i = 0; i < count; i++) {
		const struct node *item = use->kind == NODE_LIST ? use->entries[i].value : use;
		struct user next = { user, item->text, user->depth + 1 };

		put_profile(set, &next, item->at);
	}
}

/* Adds "a uses b uses c". */
static void add_chain(struct sb *chain, const struct user *user)
{
	if (user->up)
		add_chain(chain, user->up);
	sb_addf(chain, "%s%.80s", user->up ? " uses " : "", user->name);
}

/* True if the profile uses itself, which is reported. */
static bool goes_round(struct profile_set *set, const struct user *user, struct mark at)
{
	AUTO(sb_release) struct sb chain = SB_INIT_MAX(2000);
	const struct user *up = user->up;

	while (up && strcmp(up->name, user->name) != 0)
		up = up->up;
	if (!up && user->depth <= EXTENDS_DEPTH_MAX)
		return false;
	add_chain(&chain, user);
	if (up)
		problem_hint(problem_error(&set->binder->reporter, at, PROFILES,
					   "the profiles use each other: %s", chain.text),
			     "remove one of the 'use'");
	else
		problem_hint(problem_error(&set->binder->reporter, at, PROFILES,
					   "more than %d profiles use one another: %s",
					   EXTENDS_DEPTH_MAX, chain.text),
			     "use fewer in a row");
	return true;
}

/* True for a profile, or a list of profiles. */
static bool is_use(const struct node *value)
{
	bool good = value->kind == NODE_LIST;

	if (value->kind == NODE_SCALAR)
		return !node_is_null(value);
	for (size_t i = 0; good && i < value->count; i++)
		good = value->entries[i].value->kind == NODE_SCALAR;
	return good;
}

static void put_profile(struct profile_set *set, const struct user *user, struct mark at)
{
	struct spec *spec = set->binder->spec;
	const struct entry *entry = set->profiles ? node_entry(set->profiles, user->name) : NULL;
	const struct entry *use;
	struct node *overlay;

	if (!entry) {
		unknown_profile(set, at, user->name);
		return;
	}
	if (goes_round(set, user, at) || entry->value->kind != NODE_MAP)
		return;
	use = node_entry(entry->value, USE);
	if (use && is_use(use->value))
		put_used(set, user, use->value);
	overlay = node_copy(spec->arena, entry->value, NULL, entry->key, &set->room);
	if (!overlay) {
		problem_hint(problem_error(&set->binder->reporter, entry->at, PROFILES,
					   "the profiles unfold to more than 200000 values"),
			     "use fewer aliases");
		return;
	}
	node_remove(overlay, USE);
	for (size_t i = 0; i < STK_LENGTH(never); i++)
		node_remove(overlay, never[i]);
	spec->tree = merge_nodes(spec->arena, FIELD_NONE, spec->tree, overlay, NULL_DROPS);
}

/* Checks what a profile says of others. */
static void check_use(struct profile_set *set, const struct entry *profile)
{
	const struct entry *use = node_entry(profile->value, USE);

	if (use && !is_use(use->value))
		problem_hint(problem_error(&set->binder->reporter, use->value->at, PROFILES,
					   "'use' must be a profile or a list of profiles"),
			     "for example use: [base]");
}

/* Checks the form of one profile. */
static void check_profile(struct profile_set *set, const struct entry *entry)
{
	struct reporter *reporter = &set->binder->reporter;
	AUTO(auto_free) char *field = mem_format(PROFILES ".%s", entry->key);

	if (!value_has_shape(set->binder, field_table[SPEC_PROFILES].key_shape, entry->key))
		problem_hint(problem_error(reporter, entry->at, PROFILES,
					   "'%.80s' in 'profiles' must be %s", entry->key,
					   field_shape_rows[SHAPE_NAME].what),
			     "%s", field_shape_rows[SHAPE_NAME].hint);
	if (node_is_null(entry->value))
		return;
	if (entry->value->kind != NODE_MAP) {
		problem_hint(problem_error(reporter, entry->value->at, field,
					   "a profile is a mapping of fields, not %s",
					   node_kind_text(entry->value)),
			     "for example %s: {resources: {nodes: 4}}", entry->key);
		return;
	}
	for (size_t i = 0; i < STK_LENGTH(never); i++) {
		const struct entry *wrong = node_entry(entry->value, never[i]);

		if (wrong)
			problem_hint(
				problem_error(reporter, wrong->at, field,
					      "'%s' cannot stand in a profile", never[i]),
				"write it at the top of the spec; 'use' builds on another profile");
	}
	check_use(set, entry);
}

/* Reads `profiles` out of the tree; false if there are none to be read. Wrong ones are kept, so
 * that all problems are told at once. */
static bool take_profiles(struct profile_set *set)
{
	struct spec *spec = set->binder->spec;
	const struct entry *entry = node_entry(spec->tree, PROFILES);

	if (!entry)
		return true;
	spec->tree = node_own(spec->arena, spec->tree);
	node_remove(spec->tree, PROFILES);
	if (node_is_null(entry->value))
		return true;
	if (entry->value->kind != NODE_MAP) {
		problem_hint(
			problem_error(&set->binder->reporter, entry->value->at, PROFILES,
				      "'profiles' must be a mapping of names and fields, not %s",
				      node_kind_text(entry->value)),
			"for example profiles: {dev: {engine: local}}");
		return false;
	}
	set->profiles = entry->value;
	for (size_t i = 0; i < entry->value->count; i++) {
		check_profile(set, &entry->value->entries[i]);
		json_array_append_new(spec->profiles, json_string(entry->value->entries[i].key));
	}
	return true;
}

void profiles_apply(struct binder *binder)
{
	struct profile_set set = { binder, NULL, TREE_NODES_MAX };

	json_decref(binder->spec->profiles);
	binder->spec->profiles = json_array();
	if (!take_profiles(&set))
		return;
	for (char *const *use = binder->spec->uses; use && *use; use++) {
		struct mark at = { .file = "--use" };
		struct user user = { NULL, *use, 1 };

		put_profile(&set, &user, at);
	}
}
