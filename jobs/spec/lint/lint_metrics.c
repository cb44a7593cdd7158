/*
 * A metric's pattern that stops in the middle of 6.25e-05. The reader takes
 * the whole number all the same, but other tools given the pattern (SageMaker's
 * metric definitions) would plot 6.25.
 */
#include "jobs/base/text/number_pattern.h"
#include "jobs/spec/lint/lint.h"

/* Warns of the patterns of a list of metrics, whose items have them in this member. */
static void lint_list(struct binder *binder, enum spec_field list, const char *member)
{
	const struct node *metrics = access_node_of_field(binder->spec, list);

	for (size_t i = 0; metrics && metrics->kind == NODE_LIST && i < metrics->count &&
			   i < field_table[list].max_items;
	     i++) {
		const struct node *metric = metrics->entries[i].value;
		const struct entry *regex =
			metric->kind == NODE_MAP ? node_entry(metric, member) : NULL;
		AUTO(auto_free) char *field = NULL, *cuts = NULL;

		if (!regex || regex->value->kind != NODE_SCALAR)
			continue;
		cuts = number_pattern_cuts(regex->value->text);
		if (!cuts)
			continue;
		field = mem_format("%s[%zu].%s", field_table[list].path, i, member);
		problem_hint(problem_lint(&binder->reporter, regex->value->at, field,
					  "the pattern %s", cuts),
			     "use ([0-9.eE+-]+); stoker reads the complete number anyway");
	}
}

void lint_metrics(struct binder *binder)
{
	lint_list(binder, SPEC_METRICS, "regex");
	lint_list(binder, SPEC_METRIC_DEFINITIONS, "Regex");
}
