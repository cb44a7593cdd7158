/* One layer on another: see layers.h. */
#include "jobs/spec/layers/layers.h"

static enum field_type type_of(field_id field)
{
	return field == FIELD_NONE ? FIELD_SECTION : field_table[field].type;
}

/* Returns the row of a member; FIELD_NONE if the table has none. */
static field_id member_of(field_id field, const char *key)
{
	if (type_of(field) == FIELD_OVERLAY)
		return field_child(FIELD_NONE, key);
	if (type_of(field) == FIELD_FREE)
		return field_item(field);
	return type_of(field) == FIELD_SECTION ? field_child(field, key) : FIELD_NONE;
}

static void merge_entry(struct arena *arena, field_id field, struct node *into, json_t *index,
			const struct entry *over, enum null_rule rule)
{
	field_id member = member_of(field, over->key);
	const json_t *known = json_object_get(index, over->key);
	struct entry *below = known ? &into->entries[json_integer_value(known)] : NULL;
	/* A name of no field stays, and is told; a hyperparameter may be null: it is omitted
	 * then. */
	bool is_wrong = member == FIELD_NONE && type_of(field) == FIELD_SECTION;
	bool takes_back = rule != NULL_COUNTS && node_is_null(over->value) && !is_wrong &&
			  (member == FIELD_NONE || type_of(member) != FIELD_ANY);
	struct node *value = over->value;

	if (member != FIELD_NONE && type_of(member) == FIELD_OVERLAY)
		rule = NULL_COUNTS;
	if (takes_back && below)
		below->value = NULL; /* removed when all are there */
	if (takes_back && (below || rule == NULL_DROPS))
		return;
	if (value->kind == NODE_MAP) {
		const struct node empty = { .kind = NODE_MAP, .at = value->at };
		bool has_map = below && below->value && below->value->kind == NODE_MAP;

		value = merge_nodes(arena, member, has_map ? below->value : &empty, value, rule);
	}
	if (below) {
		below->at = over->at;
		below->value = value;
		return;
	}
	node_add(arena, into, over->key, over->at, value);
	json_object_set_new_nocheck(index, over->key, json_integer((json_int_t)into->count - 1));
}

struct node *merge_nodes(struct arena *arena, field_id field, const struct node *base,
			 const struct node *over, enum null_rule rule)
{
	json_auto_t *index = json_object();
	struct node *merged = node_own(arena, base);
	size_t kept = 0;

	merged->at = over->at;
	for (size_t i = 0; i < merged->count; i++)
		json_object_set_new_nocheck(index, merged->entries[i].key,
					    json_integer((json_int_t)i));
	for (size_t i = 0; i < over->count; i++)
		merge_entry(arena, field, merged, index, &over->entries[i], rule);
	for (size_t i = 0; i < merged->count; i++)
		if (merged->entries[i].value)
			merged->entries[kept++] = merged->entries[i];
	merged->count = kept;
	return merged;
}
