/*
 * The pages of man(1), from the tables. Only the build calls `stoker manual PAGE DATE`, for each
 * page, and installs the output.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/args/words.h"
#include "cmd/cmd.h"
#include "cmd/help/manual.h"
#include "cmd/help/topics.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/spec/fields/field.h"
#include "jobs/spec/template.h"
#include "jobs/store/order.h"

#define SOURCE_NAME "stoker " STOKER_VERSION

/* ---- stoker(1) ------------------------------------------------------------------ */

static const struct {
	const char *path, *help;
} files[] = {
	{ "~/.local/state/stoker", "the state directory, unless --state, STOKER_STATE or "
				   "XDG_STATE_HOME name another: the journal of every run "
				   "(journal.db, or a file an event where machines share it), and "
				   "in runs/ the folder of each run with its logs and outputs, if "
				   "the spec names no workspace" },
	{ "CACHE/stoker/KEY.json", "the compile manifest of a graph key, in the compile cache: the "
				   "graphs that it needs, with sizes and checksums" },
	{ "CHECKPOINT.stoker.json", "the mark beside a complete checkpoint" },
	{ "../lib/stoker/agent", "the node agent and its libraries, relative to the program" },
	{ "../share/stoker/stoker.schema.json",
	  "the JSON Schema of specs, for editors, relative to "
	  "the program" },
	{ "../share/doc/stoker", "seen from the program: README.md; in docs/ the pages on "
				 "workflow, cache, checkpoints, failures, costs, AWS and more; in "
				 "examples/ the starter specs and the quickstart; in licences/ "
				 "those of the libraries that come along" },
};

static void write_stoker(struct doc *doc, const struct cmd *table)
{
	doc_heading(doc, "name");
	doc_paragraph(doc, "stoker - precompile a training job, prove the cache, then train");
	doc_heading(doc, "synopsis");
	doc_paragraph(doc, "stoker [OPTION…] COMMAND …");
	doc_heading(doc, "description");
	doc_paragraph(doc,
		      "stoker takes a job spec, a YAML file that stoker-spec(5) describes, and "
		      "carries a training job through two phases without wasting an "
		      "accelerator-hour: precompile, a short run that fills the compile cache "
		      "with every graph that training needs, and train, started only when the "
		      "cache is proved complete. If nothing changed that decides about graphs, "
		      "the cache is warm and the first phase is left out.");
	doc_paragraph(doc, "Each decision is journalled before its effect. After any kill 'stoker "
			   "resume' continues the run; nothing is lost or done twice. Results go "
			   "to standard output, messages to standard error; --json prints one JSON "
			   "object a line on standard output and nothing else there.");
	doc_heading(doc, "commands");
	for (const struct cmd *cmd = table; cmd->name; cmd++)
		if (cmd_is_shown(cmd))
			manual_command(doc, cmd);
	doc_heading(doc, "options of every command");
	manual_options(doc, OPTS_GLOBAL);
	doc_heading(doc, "arguments");
	for (size_t i = 0; i < word_row_count; i++)
		doc_item(doc, word_rows[i].name, word_rows[i].help);
	doc_heading(doc, "exit status");
	manual_exit_codes(doc);
	doc_heading(doc, "environment");
	manual_variables(doc, VAR_READ);
	doc_paragraph(
		doc,
		"The variables of a job are described in stoker-node(8). A notify command gets:");
	manual_variables(doc, VAR_TOLD);
	doc_heading(doc, "files");
	for (size_t i = 0; i < STK_LENGTH(files); i++)
		doc_item(doc, files[i].path, files[i].help);
	doc_heading(doc, "see also");
	doc_paragraph(doc, "stoker-spec(5), stoker-json(7), stoker-node(8); in "
			   "../share/doc/stoker/docs: tutorial.md to "
			   "begin with, porting.md for a model that is new to the device.");
}

/* ---- stoker-spec(5) ------------------------------------------------------------- */

static void add_fact(void *arg, const char *what, const char *text)
{
	AUTO(auto_free) char *line = mem_format("%s: %s", what, text);

	doc_item_line(arg, line);
}

/* Writes a section for each top-level field, with the fields below it as items. */
static void write_fields(struct doc *doc)
{
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		if (field_parent(id) == FIELD_NONE) {
			doc_subheading(doc, field_table[id].path);
			doc_paragraph(doc, field_table[id].help);
		} else {
			doc_item(doc, field_table[id].path, field_table[id].help);
		}
		help_field_facts(id, add_fact, doc);
		if (field_table[id].notes)
			doc_paragraph(doc, field_table[id].notes);
	}
}

static void write_spec(struct doc *doc, const struct cmd *table)
{
	(void)table;
	doc_heading(doc, "name");
	doc_paragraph(doc, "stoker-spec - the job spec of stoker(1)");
	doc_heading(doc, "description");
	doc_paragraph(doc,
		      "A spec is one YAML file of at most 1 MiB that describes one job: the "
		      "command, its machines, how graphs are compiled ahead, and what happens "
		      "after a failure. Unknown and duplicate keys are errors; 'stoker validate' "
		      "reports every problem in one go, with line and column. Any field can be "
		      "overridden for one command with --set FIELD=VALUE.");
	doc_paragraph(doc,
		      "Durations are 90s, 2h, 7d; sizes 8GiB; percentages 0.1%. In values, never "
		      "in keys, ${NAME} and ${NAME:-default} stand for variables of the "
		      "environment; an unset variable is an error. ${STOKER_…} is left for the "
		      "agent to fill in on the node. $$ is a plain $. Anchors and aliases work.");
	doc_paragraph(doc, "Hyperparameters become --name value after the command, in the order of "
			   "the spec, numbers as written, booleans True and False, lists as JSON, "
			   "null left out; 'stoker plan' shows the line.");
	doc_heading(doc, "fields");
	write_fields(doc);
	for (size_t i = 0; i < template_file_count; i++) {
		if (strcmp(template_files[i].name, "quickstart") != 0)
			continue;
		doc_heading(doc, "example");
		doc_paragraph(doc, "The starter spec of 'stoker init':");
		doc_literal(doc, template_files[i].text);
	}
	doc_heading(doc, "see also");
	doc_paragraph(doc, "stoker(1), stoker-node(8)");
}

