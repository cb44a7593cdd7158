/* The field table as data and how its rows nest: see field.h. */
#include "jobs/spec/fields/field.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define READY .ready = true
#define LATER .ready = false
/* The type names of fields.def are bare words, so paste the prefix here. */
#define FIELD(id, field_path, field_type, field_default, field_help, field_example, ...)           \
	[SPEC_##id] = { .path = (field_path),                                                      \
			.type = FIELD_##field_type,                                                \
			.fallback = (field_default),                                               \
			.help = (field_help),                                                      \
			.example = (field_example),                                                \
			__VA_ARGS__ },

const struct field field_table[SPEC_FIELD_COUNT] = {
#include "jobs/spec/fields/fields.def"
};

#undef FIELD

/* Pattern of a field of a cron line: values, ranges, steps and lists of them, names in any case.
 * It is for editors: cron_parse() tells more. */
#define CRON_ITEM(value) "(?:\\*|" value "(?:-" value ")?)(?:/[0-9]{1,2})?"
#define CRON_PART(value) CRON_ITEM(value) "(?:," CRON_ITEM(value) ")*"
#define CRON_MONTH                                                                                 \
	"(?:0?[1-9]|1[0-2]|[Jj][Aa][Nn]|[Ff][Ee][Bb]|[Mm][Aa][Rr]|[Aa][Pp][Rr]|[Mm][Aa][Yy]"       \
	"|[Jj][Uu][Nn]|[Jj][Uu][Ll]|[Aa][Uu][Gg]|[Ss][Ee][Pp]|[Oo][Cc][Tt]|[Nn][Oo][Vv]"           \
	"|[Dd][Ee][Cc])"
#define CRON_WEEKDAY                                                                               \
	"(?:0?[0-7]|[Ss][Uu][Nn]|[Mm][Oo][Nn]|[Tt][Uu][Ee]|[Ww][Ee][Dd]|[Tt][Hh][Uu]|[Ff][Rr][Ii]" \
	"|[Ss][Aa][Tt])"

const struct shape_row field_shape_rows[SHAPE_COUNT] = {
#define SHAPE(id, ...) [SHAPE_##id] = { __VA_ARGS__ },
#include "jobs/spec/fields/shapes.def"
#undef SHAPE
};

/* Returns the length of the parent's part of `path`: 5 in "retry.first", 8 in "command[]", 0 at
 * the top. */
static size_t parent_length(const char *path)
{
	size_t len = strlen(path);

	if (len > 2 && strcmp(path + len - 2, "[]") == 0)
		return len - 2;
	while (len > 0 && path[len - 1] != '.')
		len--;
	return len > 0 ? len - 1 : 0;
}

field_id field_child(field_id parent, const char *name)
{
	const char *prefix = parent == FIELD_NONE ? "" : field_table[parent].path;
	size_t prefix_len = strlen(prefix);

	/* Members follow their section at once, so stop where the prefix ends. */
	for (field_id id = parent + 1; id < SPEC_FIELD_COUNT; id++) {
		const char *path = field_table[id].path;

		if (prefix_len == 0) {
			if (strcmp(path, name) == 0)
				return id;
			continue;
		}
		if (strncmp(path, prefix, prefix_len) != 0)
			break;
		if (path[prefix_len] == '.' && strcmp(path + prefix_len + 1, name) == 0)
			return id;
	}
	return FIELD_NONE;
}

field_id field_item(field_id parent)
{
	return parent + 1; /* a table test ensures this for every list and free map */
}

bool field_is_own(const char *name)
{
	return text_starts(name, "x-") && name[2];
}

field_id field_parent(field_id field)
{
	const char *path = field_table[field].path;
	size_t len = parent_length(path);

	if (len == 0)
		return FIELD_NONE;
	for (field_id id = field - 1; id >= 0; id--)
		if (strlen(field_table[id].path) == len &&
		    strncmp(field_table[id].path, path, len) == 0)
			return id;
	return FIELD_NONE;
}

