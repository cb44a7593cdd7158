/* What there is to say about one field, for `stoker help` and the manual. */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/resolved.h"

/* "local, slurm": the words of `engine` whose bits are set. */
static char *engines_text(unsigned engines)
{
	struct sb text = SB_INIT;
	const char *words = fields[SPEC_ENGINE].words;

	for (unsigned bit = 1; *words; bit <<= 1) {
		size_t n = strcspn(words, " ");

		if (engines & bit) {
			sb_adds(&text, text.len ? ", " : "");
			sb_add(&text, words, n);
		}
		words += n + (words[n] == ' ');
	}
	return sb_take(&text);
}

static char *type_text(const struct field *row)
{
	struct sb text = SB_INIT;
	AUTO(auto_free) char *range = field_range_text(row);
	AUTO(auto_free) char *words = row->words ? words_list(row->words, " or ") : NULL;

	if (words && row->type == FIELD_CHOICE) {
		sb_adds(&text, words);
		return sb_take(&text);
	}
	sb_adds(&text, field_type_text(row->type));
	if (range)
		sb_addf(&text, " %s", range);
	if (words)
		sb_addf(&text, ", or %s", words);
	return sb_take(&text);
}

void field_facts(field_id field, field_fact_fn *fn, void *arg)
{
	const struct field *row = &fields[field];
	AUTO(auto_free) char *type = type_text(row);

	fn(arg, "type", type);
	if (row->fallback)
		fn(arg, "default", row->fallback);
	else if (row->required)
		fn(arg, "required", "yes");
	if (row->engines) {
		AUTO(auto_free) char *engines = engines_text(row->engines);

		fn(arg, "engines", engines);
	}
	if (row->example)
		fn(arg, "example", row->example);
	if (row->in_key)
		fn(arg, "key", "part of the graph key: a change means another precompile");
	if (!row->ready)
		fn(arg, "version", "this one checks it and refuses to run it");
}

static void add_fact(void *arg, const char *what, const char *text)
{
	sb_addf(arg, "  %s:%*s%s\n", what, (int)(9 - strlen(what)), "", text);
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

	if (field == FIELD_NONE)
		return NULL;
	sb_addf(&text, "%s: %s\n", fields[field].path, fields[field].help);
	field_facts(field, add_fact, &text);
	if (fields[field].type == FIELD_SECTION)
		add_members(&text, field);
	return sb_take(&text);
}
