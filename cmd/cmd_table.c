/* The table of commands, one row each: source of help, parsing and suggestions. */
#include "cmd/cmd.h"

#define SPEC_OPTS (OPT_BIT(SET) | OPT_BIT(ENGINE))

const struct cmd cmd_table[] = {
	{ "init", "[FILE]", 0, 1, OPT_BIT(TEMPLATE) | OPT_BIT(LIST),
	  "write a commented starter spec",
	  "Writes stoker.yaml, or FILE, which must not exist yet.", cmd_init,
	  .exits = { EXIT_REFUSED },
	  .examples = { { "stoker init", "writes stoker.yaml from the starter spec quickstart" },
			{ "stoker init --list", "shows the starter specs" },
			{ "stoker init --template slurm job.yaml",
			  "writes job.yaml from another one" } } },
	{ "validate", "SPEC…", 1, -1, SPEC_OPTS, "check specs, reporting every problem in one go",
	  "Reads nothing but the specs. Exit code 0: valid (there may be warnings); 3: not.",
	  cmd_validate, .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker validate stoker.yaml",
			  "shows every problem with line, column and cure" },
			{ "stoker validate --json jobs/*.yaml",
			  "one JSON object a problem, for an editor or a pipeline" } } },
	{ "plan", "SPEC", 1, 1, SPEC_OPTS | OPT_BIT(REQUESTS),
	  "show what would happen and why; change nothing",
	  "Phases, warm or cold and which ingredient made it so, and the arguments as the script\n"
	  "will see them. --requests shows all that would be sent, and after it what the training\n"
	  "has otherwise than precompile: overrides, variables of the phase, scratch folders and\n"
	  "names. Secrets are shown by where they come from.",
	  cmd_plan, .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker plan stoker.yaml", "warm or cold, and why" },
			{ "stoker plan stoker.yaml --set hyperparameters.batch_size=32",
			  "what another batch size would mean" },
			{ "stoker plan stoker.yaml --requests",
			  "all that would be sent, and how the phases differ" } } },
	{ "run", "SPEC", 1, 1,
	  SPEC_OPTS | OPT_BIT(ID) | OPT_BIT(DETACH) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) |
		  OPT_BIT(DRY_RUN) | OPT_BIT(REQUESTS) | OPT_BIT(LEASE),
	  "carry a job through: precompile, prove the cache, train",
	  "With --id the command can be repeated: it creates the run, or goes on with it, or "
	  "gives\n"
	  "its exit code again if it has ended. SIGTERM, and Ctrl-C without a terminal, leave the\n"
	  "job running and exit with 8; 'stoker resume' goes on with it. If the terminal hangs up\n"
	  "(SIGHUP), a driver in the background goes on with the run; 'stoker attach' follows it.",
	  cmd_run,
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED, EXIT_BUSY,
		     EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker run stoker.yaml", "carries it through and follows" },
			{ "stoker run stoker.yaml --id nightly-7",
			  "as a step of a pipeline: repeated, it does not double" },
			{ "stoker run stoker.yaml --set limits.deadline=8h --detach",
			  "leaves it to a driver in the background" } } },
	{ "attach", "RUN", 1, 1, 0, "follow a run that someone else drives",
	  "Ends with the run, with its exit code. Ctrl-C ends the command, not the run.",
	  cmd_attach,
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker attach @last", "follows the newest run" } } },
	{ "resume", "[RUN]", 0, 1,
	  OPT_BIT(ALL) | OPT_BIT(DETACH) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) |
		  OPT_BIT(LEASE),
	  "take over a run whose driver has died or left",
	  "Exit code 7: someone drives it. --all starts a driver in the background for every\n"
	  "run that goes on and has none, and returns once they drive.",
	  cmd_resume,
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED, EXIT_BUSY,
		     EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker resume @last", "goes on with the newest run where it was" },
			{ "stoker resume --all",
			  "after a restart of the machine: all of them, in the background" } } },
	{ "stop", "RUN", 1, 1, OPT_BIT(REASON) | OPT_BIT(LEASE),
	  "stop a run on its engine and record why",
	  "Returns when it has ended. Its driver, if it has one, does it and exits with 6.",
	  cmd_stop, .exits = { EXIT_REFUSED, EXIT_BUSY, EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker stop @last --reason \"wrong data\"",
			  "asks for a last checkpoint, then stops it" } } },
	{ "status", "[RUN]", 0, 1, 0, "the state of a run, with its attempts",
	  "RUN is an id, a unique prefix of one, or @last (the default). Where a cold start of "
	  "both\n"
	  "compile modes was recorded for its graph key, it shows what precompiling saved or cost.",
	  cmd_status, .exits = { EXIT_REFUSED },
	  .examples = { { "stoker status", "the newest run" },
			{ "stoker status --json nightly-7", "for programs: one JSON object" } } },
	{ "rm", "RUN…", 1, -1, OPT_BIT(WITH_CHECKPOINTS) | OPT_BIT(DRY_RUN) | OPT_BIT(LEASE),
	  "forget finished runs",
	  "Removes the events of each RUN and its folder in the state directory and in the\n"
	  "workspace, and says how much that was. Complete checkpoints and outputs of which this\n"
	  "is the only copy stay where they are, and are named; --with-checkpoints removes these\n"
	  "too. What is beneath checkpoint.url stays always, and so does the compile cache. A\n"
	  "run that goes on is refused.",
	  cmd_rm, .exits = { EXIT_REFUSED, EXIT_BUSY },
	  .examples = { { "stoker rm nightly-7", "forgets this run" },
			{ "stoker rm nightly-7 --dry-run",
			  "what would go, and what would stay" } } },
	{ "list", "", 0, 0,
	  OPT_BIT(PRUNE) | OPT_BIT(WITH_CHECKPOINTS) | OPT_BIT(DRY_RUN) | OPT_BIT(LEASE),
	  "all runs, newest first",
	  "With --prune AGE it forgets the finished runs that ended longer ago, as rm does, and\n"
	  "says which.",
	  cmd_list, .exits = { EXIT_REFUSED, EXIT_BUSY },
	  .examples = { { "stoker list", "shows all of them" },
			{ "stoker list --prune 30d",
			  "forgets what ended more than 30 days ago" } } },
	{ "events", "RUN", 1, 1, OPT_BIT(FOLLOW), "the journal of a run, one JSON object a line",
	  NULL, cmd_events, .exits = { EXIT_REFUSED },
	  .examples = { { "stoker events @last", "shows every decision and its outcome" },
			{ "stoker events @last --follow | jq -r .event",
			  "the names of the events as they come" } } },
	{ "logs", "RUN", 1, 1, OPT_BIT(FOLLOW) | OPT_BIT(PHASE) | OPT_BIT(ATTEMPT) | OPT_BIT(NODE),
	  "what the command of an attempt printed",
	  "Control characters are shown as escapes such as \\x1b.", cmd_logs,
	  .exits = { EXIT_REFUSED },
	  .examples = { { "stoker logs @last --follow", "what the job prints, as it comes" },
			{ "stoker logs @last --phase precompile --attempt 1",
			  "of one attempt" } } },
	{ "cache ls", "URL", 1, 1, 0, "list the graphs of a compile cache", NULL, cmd_cache_ls,
	  .exits = { EXIT_REFUSED },
	  .examples = { { "stoker cache ls .cache/jax",
			  "shows each graph, its size and whether it is done" } } },
	{ "cache verify", "URL|SPEC", 1, 1, SPEC_OPTS,
	  "check a cache against its compile manifests",
	  "Reads every entry that a lock names (with a spec: that its own lock names) and "
	  "compares\n"
	  "size and SHA-256. Exit code 0: all well; 5: something is missing or damaged.",
	  cmd_cache_verify, .exits = { EXIT_SPEC, EXIT_REFUSED, EXIT_GATE },
	  .examples = { { "stoker cache verify .cache/jax", "against every lock in it" },
			{ "stoker cache verify stoker.yaml", "against the lock of this spec" } } },
	{ "cache why", "SPEC", 1, 1, SPEC_OPTS,
	  "explain warm or cold: which ingredient changed, old value and new", NULL, cmd_cache_why,
	  .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker cache why stoker.yaml --set hyperparameters.batch_size=32",
			  "names the batch size, old and new" } } },
	{ "cache pull", "URL DIR", 2, 2, OPT_BIT(ONLY) | OPT_BIT(DRY_RUN),
	  "bring a directory up to a compile cache",
	  "Copies what DIR lacks or has otherwise, and deletes nothing. What is unchanged is not\n"
	  "read again. A graph's marker comes behind its content, and the compile manifests last; "
	  "locks of\n"
	  "compilers stay where they are. Interrupted, the same command goes on. Names that "
	  "cannot be\n"
	  "files are refused and told. Exit code 4 also if something changed while it was copied.",
	  cmd_cache_pull, .exits = { EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker cache pull s3://bucket/neuron-cache .cache/neuron",
			  "fetches what is new there" },
			{ "stoker cache pull s3://bucket/neuron-cache .cache/neuron --dry-run",
			  "shows what that would be" } } },
	{ "cache push", "DIR URL", 2, 2, OPT_BIT(ONLY) | OPT_BIT(DRY_RUN),
	  "bring a compile cache up to a directory",
	  "The other way round: copies what URL lacks or has otherwise, and deletes nothing "
	  "there. See\n"
	  "'stoker help cache pull'. Links are refused.",
	  cmd_cache_push, .exits = { EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker cache push .cache/neuron s3://bucket/neuron-cache",
			  "sends what is new here" },
			{ "stoker cache push .cache/jax /mnt/shared/jax --only stoker/",
			  "only the compile manifests" } } },
	{ "cache gc", "URL", 1, 1, OPT_BIT(OLDER_THAN) | OPT_BIT(DELETE),
	  "show what old graphs no lock names; with --delete, remove them",
	  "A graph may go if no compile manifest names it and all of it was written longer ago "
	  "than\n"
	  "--older-than, which is a day or more. It goes whole or not at all; what a compiler has "
	  "locked stays, and so "
	  "does\n"
	  "what is of no known form. Other programs that use the cache write no locks: they "
	  "compile\n"
	  "again what they miss. Exit code 5: a lock cannot be read, so that nothing may go.",
	  cmd_cache_gc, .exits = { EXIT_REFUSED, EXIT_GATE },
	  .examples = { { "stoker cache gc .cache/jax --older-than 30d",
			  "shows what could go; nothing is changed" },
			{ "stoker cache gc .cache/jax --older-than 30d --delete",
			  "removes it" } } },
	{ "schema", "", 0, 0, 0, "the JSON Schema of the spec", NULL, cmd_schema,
	  .examples = { { "stoker schema > stoker.schema.json",
			  "for the editor: # yaml-language-server: "
			  "$schema=stoker.schema.json" } } },
	{ "version", "", 0, 0, 0, "the versions of stoker and of everything linked", NULL,
	  cmd_version, .examples = { { "stoker version", "shows them" } } },
	{ "completion", "SHELL", 1, 1, 0, "the completion script of a shell",
	  "bash: stoker completion bash > ~/.local/share/bash-completion/completions/stoker\n\n"
	  "zsh: stoker completion zsh > a folder of $fpath, as _stoker, before compinit runs\n\n"
	  "fish: stoker completion fish > ~/.config/fish/completions/stoker.fish\n\n"
	  "The Debian package brings all three. They ask stoker itself what may come next, so "
	  "they are never of another version: commands, options and their values, specs, runs, "
	  "fields and topics.",
	  cmd_completion,
	  .examples = { { "source <(stoker completion bash)", "for the bash at hand" } } },
	{ "help", "[TOPIC]", 0, 2, 0, "help on a command, a field of the spec or another topic",
	  "'stoker COMMAND --help' says the same. 'stoker help topics' lists what is neither a "
	  "command nor a field.",
	  cmd_help,
	  .examples = { { "stoker help run", "a command" },
			{ "stoker help retry.backoff", "a field of the spec" },
			{ "stoker help environment", "what a training script is told" } } },
	{ "complete", "[WORD…]", 0, -1, 0, NULL, NULL, cmd_complete, .exits = { 0 } },
	{ "manual", "PAGE DATE", 2, 2, 0, NULL, NULL, cmd_manual, .exits = { 0 } },
	{ 0 },
};
