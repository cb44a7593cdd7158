/* Instance types, stoker's own and the user's: see instance.h. */
#include "jobs/spec/machines/instance.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/fields/units.h"
#include "jobs/spec/machines/catalogue.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/yaml.h"

#define ML "ml."

enum member_type { COUNT, MEMORY, RATE, TEXT, KIND };

/* Members of a row. `of_price`: the SageMaker type ml.TYPE does not take it from TYPE. */
static const struct member {
	const char *name, *key; /* in the file, in the row */
	enum member_type type;
	double min, max; /* range of a number */
	bool of_price;
} members[] = {
	{ "devices", "devices", COUNT, 0, 1024, false },
	{ "cores", "cores", COUNT, 0, 65536, false },
	{ "physical_cores", "physical_cores", COUNT, 0, 65536, false },
	{ "memory", "memory_mib", MEMORY, 0, 0, false },
	{ "vcpus", "vcpus", COUNT, 1, 65536, false },
	{ "ram", "ram_mib", MEMORY, 0, 0, false },
	{ "accelerator", "accelerator", KIND, 0, 0, false },
	{ "efa", "efa", COUNT, 0, 1024, false },
	{ "gbps", "gbps", RATE, 0, 1e6, false },
	{ "price", "price", RATE, 0, 100000, true },
	{ "region", "region", TEXT, 0, 0, true },
	{ "dated", "dated", TEXT, 0, 0, true },
	{ "source", "source", TEXT, 0, 0, true },
};

static const char *const type_words[] = {
	[COUNT] = "an integer", [MEMORY] = "a size such as 512GiB",    [RATE] = "a number",
	[TEXT] = "a string",    [KIND] = "neuron, gpu, other or none",
};

#define KINDS INSTANCE_NEURON " " INSTANCE_GPU " " INSTANCE_OTHER " " INSTANCE_NONE

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
		/* Without a unit it would be bytes, which is never meant. */
		if (!units_parse(FIELD_SIZE, node->text, &whole) || whole < 1 << 20)
			return NULL;
		return json_integer(whole >> 20);
	case KIND:
		return field_word_in(KINDS, node->text) ? json_string(node->text) : NULL;
	case TEXT:
		break;
	}
	return strlen(node->text) > 0 ? json_string(node->text) : NULL;
}

static void unknown_member(struct reporter *reporter, const struct entry *entry, const char *type)
{
	AUTO(sb_release) struct sb names = SB_INIT;
	size_t count = STK_LENGTH(members);

	for (size_t i = 0; i < count; i++)
		sb_addf(&names, "%s%s",
			i == 0          ? ""
			: i + 1 < count ? ", "
					: " and ",
			members[i].name);
	problem_hint(problem_error(reporter, entry->at, type,
				   "unknown field '%.80s' of an instance type", entry->key),
		     "there are %s", names.text);
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
		else if (!value && member->max > 0)
			problem_error(reporter, entry->value->at, row->key,
				      "'%s' of an instance type must be %s from %g to %g",
				      member->name, type_words[member->type], member->min,
				      member->max);
		else if (!value)
			problem_error(reporter, entry->value->at, row->key,
				      "'%s' of an instance type must be %s", member->name,
				      type_words[member->type]);
		else
			js_put(ret, member->key, value);
	}
}

/* A new price is not that of the place and day of the old one. */
static void forget_price(json_t *known, const struct node *map)
{
	if (map->kind != NODE_MAP || !node_entry(map, "price"))
		return;
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (members[i].of_price)
			json_object_del(known, members[i].key);
}

static void read_rows(struct reporter *reporter, const struct node *rows, json_t *ret)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct entry *row = &rows->entries[i];
		json_t *known = json_object_get(ret, row->key);

		if (!known) {
			known = json_object();
			json_object_set_new(ret, row->key, known);
		}
		forget_price(known, row->value);
		read_row(reporter, row, known);
		if (json_object_get(known, "price") && !json_object_get(known, "source"))
			js_put_str(known, "source", reporter->file);
	}
}

static bool is_version(const struct entry *entry)
{
	return entry && entry->value->kind == NODE_SCALAR && strcmp(entry->value->text, "1") == 0;
}

static void read_text(struct reporter *reporter, const char *text, size_t len, json_t *ret)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	struct mark start = { 1, 1, NULL };
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
	if (bytes_read(&reporter, path, &text, &err) == 0)
		read_text(&reporter, text.text, text.len, ret);
	else if (err)
		problem_hint(problem_error(&reporter, whole, NULL, "%s", err->message), "%s%s",
			     err->hint ? err->hint : "correct ",
			     err->hint ? "" : "STOKER_INSTANCES");
}

