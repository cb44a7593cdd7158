/* Instance types, stoker's own and the user's: see instance.h. */
#include "jobs/spec/machines/instance.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/fields/units.h"
#include "jobs/spec/machines/catalogue.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/yaml.h"

#define ML "ml."

#define KINDS ACCELERATOR_NEURON " " ACCELERATOR_NVIDIA " " INSTANCE_OTHER " " INSTANCE_NONE

enum member_type { COUNT, MEMORY, RATE, TEXT, WORD, FLAG };

/* The subject of a member: a source is named for the machine and for the price, each with its day.
 * The SageMaker type ml.TYPE has the machine of TYPE, and a price of its own. */
enum member_of { OF_MACHINE, OF_FIGURES, OF_PRICE };

/* Members of a row. */
static const struct member {
	const char *name, *key; /* in the file, in the row */
	enum member_type type;
	enum member_of of;
	double min, max;   /* range of a number */
	const char *words; /* of a WORD */
} members[] = {
	{ "accelerator", "accelerator", WORD, OF_MACHINE, 0, 0, KINDS },
	{ "devices", "devices", COUNT, OF_MACHINE, 0, 1024, NULL },
	{ "cores", "cores", COUNT, OF_MACHINE, 0, 65536, NULL },
	{ "physical_cores", "physical_cores", COUNT, OF_MACHINE, 0, 65536, NULL },
	{ "memory", "memory_mib", MEMORY, OF_MACHINE, 0, 0, NULL },
	{ "gpus", "gpus", COUNT, OF_MACHINE, 0, 1024, NULL },
	{ "gpu", "gpu", TEXT, OF_MACHINE, 0, 0, NULL },
	{ "gpu_memory", "gpu_memory_mib", MEMORY, OF_MACHINE, 0, 0, NULL },
	{ "vcpus", "vcpus", COUNT, OF_MACHINE, 1, 65536, NULL },
	{ "ram", "ram_mib", MEMORY, OF_MACHINE, 0, 0, NULL },
	{ "arch", "arch", WORD, OF_MACHINE, 0, 0, "x86_64 arm64" },
	{ "nvme", "nvme_gb", COUNT, OF_MACHINE, 0, 1e9, NULL },
	{ "efa", "efa", COUNT, OF_MACHINE, 0, 1024, NULL },
	{ "gbps", "gbps", RATE, OF_MACHINE, 0, 1e6, NULL },
	{ "quota", "quota", TEXT, OF_MACHINE, 0, 0, NULL },
	{ "spot_quota", "spot_quota", TEXT, OF_MACHINE, 0, 0, NULL },
	{ "sagemaker", "sagemaker", FLAG, OF_MACHINE, 0, 0, NULL },
	{ "price", "price", RATE, OF_PRICE, 0, 100000, NULL },
	{ "region", "region", TEXT, OF_PRICE, 0, 0, NULL },
	{ "dated", "dated", TEXT, OF_PRICE, 0, 0, NULL },
	{ "source", "source", TEXT, OF_PRICE, 0, 0, NULL },
	{ "figures", "figures", TEXT, OF_FIGURES, 0, 0, NULL },
	{ "figures_dated", "figures_dated", TEXT, OF_FIGURES, 0, 0, NULL },
};

static const char *const type_words[] = {
	[COUNT] = "an integer", [MEMORY] = "a size such as 512GiB", [RATE] = "a number",
	[TEXT] = "a string",    [FLAG] = "true or false",
};

static const struct member *member_find(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (strcmp(members[i].name, name) == 0)
			return &members[i];
	return NULL;
}

static bool in_range(const struct member *member, double value)
{
	return value >= member->min && value <= member->max;
}

/* Returns NULL if the text is not a value of its type. */
static json_t *value_of(const struct member *member, const struct node *node)
{
	enum scalar_kind kind;
	int64_t whole;

	if (node->kind != NODE_SCALAR || node_is_null(node))
		return NULL;
	kind = scalar_kind(node->text);
	switch (member->type) {
	case COUNT:
		if (node->quoted || kind != SCALAR_INT || !scalar_int(node->text, &whole) ||
		    !in_range(member, (double)whole))
			return NULL;
		return json_integer(whole);
	case RATE:
		if (node->quoted || (kind != SCALAR_INT && kind != SCALAR_REAL) ||
		    !in_range(member, scalar_real(node->text)))
			return NULL;
		return json_real(scalar_real(node->text));
	case MEMORY:
		/* A figure without a unit would be bytes, which is never meant. */
		if (!units_parse(FIELD_SIZE, node->text, &whole) || whole < 1 << 20)
			return NULL;
		return json_integer(whole >> 20);
	case WORD:
		return field_word_in(member->words, node->text) ? json_string(node->text) : NULL;
	case FLAG:
		if (node->quoted || kind != SCALAR_BOOL)
			return NULL;
		return json_boolean(node->text[0] == 't' || node->text[0] == 'T');
	case TEXT:
		break;
	}
	return strlen(node->text) > 0 ? json_string(node->text) : NULL;
}

