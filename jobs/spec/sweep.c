/*
 * The section `sweep`: which cells there are, as overrides of the spec. See spec.h.
 *
 * Every value is checked here against the row of its field, at the place where it is written; what
 * fields mean to each other is checked when a cell is loaded as a spec of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/resolved.h"

#define NAME_BYTES 120 /* of a cell */

/* The ways to say which cells there are. */
enum sweep_kind { SWEEP_NONE = -1, GRID, ONE_AT_A_TIME, LIST, LADDER, SWEEP_KINDS };
static const struct {
	enum spec_field field;
	bool by_field;  /* a map of fields with lists of values, no list of cells */
	bool with_spec; /* the spec as it is comes first */
} kinds[SWEEP_KINDS] = {
	[GRID] = { SPEC_SWEEP_GRID, true, false },
	[ONE_AT_A_TIME] = { SPEC_SWEEP_ONE, true, true },
	[LIST] = { SPEC_SWEEP_LIST, false, false },
	[LADDER] = { SPEC_SWEEP_LADDER, false, true },
};

/* Returns the kind that is written first in the table; SWEEP_NONE if there is none. */
static enum sweep_kind kind_of(const struct spec *spec)
{
	for (int kind = 0; kind < SWEEP_KINDS; kind++)
		if (spec_is_set(spec, kinds[kind].field))
			return (enum sweep_kind)kind;
	return SWEEP_NONE;
}

/* ---- values ---- */

/* Returns the values of an entry of a map by field: the items of a list, or the one value. */
static size_t values_of(const struct entry *entry, const struct node *ret[])
{
	const struct node *node = entry->value;

	if (node->kind != NODE_LIST) {
		if (ret)
			ret[0] = node;
		return 1;
	}
	for (size_t i = 0; ret && i < node->count; i++)
		ret[i] = node->entries[i].value;
	return node->count;
}

static void add_json_text(struct sb *text, const char *value)
{
	json_auto_t *string = json_string(value);
	AUTO(auto_free) char *line = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	sb_adds(text, line ? line : "\"\"");
}

/* Appends a value as YAML, variables not expanded yet. */
static void add_yaml(struct sb *text, const struct node *node)
{
	if (node->kind == NODE_LIST) {
		sb_addc(text, '[');
		for (size_t i = 0; i < node->count; i++) {
			sb_adds(text, i > 0 ? ", " : "");
			add_yaml(text, node->entries[i].value);
		}
		sb_addc(text, ']');
	} else if (node->kind == NODE_SCALAR && !node->quoted &&
		   (node->expanded || scalar_kind(node->written) != SCALAR_TEXT)) {
		sb_adds(text, *node->written ? node->written : "null");
	} else {
		add_json_text(text, node->written);
	}
}

/* Returns "field=value", as --set takes it. The caller frees it. */
static char *set_text(const char *path, const struct node *node)
{
	field_id field = field_find(path);
	struct sb text = SB_INIT;

	sb_addf(&text, "%s=", path);
	if (node->kind == NODE_SCALAR && field != FIELD_NONE &&
	    field_table[field].type != FIELD_ANY && field_table[field].type != FIELD_LIST)
		sb_adds(&text, node->written);
	else
		add_yaml(&text, node);
	return sb_take(&text);
}

/* ---- checks ---- */

static field_id check_path(struct binder *binder, const struct entry *entry, const char *where)
{
	static const char *const never[] = { "sweep", "version", "extends", "profiles", NULL };

	return set_check_path(binder, entry, where, never, "cannot differ between cells");
}

/* Checks a value against its row, away from the spec that is being made. */
static void check_value(struct binder *binder, field_id field, const char *path,
			const struct node *node)
{
	struct spec aside = { .file = binder->spec->file };
	struct binder apart = *binder;
	const struct entry entry = { path, node->at, (struct node *)(uintptr_t)node };

	apart.spec = &aside;
	json_decref(bind_field_as(&apart, field, path, &entry));
	memcpy(binder->shapes, apart.shapes, sizeof binder->shapes);
}

static void check_by_field(struct binder *binder, const struct node *map, const char *where)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct entry *entry = &map->entries[i];
		AUTO(auto_free) const struct node **values = NULL;
		size_t count = values_of(entry, NULL);
		field_id field = check_path(binder, entry, where);

		if (field == FIELD_NONE)
			continue;
		if (count == 0) {
			problem_hint(problem_error(&binder->reporter, entry->at, where,
						   "'%s' in '%s' has no values", entry->key, where),
				     "write a list: %s: [%s]", entry->key,
				     field_table[field].example);
			continue;
		}
		values = mem_zero(count, sizeof(struct node *));
		values_of(entry, values);
		for (size_t k = 0; k < count; k++)
			check_value(binder, field, entry->key, values[k]);
	}
}

static void check_items(struct binder *binder, const struct node *list, const char *where)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct node *item = list->entries[i].value;

		for (size_t k = 0; item->kind == NODE_MAP && k < item->count; k++) {
			const struct entry *entry = &item->entries[k];
			field_id field = check_path(binder, entry, where);

			if (field != FIELD_NONE)
				check_value(binder, field, entry->key, entry->value);
		}
	}
}

