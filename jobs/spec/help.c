/* Facts about one field, for `stoker help` and the manual. */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/resolved.h"

/* Returns "local, slurm": the words of `engine` for the bits that are set. */
static char *engines_text(unsigned engines)
{
	struct sb text = SB_INIT;
	const char *words = field_table[SPEC_ENGINE].words;

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
	AUTO(auto_free) char *words = row->words ? field_words_list(row->words, " or ") : NULL;

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

void help_field_facts(field_id field, field_fact_fn *fn, void *arg)
{
	const struct field *row = &field_table[field];
	AUTO(auto_free) char *type = type_text(row);

	fn(arg, "type", type);
	if (row->fallback)
		fn(arg, "default", row->fallback);
	else if (row->required)
		fn(arg, "required", "yes");
	if (row->stands_for) {
		AUTO(auto_free) char *names = field_words_list(row->stands_for, " or ");

		fn(arg, "replaces", names);
	}
	if (row->is_path)
		fn(arg, "path", "~/ stands for your home");
	if (row->engines) {
		AUTO(auto_free) char *engines = engines_text(row->engines);

		fn(arg, "engines", engines);
	}
	if (row->example)
		fn(arg, "example", row->example);
	if (row->in_key)
		fn(arg, "key", "part of the graph key; a change means another precompile");
	if (!row->ready)
		fn(arg, "version", "checked by this version, but refused by run");
}