/* Returns "a, b LAST c" of words with blanks between them. The caller frees it. */
static char *listed(const char *words, const char *last)
{
	struct sb text = SB_INIT;

	while (*words) {
		size_t len = strcspn(words, " ");

		if (text.len > 0)
			sb_adds(&text, words[len] ? ", " : last);
		sb_add(&text, words, len);
		words += len + (words[len] == ' ');
	}
	return sb_take(&text);
}

static void unknown_member(struct reporter *reporter, const struct entry *entry, const char *type)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	AUTO(auto_free) char *names = NULL;

	for (size_t i = 0; i < STK_LENGTH(members); i++)
		sb_addf(&words, "%s%s", i > 0 ? " " : "", members[i].name);
	names = listed(words.text, " and ");
	problem_hint(problem_error(reporter, entry->at, type,
				   "unknown field '%.80s' of an instance type", entry->key),
		     "there are %s", names);
}

static void wrong_value(struct reporter *reporter, struct mark at, const char *type,
			const struct member *member)
{
	AUTO(auto_free)
	char *says =
		member->words ? listed(member->words, " or ") : mem_copy(type_words[member->type]);

	if (member->max > 0)
		problem_error(reporter, at, type,
			      "'%s' of an instance type must be %s from %g to %.0f", member->name,
			      says, member->min, member->max);
	else
		problem_error(reporter, at, type, "'%s' of an instance type must be %s",
			      member->name, says);
}

/* Puts a row of a file over the known figures of its type. */
static void read_row(struct reporter *reporter, const struct entry *row, json_t *ret)
{
	const struct node *map = row->value;

	if (map->kind != NODE_MAP) {
		problem_hint(problem_error(reporter, row->at, row->key,
					   "'%.80s' must be a mapping of its figures", row->key),
			     "for example %.80s: {devices: 16, cores: 32, price: 21.50}", row->key);
		return;
	}
	for (size_t i = 0; i < map->count; i++) {
		const struct entry *entry = &map->entries[i];
		const struct member *member = member_find(entry->key);
		json_t *value = member ? value_of(member, entry->value) : NULL;

		if (!member)
			unknown_member(reporter, entry, row->key);
		else if (!value)
			wrong_value(reporter, entry->value->at, row->key, member);
		else
			js_put(ret, member->key, value);
	}
}

/* Puts a mapping of our file over a row. There is no mistake in it: a test reads them all. */
static void read_ours(struct catalogue_text text, json_t *ret)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	AUTO(problems_release) struct problems problems = { 0 };
	struct reporter reporter = { "configs/catalogue/instances.yaml", &problems };
	struct entry row = { .key = "" };
	struct node *map = NULL;

	if (text.len == 0 ||
	    spec_tree_parse(arena, &reporter, text.text, text.len, NULL, &map) < 0 || !map)
		return;
	row.value = map;
	read_row(&reporter, &row, ret);
}

/* Returns our row of a type, a new reference; NULL if we have none. */
static json_t *our_row(const char *type)
{
	struct catalogue_row found;
	json_t *row;

	if (!catalogue_seek(type, &found))
		return NULL;
	row = json_object();
	read_ours(found.all, row);
	read_ours(found.own, row);
	for (size_t i = 0; i < STK_LENGTH(members) && !json_object_get(row, "price"); i++)
		if (members[i].of == OF_PRICE)
			json_object_del(row, members[i].key);
	return row;
}

/* Forgets the sources of values that a row replaces: a new price takes all that is said of the old
 * one with it, other figures theirs. */
static void forget_sources(json_t *known, const struct node *map)
{
	bool price = map->kind == NODE_MAP && node_entry(map, "price"), machine = false;

	for (size_t i = 0; map->kind == NODE_MAP && i < map->count; i++) {
		const struct member *member = member_find(map->entries[i].key);

		machine |= member && member->of == OF_MACHINE;
	}
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if ((price && members[i].of == OF_PRICE) ||
		    (machine && members[i].of == OF_FIGURES))
			json_object_del(known, members[i].key);
}