/* Returns how many cells there are, more than SPEC_SWEEP_CELLS_MAX for any number beyond. */
static size_t count_cells(enum sweep_kind kind, const struct node *node)
{
	size_t count = kind == GRID && node->count > 0 ? 1 : kinds[kind].with_spec;

	if (!kinds[kind].by_field)
		return count + node->count;
	for (size_t i = 0; i < node->count && count <= SPEC_SWEEP_CELLS_MAX; i++) {
		size_t values = values_of(&node->entries[i], NULL);

		count = kind == GRID ? count * values : count + values;
	}
	return count;
}

/* Reports cells that are none, or too many. */
static void check_count(struct binder *binder, enum sweep_kind kind, const struct node *node)
{
	size_t cells = count_cells(kind, node);
	size_t repeat = (size_t)spec_int(binder->spec, SPEC_SWEEP_REPEAT);
	const char *path = field_table[kinds[kind].field].path;

	if (node->count == 0 && kinds[kind].by_field) /* an empty list was reported */
		problem_hint(spec_error(binder, kinds[kind].field, NULL, "'%s' has no cells", path),
			     "for example: {hyperparameters.batch_size: [16, 32]}");
	else if (cells > SPEC_SWEEP_CELLS_MAX)
		problem_hint(spec_error(binder, kinds[kind].field, NULL,
					"'%s' has more than %d cells", path, SPEC_SWEEP_CELLS_MAX),
			     "leave values out, or use 'one_at_a_time' in place of every "
			     "combination");
	else if (repeat > 0 && cells * repeat > SPEC_SWEEP_RUNS_MAX)
		problem_hint(spec_error(binder, SPEC_SWEEP_REPEAT, NULL,
					"%zu cells, %zu times each, are more than %d runs", cells,
					repeat, SPEC_SWEEP_RUNS_MAX),
			     "leave values out, or repeat less");
}

static void check_fields(struct binder *binder, enum sweep_kind kind)
{
	const struct spec *spec = binder->spec;

	if (spec_is_set(spec, SPEC_SWEEP_ON_TOP_OF) && kind != LADDER)
		problem_hint(spec_error(binder, SPEC_SWEEP_ON_TOP_OF, NULL,
					"'sweep.on_top_of' is of a ladder, and there is none"),
			     "remove it, or write the cells as 'ladder'");
	if (json_is_real(spec_get(spec, SPEC_SWEEP_STOP_WHEN_COST)) && spec_price(spec) <= 0 &&
	    !json_is_real(spec_get(spec, SPEC_RESOURCES_PRICE)))
		problem_hint(spec_error(binder, SPEC_SWEEP_STOP_WHEN_COST, NULL,
					"'sweep.stop_when.cost' needs a price, and none is known"),
			     "set the price of a node and hour in USD: resources: {price: 21.50}");
}

void sweep_check(struct binder *binder)
{
	enum sweep_kind kind = kind_of(binder->spec);
	const struct node *node;

	if (!spec_is_set(binder->spec, SPEC_SWEEP))
		return;
	if (kind == SWEEP_NONE) {
		problem_hint(spec_error(binder, SPEC_SWEEP, NULL, "'sweep' has no cells"),
			     "write one of grid, one_at_a_time, list and ladder; for example "
			     "grid: {hyperparameters.batch_size: [16, 32]}");
		return;
	}
	for (int other = (int)kind + 1; other < SWEEP_KINDS; other++)
		if (spec_is_set(binder->spec, kinds[other].field)) {
			problem_hint(spec_error(binder, kinds[other].field, NULL,
						"'%s' and '%s' exclude each other",
						field_table[kinds[kind].field].path,
						field_table[kinds[other].field].path),
				     "keep one of them");
			return;
		}
	node = access_node_of_field(binder->spec, kinds[kind].field);
	if (!node_is_null(node) && node->kind != (kinds[kind].by_field ? NODE_MAP : NODE_LIST))
		return; /* which was reported */
	if (kinds[kind].by_field)
		check_by_field(binder, node, field_table[kinds[kind].field].path);
	else
		check_items(binder, node, field_table[kinds[kind].field].path);
	check_count(binder, kind, node);
	check_fields(binder, kind);
}

/* ---- cells ---- */

/* The name of a cell: the value of `name`, or the values that it sets: "batch_size=32, nodes=2". */
static void add_name(struct sb *name, const char *path, const char *value)
{
	static const char *const short_ones[] = { "hyperparameters.", "env." };

	for (size_t i = 0; i < STK_LENGTH(short_ones); i++)
		if (text_starts(path, short_ones[i]))
			path += strlen(short_ones[i]);
	sb_addf(name, "%s%s=%s", name->len > 0 ? ", " : "", path, value);
}

void spec_sweep_put_on_top(json_t *sets, const json_t *more)
{
	json_t *set;
	size_t i;

	json_array_foreach (more, i, set)
		if (!text_starts(json_string_value(set), "name="))
			json_array_append(sets, set);
}

