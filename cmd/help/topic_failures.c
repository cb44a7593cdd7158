/* `stoker help failures`: see topics.h. */
#include "cmd/help/topics.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/screen/out.h"
#include "jobs/base/text/js.h"
#include "jobs/flow/failure.h"
#include "jobs/flow/flow.h"
#include "jobs/spec/failures.h"

static const char *const source_names[] = {
	[FAILURE_LOG] = "log",
	[FAILURE_RAISED] = "exception",
	[FAILURE_ENGINE] = "engine",
	[FAILURE_SOURCE] = "source line",
};

static const char *getenv_of_process(const char *name)
{
	return getenv(name);
}

/* Returns a new array: the rows of failures.yaml. *ret_problem is its first problem, or NULL; the
 * caller frees it. */
static json_t *own_rows(char **ret_problem)
{
	AUTO(problems_release) struct problems problems = { 0 };
	json_t *rows = failures_load(NULL, getenv_of_process, &problems);

	*ret_problem = problems.count > 0 ? problem_format(&problems.list[0]) : NULL;
	return rows;
}

/* Returns "exclude; as retry.attempts and retry.without_progress allow". */
static char *class_text(enum failure_class class)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const struct retry_row *row = &retry_rows[class];

	sb_addf(&text, "%s", flow_action_names[row->action]);
	if (row->action == ACTION_STOP)
		return sb_take(&text);
	if (!row->counts)
		sb_adds(&text, "; counts against limits.attempts only");
	else if (row->limit >= 0)
		sb_addf(&text, "; at most %lld time%s in a phase%s", (long long)row->limit,
			row->limit == 1 ? "" : "s",
			class == CLASS_DATA ? ", but as the budgets allow while older checkpoints "
					      "are left"
					    : "");
	else
		sb_adds(&text, "; as retry.attempts and retry.without_progress allow");
	if (row->same >= 0)
		sb_addf(&text, "; at most %lld times for one signature without a new checkpoint",
			(long long)row->same);
	return sb_take(&text);
}

static void write_classes(struct doc *doc)
{
	doc_heading(doc, "classes");
	doc_paragraph(doc,
		      "The class of a failure decides what follows. Only an engine or a service "
		      "can report spot or capacity; the same words in a log are a hint.");
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		AUTO(auto_free) char *text = class_text((enum failure_class) class);

		doc_item(doc, flow_class_names[class], text);
	}
}

static void write_own(struct doc *doc)
{
	AUTO(auto_free) char *problem = NULL;
	json_auto_t *rows = own_rows(&problem);
	const json_t *row;
	size_t i;

	doc_heading(doc, "your own rows");
	doc_paragraph(
		doc,
		"The rows of a spec's 'failures', and of stoker/failures.yaml in $XDG_CONFIG_HOME "
		"(~/.config), are tried first. A run keeps the rows of its creation.");
	if (problem) {
		AUTO(auto_free)
		char *text = mem_format("Unusable rows, with which no run starts: %s. 'stoker "
					"validate' shows the place and a cure.",
					problem);

		doc_paragraph(doc, text);
	}
	json_array_foreach (rows, i, row) {
		const char *hint = js_str(row, "hint");
		AUTO(auto_free)
		char *text = mem_format("%s%s%s", js_str(row, "class"), hint ? ": " : "",
					hint ? hint : "");

		doc_item(doc, js_str(row, "regex"), text);
	}
}

void topic_failures_write(struct doc *doc)
{
	const struct failure_row *row;

	doc->column = 26;
	write_classes(doc);
	write_own(doc);
	doc_heading(doc, "the table");
	doc_paragraph(doc,
		      "The first row that matches a line decides. A pattern is literal text, upper "
		      "or lower case; * stands for any text, # for a number above zero, ^ for the "
		      "beginning of the line. A line that no row matches has the class unknown.");
	for (size_t i = 0; (row = failure_row_at(i)); i++) {
		AUTO(auto_free)
		char *text = mem_format(
			"%s, %s%s: \"%s\"", flow_class_names[row->class], source_names[row->source],
			row->role == FAILURE_SYMPTOM ? ", symptom" : "", row->pattern);

		doc_item(doc, row->id, text);
		if (row->hint[0])
			doc_item_line(doc, row->hint);
	}
}

void topic_failures_json(void)
{
	AUTO(auto_free) char *problem = NULL;
	json_auto_t *own = own_rows(&problem);
	const struct failure_row *row;
	json_t *mine;
	size_t i;

	if (problem)
		out_warning("%s", problem);
	json_array_foreach (own, i, mine) {
		js_put_str(mine, "source", "own");
		out_json(mine);
	}
	for (i = 0; (row = failure_row_at(i)); i++) {
		json_auto_t *object = json_object();

		js_put_str(object, "id", row->id);
		js_put_str(object, "source", source_names[row->source]);
		js_put_str(object, "pattern", row->pattern);
		js_put(object, "symptom", json_boolean(row->role == FAILURE_SYMPTOM));
		js_put_str(object, "class", flow_class_names[row->class]);
		js_put_str(object, "action", flow_action_names[retry_rows[row->class].action]);
		js_put_str(object, "hint", row->hint);
		out_json(object);
	}
}