static void read_rows(struct reporter *reporter, const struct node *rows, json_t *ret)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct entry *row = &rows->entries[i];
		json_t *known = json_object_get(ret, row->key);

		if (!known) {
			known = our_row(row->key);
			known = known ? known : json_object();
			json_object_set_new(ret, row->key, known);
		}
		forget_sources(known, row->value);
		read_row(reporter, row, known);
		if (json_object_get(known, "price") && !json_object_get(known, "source"))
			js_put_str(known, "source", reporter->file);
		if (!json_object_get(known, "figures"))
			js_put_str(known, "figures", reporter->file);
	}
}

static bool is_version(const struct entry *entry)
{
	return entry && entry->value->kind == NODE_SCALAR && strcmp(entry->value->text, "1") == 0;
}

static void read_text(struct reporter *reporter, const char *text, size_t len, json_t *ret)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	struct mark start = { .line = 1, .column = 1 };
	const struct entry *rows;
	struct node *tree;

	if (spec_file_parse(arena, reporter, text, len, &tree) < 0)
		return;
	rows = tree && tree->kind == NODE_MAP ? node_entry(tree, "instances") : NULL;
	if (!rows || rows->value->kind != NODE_MAP || !is_version(node_entry(tree, "version"))) {
		problem_hint(
			problem_error(reporter, tree ? tree->at : start, NULL,
				      "a catalogue of instances has 'version: 1' and a mapping "
				      "'instances'"),
			"for example instances: {ml.trn1.32xlarge: {price: 24.73}}");
		return;
	}
	for (size_t i = 0; i < tree->count; i++)
		if (&tree->entries[i] != rows && strcmp(tree->entries[i].key, "version") != 0)
			problem_error(reporter, tree->entries[i].at, NULL,
				      "unknown field '%.80s' of a catalogue of instances",
				      tree->entries[i].key);
	read_rows(reporter, rows->value, ret);
}

/* Returns the path of the user's own rows. *ret_must: the path was given, so the file must
 * exist. The caller frees it. */
static char *own_path(spec_getenv_fn *getenv_fn, bool *ret_must)
{
	const char *named = getenv_fn("STOKER_INSTANCES");

	*ret_must = named && *named;
	return *ret_must ? mem_copy(named) : home_config_file(getenv_fn, "instances.yaml");
}

static void read_own(spec_getenv_fn *getenv_fn, struct problems *problems, json_t *ret)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	AUTO(err_freep) struct err *err = NULL;
	bool must;
	AUTO(auto_free) char *path = own_path(getenv_fn, &must);
	struct reporter reporter = { path, problems };
	struct mark whole = { 0 };

	if (!path || (!must && !fs_exists(path)))
		return;
	if (bytes_read(&reporter, path, "the catalogue", &text, &err) == 0)
		read_text(&reporter, text.text, text.len, ret);
	else if (err)
		problem_hint(problem_error(&reporter, whole, NULL, "%s", err->message), "%s%s",
			     err->hint ? err->hint : "correct ",
			     err->hint ? "" : "STOKER_INSTANCES");
}

json_t *instances_load(spec_getenv_fn *getenv_fn, struct problems *ret_problems)
{
	json_t *catalogue = json_object();

	read_own(getenv_fn, ret_problems, catalogue);
	return catalogue;
}

char *instances_own_path(spec_getenv_fn *getenv_fn)
{
	bool must;

	return own_path(getenv_fn, &must);
}

/* Meaning of the letters of a family: "trn2u.48xlarge" is of the family trn, "g4dn.xlarge" of g,
 * of which g4ad has GPUs of another make. Source: Amazon EC2 instance type naming conventions, and
 * the lists of accelerated types. */
static const struct family {
	const char *letters, *kind;
} families[] = {
	{ "trn", ACCELERATOR_NEURON }, { "inf", ACCELERATOR_NEURON }, { "p", ACCELERATOR_NVIDIA },
	{ "g4ad", INSTANCE_OTHER },    { "g", ACCELERATOR_NVIDIA },   { "gr", ACCELERATOR_NVIDIA },
	{ "dl", INSTANCE_OTHER },      { "vt", INSTANCE_OTHER },      { "f", INSTANCE_OTHER },
};

static const char *without_ml(const char *type)
{
	return text_starts(type, ML) ? type + strlen(ML) : type;
}