/* The cell in the making. */
struct cell {
	json_t *sets;
	struct sb name;
	char *own_name; /* NULL: none */
};

static void cell_begin(struct cell *cell, const json_t *before)
{
	*cell = (struct cell){ .sets = json_array(), .name = SB_INIT_MAX(NAME_BYTES) };
	spec_sweep_put_on_top(cell->sets, before);
}

static void cell_set(struct cell *cell, const char *path, const struct node *node)
{
	AUTO(auto_free) char *set = set_text(path, node);

	json_array_append_new(cell->sets, json_string(set));
	if (field_find(path) == SPEC_NAME) {
		free(cell->own_name);
		cell->own_name = mem_copy(node->text);
	}
	add_name(&cell->name, path, strchr(set, '=') + 1);
}

/* Appends the cell; returns its sets, borrowed. */
static const json_t *cell_end(struct cell *cell, json_t *cells)
{
	json_t *object = json_object();
	const char *name = cell->own_name       ? cell->own_name
			   : cell->name.len > 0 ? cell->name.text
						: "the spec as it is";

	js_put(object, "name", js_text(name, strlen(name)));
	js_put(object, "sets", cell->sets);
	json_array_append_new(cells, object);
	free(cell->own_name);
	sb_release(&cell->name);
	return cell->sets;
}

/* The last field varies fastest. */
static void make_grid(const struct node *map, json_t *cells)
{
	size_t count = count_cells(GRID, map);

	for (size_t i = 0; i < count; i++) {
		size_t below = count, rest = i;
		struct cell cell;

		cell_begin(&cell, NULL);
		for (size_t k = 0; k < map->count; k++) {
			const struct entry *entry = &map->entries[k];
			size_t values = values_of(entry, NULL);
			AUTO(auto_free)
			const struct node **all = mem_zero(values, sizeof(struct node *));

			values_of(entry, all);
			below /= values;
			cell_set(&cell, entry->key, all[rest / below]);
			rest %= below;
		}
		cell_end(&cell, cells);
	}
}

static void make_one_at_a_time(const struct node *map, json_t *cells)
{
	for (size_t k = 0; k < map->count; k++) {
		const struct entry *entry = &map->entries[k];
		size_t values = values_of(entry, NULL);
		AUTO(auto_free) const struct node **all = mem_zero(values, sizeof(struct node *));

		values_of(entry, all);
		for (size_t i = 0; i < values; i++) {
			struct cell cell;

			cell_begin(&cell, NULL);
			cell_set(&cell, entry->key, all[i]);
			cell_end(&cell, cells);
		}
	}
}

static void make_items(const struct node *list, bool on_top, json_t *cells)
{
	const json_t *before = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct node *item = list->entries[i].value;
		struct cell cell;

		cell_begin(&cell, on_top ? before : NULL);
		for (size_t k = 0; item->kind == NODE_MAP && k < item->count; k++)
			cell_set(&cell, item->entries[k].key, item->entries[k].value);
		before = cell_end(&cell, cells);
	}
}

static json_t *make_cells(enum sweep_kind kind, const struct node *node, bool on_last)
{
	json_t *cells = json_array();

	if (kinds[kind].with_spec) {
		struct cell cell;

		cell_begin(&cell, NULL);
		cell_end(&cell, cells);
	}
	switch (kind) {
	case GRID:
		make_grid(node, cells);
		break;
	case ONE_AT_A_TIME:
		make_one_at_a_time(node, cells);
		break;
	case LIST:
	case LADDER:
		make_items(node, kind == LADDER && on_last, cells);
		break;
	case SWEEP_NONE:
	case SWEEP_KINDS:
		break;
	}
	return cells;
}

json_t *spec_sweep(const struct spec *spec)
{
	enum sweep_kind kind = kind_of(spec);
	bool on_best = kind == LADDER && spec_says(spec, SPEC_SWEEP_ON_TOP_OF, "best");
	int64_t deadline = spec_ms(spec, SPEC_SWEEP_STOP_WHEN_DEADLINE);
	json_t *sweep;

	if (!spec_is_set(spec, SPEC_SWEEP) || kind == SWEEP_NONE)
		return NULL;
	sweep = json_object();
	js_put_str(sweep, "kind", field_leaf((field_id)kinds[kind].field));
	js_put(sweep, "repeat", json_integer(spec_int(spec, SPEC_SWEEP_REPEAT)));
	js_put(sweep, "parallel", json_integer(spec_int(spec, SPEC_SWEEP_PARALLEL)));
	js_put(sweep, "on_best", json_boolean(on_best));
	if (json_is_number(spec_get(spec, SPEC_SWEEP_STOP_WHEN_COST)))
		js_put(sweep, "cost", json_real(spec_real(spec, SPEC_SWEEP_STOP_WHEN_COST)));
	if (deadline != SPEC_WORD)
		js_put(sweep, "deadline_ms", json_integer(deadline));
	js_put(sweep, "cells",
	       make_cells(kind, access_node_of_field(spec, kinds[kind].field), !on_best));
	return sweep;
}