field_id field_find(const char *dotted)
{
	field_id at = FIELD_NONE;

	while (*dotted) {
		AUTO(auto_free) char *name = NULL;
		size_t len;

		if (at != FIELD_NONE && field_table[at].type == FIELD_FREE)
			return field_item(at);
		if (at != FIELD_NONE && field_table[at].type == FIELD_LIST) {
			if (*dotted != '[')
				return FIELD_NONE;
			len = strcspn(dotted, "]");
			if (dotted[len] != ']')
				return FIELD_NONE;
			at = field_item(at);
			dotted += len + 1;
		} else if (at == FIELD_NONE || field_table[at].type == FIELD_SECTION) {
			len = strcspn(dotted, ".[");
			name = mem_copy_n(dotted, len);
			at = field_child(at, name);
			if (at == FIELD_NONE)
				return FIELD_NONE;
			dotted += len;
		} else {
			return FIELD_NONE;
		}
		if (*dotted == '.' && dotted[1])
			dotted++;
	}
	return at;
}

const char *field_leaf(field_id field)
{
	const char *path = field_table[field].path;
	size_t len = parent_length(path);

	return path[len] == '.' ? path + len + 1 : path + len;
}

const char *field_type_text(enum field_type type)
{
	switch (type) {
	case FIELD_SECTION:
		return "a mapping of fields";
	case FIELD_LIST:
		return "a list";
	case FIELD_FREE:
		return "a mapping of names and values";
	case FIELD_STRING:
		return "a string";
	case FIELD_INT:
		return "an integer";
	case FIELD_REAL:
		return "a number";
	case FIELD_BOOL:
		return "true or false";
	case FIELD_CHOICE:
		return "a word of the list";
	case FIELD_DURATION:
		return "a duration";
	case FIELD_SIZE:
		return "a size";
	case FIELD_PERCENT:
		return "a percentage";
	case FIELD_MARGIN:
		return "a percentage or a number";
	case FIELD_ANY:
		return "a number, a string, true, false, a list or null";
	case FIELD_OVERLAY:
		return "a mapping of fields of the spec";
	case FIELD_TYPE_COUNT:
		break;
	}
	return "";
}

/* A bound in the unit that people write. */
static char *bound_text(enum field_type type, int64_t bound)
{
	switch (type) {
	case FIELD_DURATION:
		if (bound == 0 || (bound % 1000 != 0))
			return mem_format(bound ? "%lldms" : "%llds", (long long)bound);
		if (bound % 86400000 == 0)
			return mem_format("%lldd", (long long)(bound / 86400000));
		if (bound % 3600000 == 0)
			return mem_format("%lldh", (long long)(bound / 3600000));
		return mem_format("%llds", (long long)(bound / 1000));
	case FIELD_SIZE:
		for (int i = 4; i > 0; i--)
			if (bound % (INT64_C(1) << (10 * i)) == 0)
				return mem_format("%lld%ciB", (long long)(bound >> (10 * i)),
						  "BKMGT"[i]);
		return mem_format("%lldB", (long long)bound);
	case FIELD_PERCENT:
		return mem_format("%g%%", (double)bound / 1000.0);
	default:
		return mem_format("%lld", (long long)bound);
	}
}

char *field_range_text(const struct field *field)
{
	AUTO(auto_free) char *low = NULL;
	AUTO(auto_free) char *high = NULL;

	if (field->min == 0 && field->max == 0)
		return NULL;
	low = bound_text(field->type, field->min);
	high = bound_text(field->type, field->max);
	if (field->min == field->max)
		return mem_copy(low);
	return mem_format("from %s to %s", low, high);
}

bool field_word_in(const char *words, const char *word)
{
	size_t len = strlen(word);

	if (len == 0 || strchr(word, ' '))
		return false;
	while (words && *words) {
		size_t n = strcspn(words, " ");

		if (n == len && strncmp(words, word, n) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

char *field_words_list(const char *words, const char *last_separator)
{
	struct sb list = SB_INIT;

	while (*words) {
		size_t n = strcspn(words, " ");

		if (list.len > 0)
			sb_adds(&list, words[n] ? ", " : last_separator);
		sb_add(&list, words, n);
		words += n + (words[n] == ' ');
	}
	return sb_take(&list);
}