/* Returns NULL if the name tells no accelerator. */
static const char *kind_by_name(const char *type)
{
	const char *name = without_ml(type);

	for (size_t i = 0; i < STK_LENGTH(families); i++) {
		size_t len = strlen(families[i].letters);

		if (strncmp(families[i].letters, name, len) == 0 && name[len] &&
		    strchr(".0123456789", name[len]))
			return families[i].kind;
	}
	return NULL;
}

/* Returns a row as the files have it, a new reference; NULL if none has it. */
static json_t *row_of(const json_t *catalogue, const char *type)
{
	json_t *own = json_object_get(catalogue, type);

	return own ? json_incref(own) : our_row(type);
}

bool instance_known(const json_t *catalogue, const char *type)
{
	struct catalogue_row row;
	const char *name = without_ml(type);

	return json_object_get(catalogue, type) || json_object_get(catalogue, name) ||
	       catalogue_seek(name, &row);
}

/* Says what the row leaves to the name of the type. */
static void complete(json_t *row, const char *type)
{
	const char *kind = js_str(row, "accelerator");
	AUTO(auto_free) char *ml = mem_format(ML "%s", without_ml(type));

	if (!kind)
		kind = js_int(row, "gpus", 0) > 0 ? ACCELERATOR_NVIDIA : kind_by_name(type);
	if (kind && strcmp(kind, INSTANCE_NONE) == 0)
		json_object_del(row, "accelerator");
	else
		js_put_str(row, "accelerator", kind);
	if (!json_object_get(row, "sagemaker") && catalogue_trains_on(ml))
		js_put(row, "sagemaker", json_true());
}

json_t *instance_find(const json_t *catalogue, const char *type)
{
	const char *name = without_ml(type);
	json_auto_t *plain = name != type ? row_of(catalogue, name) : NULL;
	json_auto_t *own = row_of(catalogue, type);
	json_t *row = json_object();

	js_put_str(row, "type", type);
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (members[i].of != OF_PRICE)
			js_put(row, members[i].key,
			       json_incref(json_object_get(plain, members[i].key)));
	json_object_update(row, own);
	complete(row, type);
	return row;
}

json_t *instance_types(const json_t *catalogue)
{
	struct catalogue_row row = { 0 };
	json_t *types = json_array(), *own;
	const char *type;

	while (catalogue_next(&row))
		json_array_append_new(types, json_stringn(row.type.text, row.type.len));
	json_object_foreach ((json_t *)(uintptr_t)catalogue, type, own)
		if (!catalogue_seek(type, &row))
			json_array_append_new(types, json_string(type));
	return types;
}

char *instance_row(const char *type)
{
	const char *kind = kind_by_name(type);

	return mem_format("%s: {vcpus: N, ram: NGiB, %sefa: N}", type,
			  kind && strcmp(kind, ACCELERATOR_NEURON) == 0   ? "devices: N, cores: N, "
			  : kind && strcmp(kind, ACCELERATOR_NVIDIA) == 0 ? "gpus: N, "
									  : "");
}

char *instance_nearest(const json_t *catalogue, const char *type)
{
	json_auto_t *types = instance_types(catalogue);
	const char *nearest = NULL;
	size_t limit = 2, i;
	json_t *one;

	json_array_foreach (types, i, one) {
		const char *name = json_string_value(one);
		size_t distance = text_distance(name, type, limit);

		if (distance > limit || (nearest && distance == limit))
			continue;
		nearest = name;
		limit = distance;
	}
	return nearest ? mem_copy(nearest) : NULL;
}

static size_t family_length(const char *type)
{
	return strcspn(type, ".");
}

/* True if the catalogue has a type of this family. */
static bool has_family(const json_t *catalogue, const char *type)
{
	json_auto_t *types = instance_types(catalogue);
	size_t len = family_length(type), i;
	json_t *name;

	json_array_foreach (types, i, name)
		if (strncmp(without_ml(json_string_value(name)), type, len + 1) == 0)
			return true;
	return false;
}

char *instance_meant(const json_t *catalogue, const char *type)
{
	const char *name = without_ml(type);
	AUTO(auto_free) char *nearest = NULL;

	if (instance_known(catalogue, type))
		return NULL;
	nearest = instance_nearest(catalogue, name);
	if (!nearest)
		return NULL;
	/* A known family may have a size that is new; its name is near to nothing then. Other
	 * families are known to AWS alone: only a slip of one letter tells. */
	if (!has_family(catalogue, name) &&
	    (kind_by_name(name) || text_distance(nearest, name, 1) > 1))
		return NULL;
	return mem_format("%s%s", name == type ? "" : ML, without_ml(nearest));
}