json_t *instances_load(spec_getenv_fn *getenv_fn, struct problems *ret_problems)
{
	json_t *catalogue = json_object();

	for (size_t i = 0; i < catalogue_file_count; i++) {
		struct reporter reporter = { "configs/catalogue", ret_problems };

		read_text(&reporter, catalogue_files[i].text, catalogue_files[i].len, catalogue);
	}
	read_own(getenv_fn, ret_problems, catalogue);
	return catalogue;
}

char *instances_own_path(spec_getenv_fn *getenv_fn)
{
	bool must;

	return own_path(getenv_fn, &must);
}

/* Meaning of the letters of a family: "trn2u.48xlarge" is of the family trn, "g4dn.xlarge" of g.
 * Source: Amazon EC2 instance type naming conventions, and the lists of accelerated types. */
static const struct family {
	const char *letters, *kind;
} families[] = {
	{ "trn", INSTANCE_NEURON }, { "inf", INSTANCE_NEURON }, { "p", INSTANCE_GPU },
	{ "g", INSTANCE_GPU },      { "gr", INSTANCE_GPU },     { "dl", INSTANCE_OTHER },
	{ "vt", INSTANCE_OTHER },   { "f", INSTANCE_OTHER },
};

static const char *without_ml(const char *type)
{
	return text_starts(type, ML) ? type + strlen(ML) : type;
}

/* Returns NULL if the name tells no accelerator. */
static const char *kind_by_name(const char *type)
{
	const char *name = without_ml(type);
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < STK_LENGTH(families); i++)
		if (strlen(families[i].letters) == len &&
		    strncmp(families[i].letters, name, len) == 0 && name[len] >= '0' &&
		    name[len] <= '9')
			return families[i].kind;
	return NULL;
}

json_t *instance_find(const json_t *catalogue, const char *type)
{
	const char *name = without_ml(type), *kind;
	const json_t *plain = name != type ? json_object_get(catalogue, name) : NULL;
	json_t *row = json_object();

	js_put_str(row, "type", type);
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (!members[i].of_price)
			js_put(row, members[i].key,
			       json_incref(json_object_get(plain, members[i].key)));
	json_object_update(row, json_object_get(catalogue, type));
	kind = js_str(row, "accelerator");
	if (!kind)
		js_put_str(row, "accelerator", kind_by_name(type));
	else if (strcmp(kind, INSTANCE_NONE) == 0)
		json_object_del(row, "accelerator");
	return row;
}

/* Guesses by the size in the name: 2 for large, 4 for xlarge, 4 N for Nxlarge, as almost all
 * types have them. */
static int64_t vcpus_by_name(const char *type)
{
	const char *size = strrchr(type, '.');
	long times = size ? strtol(size + 1, NULL, 10) : 0;

	if (size && strcmp(size, ".large") == 0)
		return 2;
	return times > 0 && times <= 1000 ? 4 * times : 4;
}

char *instance_row(const char *type)
{
	const char *name = without_ml(type), *kind = kind_by_name(type);
	int64_t vcpus = vcpus_by_name(name);
	/* GiB of each: c types have 2, r types 8, most others 4. */
	int64_t ram = vcpus * (*name == 'c' ? 2 : *name == 'r' ? 8 : 4);

	return mem_format("%s: {vcpus: %lld, ram: %lldGiB, %s, efa: 0}", type, (long long)vcpus,
			  (long long)ram,
			  kind && strcmp(kind, INSTANCE_NEURON) == 0 ? "devices: 1, cores: 2"
								     : "devices: 0");
}

const char *instance_nearest(const json_t *catalogue, const char *type)
{
	const char *name, *nearest = NULL;
	size_t limit = 2;
	json_t *row;

	json_object_foreach ((json_t *)(uintptr_t)catalogue, name, row) {
		size_t distance = text_distance(name, type, limit);

		if (distance > limit || (nearest && distance == limit))
			continue;
		nearest = name;
		limit = distance;
	}
	return nearest;
}

static size_t family_length(const char *type)
{
	return strcspn(type, ".");
}

/* True if the catalogue has a type of this family. */
static bool has_family(const json_t *catalogue, const char *type)
{
	size_t len = family_length(type);
	const char *name;
	json_t *row;

	json_object_foreach ((json_t *)(uintptr_t)catalogue, name, row)
		if (strncmp(without_ml(name), type, len + 1) == 0)
			return true;
	return false;
}

char *instance_meant(const json_t *catalogue, const char *type)
{
	const char *name = without_ml(type), *nearest;

	if (json_object_get(catalogue, type) || json_object_get(catalogue, name))
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
