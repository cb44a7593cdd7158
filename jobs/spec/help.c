/* What there is to say about one field, for `stoker help` and the manual. */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/resolved.h"

static void add_engines(struct sb *text, unsigned engines)
{
	const char *words = fields[SPEC_ENGINE].words;
	bool first = true;

	if (engines == 0) {
		sb_adds(text, "  engines:  all\n");
		return;
	}
	sb_adds(text, "  engines:  ");
	for (unsigned bit = 1; *words; bit <<= 1) {
		size_t n = strcspn(words, " ");

		if (engines & bit) {
			sb_adds(text, first ? "" : ", ");
			sb_add(text, words, n);
			first = false;
		}
		words += n + (words[n] == ' ');
	}
	sb_addc(text, '\n');
}

static void add_members(struct sb *text, field_id section)
{
	for (field_id id = section + 1; id < SPEC_FIELD_COUNT; id++)
		if (field_parent(id) == section)
			sb_addf(text, "  %s  %s\n", fields[id].path, fields[id].help);
}

char *spec_field_help(const char *dotted)
{
	struct sb text = SB_INIT;
	field_id field = field_find(dotted);
	const struct field *row;
	AUTO(auto_free) char *range = NULL;
	AUTO(auto_free) char *words = NULL;

	if (field == FIELD_NONE)
		return NULL;
	row = &fields[field];
	range = field_range_text(row);
	sb_addf(&text, "%s: %s\n  type:     %s", row->path, row->help, field_type_text(row->type));
	if (range)
		sb_addf(&text, " %s", range);
	if (row->words) {
		words = words_list(row->words, " or ");
		sb_addf(&text, "%s %s", row->type == FIELD_CHOICE ? ":" : ", or", words);
	}
	sb_addc(&text, '\n');
	if (row->fallback)
		sb_addf(&text, "  default:  %s\n", row->fallback);
	else if (row->required)
		sb_adds(&text, "  required\n");
	add_engines(&text, row->engines);
	if (row->example)
		sb_addf(&text, "  example:  %s\n", row->example);
	if (row->in_key)
		sb_adds(&text, "  part of the graph key: a change means another precompile\n");
	if (!row->ready)
		sb_adds(&text, "  not in this version yet\n");
	if (row->type == FIELD_SECTION)
		add_members(&text, field);
	return sb_take(&text);
}
