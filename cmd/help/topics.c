/* The topics of help that are neither commands nor fields: see topics.h. */
#include "cmd/help/topics.h"

#include <string.h>

#include "cmd/help/manual.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/js.h"
#include "jobs/base/variable.h"
#include "jobs/spec/fields/field.h"

/* Returns the depth of a field: 1 for retry.attempts. */
static size_t depth_of(field_id field)
{
	size_t depth = 0;

	for (field = field_parent(field); field != FIELD_NONE; field = field_parent(field))
		depth++;
	return depth;
}

static void write_spec(struct doc *doc)
{
	doc_paragraph(doc, "A spec is a YAML file with these fields; * stands for any name, [] for "
			   "an item of a list. 'stoker help FIELD' explains one field, such as "
			   "'stoker help retry.backoff.first'; 'stoker init' writes a commented "
			   "spec, 'stoker schema' prints the JSON Schema for editors.");
	doc_paragraph(doc, "Durations are 90s, 2h, 7d; sizes 8GiB. ${NAME} and ${NAME:-default} "
			   "take a value from the environment, $$ is a plain $; ${STOKER_…} is "
			   "filled in on the node.");
	sb_addc(&doc->text, '\n');
	doc->column = 34;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		size_t depth = depth_of(id);
		const char *leaf = field_leaf(id);
		AUTO(auto_free) char *term = mem_format("%*s%s", (int)(2 * depth), "", leaf);
		AUTO(auto_free)
		char *text = field_table[id].fallback ? mem_format("%s [%s]", field_table[id].help,
								   field_table[id].fallback)
						      : mem_copy(field_table[id].help);

		doc_item(doc, term, text);
	}
}

static void spec_json(void)
{
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		json_auto_t *object = json_object();

		js_put_str(object, "field", field_table[id].path);
		js_put_str(object, "type", field_type_text(field_table[id].type));
		js_put_str(object, "default", field_table[id].fallback);
		js_put_str(object, "help", field_table[id].help);
		js_put_str(object, "example", field_table[id].example);
		js_put(object, "ready", json_boolean(field_table[id].ready));
		out_json(object);
	}
}

static void write_exit_codes(struct doc *doc)
{
	doc_paragraph(doc,
		      "stoker ends with one of these codes, for every engine. A step of a pipeline "
		      "may be repeated after 8 and 75; with 'run --id' after any code.");
	sb_addc(&doc->text, '\n');
	manual_exit_codes(doc);
}

static void exit_codes_json(void)
{
	for (size_t i = 0; i < exitcode_row_count; i++) {
		json_auto_t *object =
			json_pack("{s:i, s:s, s:s}", "code", (int)exitcode_rows[i].code, "name",
				  exitcode_rows[i].name, "meaning", exitcode_rows[i].meaning);

		out_json(object);
	}
}

static void write_environment(struct doc *doc)
{
	doc_heading(doc, "variables that stoker reads");
	manual_variables(doc, VAR_READ);
	doc_paragraph(
		doc,
		"A spec may name other variables: as ${NAME} in a value, as env:NAME in secrets, "
		"and in pass_env. The node agent of a local job gets the variables of AWS, so that "
		"it reaches AWS as stoker does. The job's command does not get them.");
	doc_heading(doc, "variables of a training script");
	manual_variables(doc, VAR_GIVEN);
	doc_heading(doc, "variables that the compile kind sets");
	manual_variables(doc, VAR_KIND);
	doc_heading(doc, "variables of a notify command");
	manual_variables(doc, VAR_TOLD);
	doc_heading(doc, "variables that both inherit from your shell");
	manual_variables(doc, VAR_PASSED);
	doc_paragraph(doc,
		      "This is so on local and slurm. They are no part of the graph key.\n\n"
		      "A training script also gets the spec's env, secrets and env_file, and of "
		      "your shell what pass_env names. They may override what is inherited, and "
		      "none of the STOKER_ variables. No other variable of your shell is passed "
		      "on: a stray XLA_FLAGS would make a cache warm that is not. If a command "
		      "fails for want of a variable that is set in your shell, the cure of the "
		      "failure names it.");
	doc_paragraph(
		doc,
		"On batch and sagemaker a training script also has the environment of its "
		"container: the image's ENV, the keys of the job's role and the variables of the "
		"service. The variables above override them. STOKER_*, RUN_NEURON_PARALLEL_COMPILE "
		"and NEURON_COMPILE_CACHE_URL of the container are left out. A variable "
		"that steers the compiler (for kind neuron NEURON_CC_FLAGS, XLA_* and "
		"so on) is withheld if neither the spec nor the image is known to set it, because "
		"the graph key would miss it. 'stoker plan' lists the variables that may be "
		"withheld; the run names those that were.");
}

static const struct {
	unsigned use;
	const char *name;
} uses[] = {
	{ VAR_READ, "read" }, { VAR_PASSED, "passed" }, { VAR_GIVEN, "given" },
	{ VAR_KIND, "kind" }, { VAR_TOLD, "told" },     { VAR_LENT, "lent" },
	{ VAR_OURS, "ours" },
};

static void environment_json(void)
{
	for (int id = 0; id < VAR_COUNT; id++) {
		json_auto_t *object = json_object();
		json_t *list = json_array();

		for (size_t i = 0; i < STK_LENGTH(uses); i++)
			if (variable_rows[id].uses & uses[i].use)
				json_array_append_new(list, json_string(uses[i].name));
		js_put_str(object, "variable", variable_rows[id].name);
		js_put(object, "uses", list);
		js_put_str(object, "help", variable_rows[id].help);
		out_json(object);
	}
}

static void write_topics(struct doc *doc)
{
	doc_paragraph(doc, "Help topics besides the commands and the fields of the spec:");
	sb_addc(&doc->text, '\n');
	doc->column = 18;
	for (const struct topic *topic = topics; topic->name; topic++)
		doc_item(doc, topic->name, topic->summary);
}

const struct topic topics[] = {
	{ "spec", "the fields of a spec, as a tree, with their defaults", write_spec, spec_json },
	{ "exit-codes", "the exit codes of stoker", write_exit_codes, exit_codes_json },
	{ "environment", "the variables that stoker reads, and those that a job gets",
	  write_environment, environment_json },
	{ "failures", "the classes of failures, and what follows from them", topic_failures_write,
	  topic_failures_json },
	{ "json", "the JSON that commands print, key by key", topic_json_write, topic_json_json },
	{ "topics", "this list", write_topics, NULL },
	{ 0 },
};

const struct topic *topic_find(const char *name)
{
	for (const struct topic *topic = topics; topic->name; topic++)
		if (strcmp(topic->name, name) == 0)
			return topic;
	return NULL;
}