/* ---- stoker-node(8) ------------------------------------------------------------- */

static const struct {
	int status;
	const char *help;
} agent_exits[] = {
	{ AGENT_EXIT_FAILED, "the agent failed; its report has the reason" },
	{ AGENT_EXIT_NOT_MINE, "another attempt holds the claim of this phase; no failure" },
	{ AGENT_EXIT_SICK, "the node is sick" },
	{ 126, "the command cannot be executed" },
	{ 127, "the command is not found" },
};

static void write_agent_exits(struct doc *doc)
{
	doc_paragraph(doc, "The exit status of the command, or 128 plus the signal that ended the "
			   "command. These count only together with the agent's report:");
	for (size_t i = 0; i < STK_LENGTH(agent_exits); i++) {
		AUTO(auto_free) char *term = mem_format("%d", agent_exits[i].status);

		doc_item(doc, term, agent_exits[i].help);
	}
}

static void write_node(struct doc *doc, const struct cmd *table)
{
	(void)table;
	doc_heading(doc, "name");
	doc_paragraph(doc, "stoker-node - the agent of stoker(1) that runs first on every node");
	doc_heading(doc, "synopsis");
	doc_paragraph(doc, "stoker-node ORDER RANK");
	doc_heading(doc, "description");
	doc_paragraph(doc,
		      "An engine of stoker starts stoker-node on each node of an attempt; a person "
		      "never does. The agent has its own libraries and loader, so an image needs "
		      "nothing but a shell. The agent claims the phase, "
		      "unpacks the source anew, starts the command in a process group of its "
		      "own, passes its output on, watches for stalls, marks the checkpoints that "
		      "are complete, forwards signals, kills processes that outlive the command, "
		      "and reports: a JSON file for each node in the workspace, and the same as "
		      "lines on standard output that begin with ::stoker:.");
	doc_paragraph(doc, "A training script need not know of the agent. A script loses the least "
			   "if it saves checkpoints into STOKER_CHECKPOINT_DIR, resumes from "
			   "STOKER_RESUME_FROM if set, prints its step (metrics in the spec) and "
			   "saves once more after checkpoint.signal.");
	doc_heading(doc, "environment of the command");
	doc_subheading(doc, "variables that the agent sets");
	manual_variables(doc, VAR_GIVEN);
	doc_subheading(doc, "variables that the compile kind sets");
	manual_variables(doc, VAR_KIND);
	doc_subheading(doc, "variables that are passed on");
	manual_variables(doc, VAR_PASSED);
	doc_paragraph(doc, "The spec's env and secrets follow; no other variable is set.");
	doc_heading(doc, "exit status");
	write_agent_exits(doc);
	doc_heading(doc, "see also");
	doc_paragraph(doc, "stoker(1), stoker-spec(5)");
}

/* ---- stoker-json(7) ------------------------------------------------------------- */

static void write_json(struct doc *doc, const struct cmd *table)
{
	(void)table;
	doc_heading(doc, "name");
	doc_paragraph(doc, "stoker-json - the JSON that stoker(1) prints");
	doc_heading(doc, "description");
	topic_json_write(doc);
	doc_heading(doc, "see also");
	doc_paragraph(doc, "stoker(1), stoker-spec(5)");
}

/* docs/json.md */
static void print_markdown(void)
{
	AUTO(doc_release) struct doc doc = DOC_MARKDOWN;

	sb_adds(&doc.text, "# JSON for programs\n\n<!-- From the tables, by: "
			   "stoker manual json.md - > docs/json.md -->\n");
	topic_json_write(&doc);
	doc.text.text[--doc.text.len] = '\0';
	out_block(doc.text.text);
}

/* --------------------------------------------------------------------------------- */

static const struct {
	const char *name, *section, *manual;
	void (*write)(struct doc *doc, const struct cmd *table);
} pages[] = {
	{ "stoker", "1", "User Commands", write_stoker },
	{ "stoker-spec", "5", "File Formats", write_spec },
	{ "stoker-node", "8", "System Administration", write_node },
	{ "stoker-json", "7", "Miscellaneous", write_json },
};

int cmd_manual(const struct args *args, struct err **err)
{
	AUTO(doc_release) struct doc doc = DOC_ROFF;

	if (strcmp(args->operands[0], "json.md") == 0) {
		print_markdown();
		return EXIT_DONE;
	}
	for (size_t i = 0; i < STK_LENGTH(pages); i++) {
		if (strcmp(args->operands[0], pages[i].name) != 0)
			continue;
		doc_title(&doc, pages[i].name, pages[i].section, args->operands[1], SOURCE_NAME,
			  pages[i].manual);
		pages[i].write(&doc, args->table);
		doc.text.text[--doc.text.len] = '\0';
		out_block(doc.text.text);
		return EXIT_DONE;
	}
	err_set(err, EXIT_USAGE, "no manual page '%s'", args->operands[0]);
	return err_hint(err, "choose stoker, stoker-spec, stoker-json or stoker-node");
}
