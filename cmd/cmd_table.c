/* The commands, one row each: help, parsing and suggestions come from here. */
#include <string.h>

#include "cmd/cmd.h"

#define SPEC_OPTS (OPT_BIT(SET) | OPT_BIT(ENGINE))

const struct cmd cmd_table[] = {
	{ "init", "[FILE]", 0, 1, OPT_BIT(TEMPLATE) | OPT_BIT(LIST),
	  "write a commented starter spec",
	  "Writes stoker.yaml, or FILE, which must not exist yet.", cmd_init },
	{ "validate", "SPEC…", 1, -1, SPEC_OPTS, "check specs, reporting every problem in one go",
	  "Reads nothing but the specs. Exit code 0: valid (there may be warnings); 3: not.",
	  cmd_validate },
	{ "plan", "SPEC", 1, 1, SPEC_OPTS | OPT_BIT(REQUESTS),
	  "show what would happen and why; change nothing",
	  "Phases, warm or cold and which ingredient made it so, and the arguments as the script\n"
	  "will see them. --requests shows all that would be sent, and after it what the training\n"
	  "has otherwise than precompile: overrides, variables of the phase, scratch folders and\n"
	  "names. Secrets are shown by where they come from.",
	  cmd_plan },
	{ "run", "SPEC", 1, 1,
	  SPEC_OPTS | OPT_BIT(ID) | OPT_BIT(DETACH) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(DRY_RUN) |
		  OPT_BIT(REQUESTS) | OPT_BIT(LEASE),
	  "carry a job through: precompile, prove the cache, train",
	  "With --id the command can be repeated: it creates the run, or goes on with it, or "
	  "gives\n"
	  "its exit code again if it has ended. SIGTERM, and Ctrl-C without a terminal, leave the\n"
	  "job running and exit with 8; 'stoker resume' goes on with it.",
	  cmd_run },
	{ "attach", "RUN", 1, 1, 0, "follow a run that someone else drives",
	  "Ends with the run, with its exit code. Ctrl-C ends the command, not the run.",
	  cmd_attach },
	{ "resume", "[RUN]", 0, 1,
	  OPT_BIT(ALL) | OPT_BIT(DETACH) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(LEASE),
	  "take over a run whose driver has died or left",
	  "Exit code 7: someone drives it. --all starts a driver in the background for every\n"
	  "run that goes on and has none, and returns once they drive.",
	  cmd_resume },
	{ "stop", "RUN", 1, 1, OPT_BIT(REASON) | OPT_BIT(LEASE),
	  "stop a run on its engine and record why",
	  "Returns when it has ended. Its driver, if it has one, does it and exits with 6.",
	  cmd_stop },
	{ "status", "[RUN]", 0, 1, 0, "the state of a run, with its attempts",
	  "RUN is an id, a unique prefix of one, or @last (the default). Where a cold start of "
	  "both\n"
	  "compile modes was recorded for its graph key, it shows what precompiling saved or cost.",
	  cmd_status },
	{ "rm", "RUN…", 1, -1, OPT_BIT(LEASE), "forget finished runs",
	  "Removes the events of each RUN and its folder in the state directory and in the\n"
	  "workspace: logs, outputs and the checkpoints that are there. What is beneath\n"
	  "checkpoint.url stays, and so does the compile cache. A run that goes on is refused.",
	  cmd_rm },
	{ "list", "", 0, 0, OPT_BIT(PRUNE) | OPT_BIT(LEASE), "all runs, newest first",
	  "With --prune AGE it forgets the finished runs that ended longer ago, as rm does, and\n"
	  "says which.",
	  cmd_list },
	{ "events", "RUN", 1, 1, OPT_BIT(FOLLOW), "the journal of a run, one JSON object a line",
	  NULL, cmd_events },
	{ "logs", "RUN", 1, 1, OPT_BIT(FOLLOW) | OPT_BIT(PHASE) | OPT_BIT(ATTEMPT) | OPT_BIT(NODE),
	  "what the command of an attempt printed",
	  "Control characters are shown as escapes such as \\x1b.", cmd_logs },
	{ "cache ls", "URL", 1, 1, 0, "list the graphs of a compile cache", NULL, cmd_cache_ls },
	{ "cache verify", "URL|SPEC", 1, 1, SPEC_OPTS, "check a cache against its compile locks",
	  "Reads every entry that a lock names (with a spec: that its own lock names) and "
	  "compares\n"
	  "size and SHA-256. Exit code 0: all well; 5: something is missing or damaged.",
	  cmd_cache_verify },
	{ "cache why", "SPEC", 1, 1, SPEC_OPTS,
	  "explain warm or cold: which ingredient changed, old value and new", NULL,
	  cmd_cache_why },
	{ "cache gc", "URL", 1, 1, OPT_BIT(OLDER_THAN) | OPT_BIT(DELETE),
	  "show what old graphs no lock names; with --delete, remove them",
	  "A graph may go if no compile lock names it and all of it was written longer ago than\n"
	  "--older-than, which is a day or more. It goes whole or not at all; what a compiler has "
	  "locked stays, and so "
	  "does\n"
	  "what is of no known form. Other programs that use the cache write no locks: they "
	  "compile\n"
	  "again what they miss. Exit code 5: a lock cannot be read, so that nothing may go.",
	  cmd_cache_gc },
	{ "schema", "", 0, 0, 0, "the JSON Schema of the spec", NULL, cmd_schema },
	{ "version", "", 0, 0, 0, "the versions of stoker and of everything linked", NULL,
	  cmd_version },
	{ "help", "[COMMAND|FIELD]", 0, 2, 0, "help on a command or a field of the spec", NULL,
	  cmd_help },
	{ 0 },
};

const struct cmd *cmd_in_family(const struct cmd *from, const char *word)
{
	size_t len = strlen(word);

	for (; from->name; from++)
		if (strncmp(from->name, word, len) == 0 && from->name[len] == ' ')
			return from;
	return NULL;
}

const struct cmd *cmd_find(const char *name)
{
	for (const struct cmd *cmd = cmd_table; cmd->name; cmd++)
		if (strcmp(cmd->name, name) == 0)
			return cmd;
	return NULL;
}
