/*
 * A metric's pattern that stops in the middle of 6.25e-05. The reader takes
 * the whole number all the same, but other tools given the pattern (SageMaker's
 * metric definitions) would plot 6.25.
 */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/lint/lint.h"

/* Skips the character class at `text` ('['), to behind its ']'. */
static const char *skip_class(const char *text)
{
	text++;
	text += *text == '^';
	text += *text == ']'; /* as the first character, ']' stands for itself */
	while (*text && *text != ']')
		text += text[0] == '\\' && text[1] ? 2 : 1;
	return *text ? text + 1 : text;
}

/* Returns the inside of the first capturing group; NULL if it is not found. The caller frees it. */
static char *first_group(const char *pattern)
{
	const char *start = NULL;
	int depth = 0, inside = 0;

	for (const char *at = pattern; *at;) {
		bool named = strncmp(at, "(?<", 3) == 0 && !strchr("=!", at[3]);

		named = named || strncmp(at, "(?P<", 4) == 0;
		if (*at == '[') {
			at = skip_class(at);
			continue;
		}
		if (*at == '(') {
			depth++;
			if (!start && (at[1] != '?' || named) && at[1] != '*') {
				const char *open = named ? strchr(at, '>') : at;

				if (!open)
					return NULL;
				start = open + 1;
				inside = depth;
				at = open;
			}
		} else if (*at == ')') {
			if (start && depth == inside)
				return mem_copy_n(start, (size_t)(at - start));
			depth--;
		}
		at += at[0] == '\\' && at[1] ? 2 : 1;
	}
	return NULL;
}

static bool cuts_exponent(const char *pattern)
{
	static const char sample[] = "6.25e-05";
	AUTO(auto_free) char *group = first_group(pattern);
	AUTO(auto_free) char *anchored = NULL;
	AUTO(regex_freep) struct regex *regex = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	if (!group)
		return false;
	anchored = mem_format("^(?:%s)", group);
	if (regex_compile(anchored, &regex, &err) < 0)
		return false; /* the group depends on text outside of it */
	return regex_find(regex, sample, strlen(sample), 0, spans) && spans[0].to == strlen("6.25");
}

void lint_metrics(struct binder *binder)
{
	const struct node *metrics = access_node_of_field(binder->spec, SPEC_METRICS);

	for (size_t i = 0; metrics && metrics->kind == NODE_LIST && i < metrics->count &&
			   i < field_table[SPEC_METRICS].max_items;
	     i++) {
		const struct node *metric = metrics->entries[i].value;
		const struct entry *regex =
			metric->kind == NODE_MAP ? node_entry(metric, "regex") : NULL;
		AUTO(auto_free) char *field = NULL;

		if (!regex || regex->value->kind != NODE_SCALAR ||
		    !cuts_exponent(regex->value->text))
			continue;
		field = mem_format("metrics[%zu].regex", i);
		problem_hint(problem_lint(&binder->reporter, regex->value->at, field,
					  "the pattern cuts 6.25e-05 to 6.25"),
			     "use ([0-9.eE+-]+); stoker reads the complete number anyway");
	}
}
