/* The table of commands, one row each: source of help, parsing and suggestions. */
#include "cmd/cmd.h"

#define SPEC_OPTS (OPT_BIT(USE) | OPT_BIT(SET) | OPT_BIT(ENGINE))

const struct cmd cmd_table[] = {
	{ "init", "[FILE]", 0, 1, OPT_BIT(TEMPLATE) | OPT_BIT(LIST),
	  "write a commented starter spec",
	  "Writes stoker.yaml, or FILE, which must not exist yet. Its line for editors,\n"
	  "yaml-language-server, names the schema that is installed with this stoker. For a spec\n"
	  "that people share, write the schema beside it ('stoker schema') and name that.",
	  cmd_init, .is_bare = true, .exits = { EXIT_REFUSED },
	  .examples = { { "stoker init", "writes stoker.yaml from the starter spec quickstart" },
			{ "stoker init --list", "shows the starter specs" },
			{ "stoker init --template slurm job.yaml",
			  "writes job.yaml from another one" } } },
	{ "validate", "[SPEC…]", 0, -1, SPEC_OPTS | OPT_BIT(FORMAT),
	  "check specs, reporting every problem in one go",
	  "Checks each spec alone and with each of its profiles, or with those of --use. Reads\n"
	  "nothing but the specs, the files that they extend and your configuration. Exit code 0:\n"
	  "valid (there may be warnings); 3: not.",
	  cmd_validate, .is_bare = true, .fallback = "stoker.yaml",
	  .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker validate stoker.yaml",
			  "shows every problem with line, column and cure" },
			{ "stoker validate --json jobs/*.yaml",
			  "prints one JSON object a problem, for an editor or a pipeline" },
			{ "stoker validate --format github jobs/*.yaml",
			  "marks the problems in a pull request, as a step of GitHub Actions" } } },
	{ "plan", "[SPEC]", 0, 1, SPEC_OPTS | OPT_BIT(REQUESTS) | OPT_BIT(OFFLINE),
	  "show what would happen and why; change nothing",
	  "Shows the phases, warm or cold with the ingredient that decided it, and the arguments\n"
	  "as the script will see them. --requests adds every request to the engine and the\n"
	  "differences between precompile and train: overrides, variables of the phase, scratch\n"
	  "folders and names. A secret is shown by its source, never by its value. Services that\n"
	  "do not answer are waited for 3 seconds in all; then, and with --offline at once, what\n"
	  "they would tell is not known. What stands for it in requests is listed.",
	  cmd_plan, .fallback = "stoker.yaml", .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker plan stoker.yaml", "shows warm or cold, and why" },
			{ "stoker plan stoker.yaml --set hyperparameters.batch_size=32",
			  "shows the effect of another batch size" },
			{ "stoker plan stoker.yaml --requests",
			  "shows every request, and how the phases differ" },
			{ "stoker plan stoker.yaml --requests --offline",
			  "shows them without an account" } } },
	{ "run", "[SPEC]", 0, 1,
	  SPEC_OPTS | OPT_BIT(ID) | OPT_BIT(UNTIL) | OPT_BIT(OUTCOME) | OPT_BIT(DETACH) |
		  OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) | OPT_BIT(DRY_RUN) |
		  OPT_BIT(REQUESTS) | OPT_BIT(LEASE),
	  "carry a job through: precompile, prove the cache, train",
	  "With --id the command can be repeated: it creates the run, continues it, or returns "
	  "the\n"
	  "exit code of a run that has ended. SIGTERM, and Ctrl-C without a terminal, leave the\n"
	  "job running and exit with 8; 'stoker resume' continues the run. If the terminal hangs "
	  "up\n"
	  "(SIGHUP), a driver in the background continues the run; 'stoker attach' follows it.",
	  cmd_run, .fallback = "stoker.yaml",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED, EXIT_BUSY,
		     EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker run stoker.yaml", "carries the job through and follows it" },
			{ "stoker run stoker.yaml --id nightly-7",
			  "runs as a step of a pipeline; repeated, it starts nothing twice" },
			{ "stoker run stoker.yaml --set limits.deadline=8h --detach",
			  "leaves the run to a driver in the background" } } },
	{ "retrain", "[SPEC]", 0, 1,
	  SPEC_OPTS | OPT_BIT(ID) | OPT_BIT(AT) | OPT_BIT(WITHOUT) | OPT_BIT(UNTIL) |
		  OPT_BIT(OUTCOME) | OPT_BIT(DETACH) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) |
		  OPT_BIT(LEASE),
	  "train the promoted model on new data, and promote what comes of it",
	  "One turn: asks for new data first. If there is none, it prints one line and exits with "
	  "0;\n"
	  "no run begins. Else the run trains from the promoted model (parent.first while there "
	  "is\n"
	  "none), is evaluated, judged by the gate, infers and is promoted, as far as the spec "
	  "asks.\n"
	  "With --id the command can be repeated, as 'stoker run': the data that the run was "
	  "given\n"
	  "first stays its data.",
	  cmd_retrain, .fallback = "stoker.yaml",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED, EXIT_BUSY,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker retrain stoker.yaml",
			  "trains on what is new since the promoted model" },
			{ "stoker retrain stoker.yaml --without week-4",
			  "leaves out the data that run week-4 was given, until it changes" },
			{ "stoker retrain stoker.yaml --id nightly-7 --until evaluate",
			  "runs as a step of a pipeline, up to the evaluation" } } },
	{ "attach", "[RUN]", 0, 1, 0, "follow a run that another driver drives",
	  "Ends with the run and returns its exit code. Ctrl-C ends the command, not the run.",
	  cmd_attach, .fallback = "@last",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker attach @last", "follows the newest run" } } },
	{ "wait", "[RUN]", 0, 1, OPT_BIT(TIMEOUT) | OPT_BIT(LEASE),
	  "wait for the end of a run and return its exit code",
	  "Prints nothing but the outcome. A run without a driver does not go on: that is noted,\n"
	  "and the wait continues. RUN may be the id of a sweep.",
	  cmd_wait, .fallback = "@last",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker wait nightly-7 && ./publish", "goes on if the run succeeds" },
			{ "stoker wait --timeout 2h",
			  "waits for the newest run, two hours at most" } } },
	{ "resume", "[RUN]", 0, 1,
	  OPT_BIT(ALL) | OPT_BIT(SALVAGE) | OPT_BIT(UNTIL) | OPT_BIT(DETACH) |
		  OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) | OPT_BIT(LEASE),
	  "take over a run whose driver has died or left",
	  "Exit code 7: the run has a driver. --all starts a driver in the background for every\n"
	  "unfinished run without one, and returns once they drive; it leaves paused runs "
	  "alone.\n"
	  "--salvage goes on with a run whose journal is damaged: what lies behind its last good\n"
	  "event is set aside, in 'runs/RUN/damaged' of the state, and nothing is submitted "
	  "before\n"
	  "engine and workspace have told what is under way. A whole journal is left as it is.",
	  cmd_resume,
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED, EXIT_BUSY,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker resume @last", "continues the newest run" },
			{ "stoker resume --all", "continues all runs in the background, after a "
						 "restart of the machine" },
			{ "stoker resume m5 --salvage",
			  "continues run m5 from the last good event of its damaged journal" } } },
	{ "stop", "[RUN]", 0, 1, OPT_BIT(REASON) | OPT_BIT(LEASE),
	  "stop a run on its engine and record why",
	  "Returns when the run has ended. A driver of the run stops it and exits with 6. On a\n"
	  "terminal RUN may be left out: the unfinished runs are shown, and one is asked for. Of "
	  "a\n"
	  "sweep, by its id, nothing begins any more, and all that is under way is stopped.",
	  cmd_stop,
	  .exits = { EXIT_REFUSED, EXIT_BUSY, EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker stop @last --reason \"wrong data\"",
			  "asks for a last checkpoint, then stops the run" } } },
	{ "status", "[RUN]", 0, 1, OPT_BIT(WATCH) | OPT_BIT(EXIT_CODE),
	  "show the state of a run and its attempts",
	  "RUN is an id, a unique prefix of one, or @last (the default). If a cold start of both\n"
	  "compile modes is recorded for the graph key, the node-seconds that precompiling saved\n"
	  "or cost are shown. Of a sweep, by its id, the cells and their runs are shown.",
	  cmd_status, .fallback = "@last",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker status", "shows the newest run" },
			{ "stoker status --watch", "shows the newest run until it ends" },
			{ "stoker status --json nightly-7",
			  "prints one JSON object, for programs" } } },
	{ "rm", "RUN…", 1, -1, OPT_BIT(WITH_CHECKPOINTS) | OPT_BIT(DRY_RUN) | OPT_BIT(LEASE),
	  "forget finished runs",
	  "Removes the events of each RUN and its folder in the state directory and in the\n"
	  "workspace, and reports the size. The only copies of complete checkpoints and of "
	  "outputs\n"
	  "stay and are named; --with-checkpoints removes them too. Files under checkpoint.url "
	  "and\n"
	  "the compile cache always stay. An unfinished run is refused. The id of a sweep stands "
	  "for\n"
	  "all of its runs.",
	  cmd_rm, .exits = { EXIT_REFUSED, EXIT_BUSY, EXIT_NOT_FOUND },
	  .examples = { { "stoker rm nightly-7", "forgets this run" },
			{ "stoker rm nightly-7 --dry-run",
			  "shows what would be removed, and what would stay" } } },
	{ "list", "", 0, 0,
	  OPT_BIT(STATUS) | OPT_BIT(NAME) | OPT_BIT(SINCE) | OPT_BIT(ENGINE) | OPT_BIT(SORT) |
		  OPT_BIT(LIMIT) | OPT_BIT(WATCH) | OPT_BIT(DIFF) | OPT_BIT(LIVE) | OPT_BIT(SIZE) |
		  OPT_BIT(PRUNE) | OPT_BIT(WITH_CHECKPOINTS) | OPT_BIT(DRY_RUN) | OPT_BIT(LEASE),
	  "list all runs, newest first",
	  "A terminal that is too narrow shows fewer columns; --json and a pipe have all of them.\n"
	  "--since is about the time at which a run was created. -v reads every event of every\n"
	  "run, and so finds damage of runs that have ended; it shows all columns, in as many "
	  "lines\n"
	  "as they take. --size and --live look at each listed run: --limit keeps them quick.\n\n"
	  "--prune AGE forgets the runs that ended longer ago, as rm does, and names them.",
	  cmd_list, .exits = { EXIT_REFUSED, EXIT_BUSY },
	  .examples = { { "stoker list", "lists all runs" },
			{ "stoker list --status failed,stopped --since 7d",
			  "lists what did not end well in the last week" },
			{ "stoker list --name 'm5-*' --diff --sort cost",
			  "compares the settings of runs of one name" },
			{ "stoker list --prune 30d",
			  "forgets the runs that ended more than 30 days ago" } } },
	{ "events", "[RUN]", 0, 1, OPT_BIT(FOLLOW),
	  "print the journal of a run, one JSON object a line", NULL, cmd_events,
	  .fallback = "@last", .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker events @last", "shows every decision and its outcome" },
			{ "stoker events @last --follow | jq -r .event",
			  "prints the names of the events as they come" } } },
	{ "logs", "[RUN]", 0, 1,
	  OPT_BIT(FOLLOW) | OPT_BIT(PHASE) | OPT_BIT(ATTEMPT) | OPT_BIT(NODE) | OPT_BIT(ALL_NODES) |
		  OPT_BIT(TAIL) | OPT_BIT(SINCE) | OPT_BIT(GREP) | OPT_BIT(TIMESTAMPS),
	  "print the output of the command of an attempt",
	  "Without --attempt, of the newest attempt. Control characters are shown as escapes such\n"
	  "as \\x1b. Times are those at which stoker's agent read the output, to a second; for a\n"
	  "workspace in S3, those at which it was uploaded.",
	  cmd_logs, .fallback = "@last", .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker logs @last --follow", "follows the output of the job" },
			{ "stoker logs --tail 20 --all-nodes",
			  "prints the last lines of each node of the newest run" },
			{ "stoker logs gpu-7 --phase precompile --attempt 1 --grep ERROR",
			  "searches the output of one attempt" } } },
	{ "metrics", "[RUN [METRIC…]]", 0, -1, OPT_BIT(CSV) | OPT_BIT(ATTEMPT) | OPT_BIT(NODE),
	  "print every value that the metrics of a run have read",
	  "The spec says which: metrics: [{name: loss, regex: 'loss: ([0-9.eE+-]+)'}], or\n"
	  "metric_definitions as SageMaker has them. The first group says where the number\n"
	  "begins; it is read whole, also if the pattern cuts 6.25e-05 to 6.25. nan, inf and -inf\n"
	  "stay what they are. Phase 1 has no values.\n\n"
	  "A value belongs to the step on its own line, else to the newest step that the log of\n"
	  "its node has shown before; what comes before the first step has none. The metric\n"
	  "called 'step' counts them or, where there is none, that called 'epoch'.\n\n"
	  "The order is that of the logs, attempt by attempt and node by node. If an attempt\n"
	  "resumes from an older checkpoint, the steps that it makes again are marked as\n"
	  "replayed, and the earlier ones, which do not count any more, as superseded. All digits\n"
	  "are printed; --csv and --json are for programs.\n\n"
	  "What the nodes did while they trained has names of its own, and is printed if it is\n"
	  "asked for: node/ stands for all of it, node/cpu, node/device.0 … for some.",
	  cmd_metrics, .fallback = "@last", .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker metrics", "prints all values of the newest run" },
			{ "stoker metrics gpu-7 loss --csv > loss.csv",
			  "writes one metric for a spreadsheet" },
			{ "stoker metrics gpu-7 node/", "prints what the nodes did" } } },
	{ "compare", "RUN|SWEEP…", 1, -1,
	  OPT_BIT(METRIC) | OPT_BIT(THROUGHPUT) | OPT_BIT(STEP_TIME) | OPT_BIT(TO) |
		  OPT_BIT(BREAK_EVEN) | OPT_BIT(CSV) | OPT_BIT(MARKDOWN),
	  "compare runs by speed, result, time and cost",
	  "The first run is the baseline; runs with the same settings are repeats, and one row. A\n"
	  "row is faster or slower only if repeats show it; the steps of one run are no repeats.\n"
	  "Runs on other data, another set for evaluation or in another precision are marked, and\n"
	  "never the best. Of a sweep, named by its id, each cell is a row.\n\n"
	  "Step times are those between the lines that tell a step. A script that measures\n"
	  "itself is taken at its word by --throughput and --step-time, also where its log is\n"
	  "replayed faster than it was written.",
	  cmd_compare, .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker compare base-1 base-2 big-1 big-2",
			  "compares two settings, each run twice" },
			{ "stoker compare base big --to 'loss<0.3' --csv",
			  "tells which is there first, for a spreadsheet" },
			{ "stoker compare o1 o2 --break-even",
			  "shows from which step on the slower compilation pays" },
			{ "stoker compare native compiled --throughput train_samples_per_second",
			  "compares by what Hugging Face's Trainer says at the end" } } },
	{ "export", "[RUN|SPEC] [DEST]", 0, 2, SPEC_OPTS | OPT_BIT(TO) | OPT_BIT(OUTPUT),
	  "write the metrics of a run, or the retraining of a spec, for other programs",
	  "Of a run only values that count are written: of steps that a later attempt made again,\n"
	  "the later ones. --to tensorboard writes event files into the folder DEST/RUN (DEST is\n"
	  "runs if it is left out), with the names of the metrics as tags, and further nodes in\n"
	  "folders of their own. They hold values in single precision. A value before an "
	  "attempt's\n"
	  "first step is at the step before it; if the log tells no steps, the values are "
	  "numbered.\n"
	  "--to csv and --to jsonl write all digits.\n\n"
	  "Of a spec with the sections of a retraining --to step-functions writes a state machine\n"
	  "whose steps are jobs of AWS Batch, --to sagemaker-pipeline the definition of a "
	  "pipeline\n"
	  "whose steps are processing jobs, and --to airflow a DAG to paste. There is a step for\n"
	  "each phase, the proof of the cache and the gate included: 'retrain SPEC --id ID\n"
	  "--until PHASE', where the id comes from the execution's name or its scheduled time.\n"
	  "Exit code 0 goes on, 5 ends the execution, 8 and 75 repeat the step, others fail. The\n"
	  "section 'driver' of the spec says where the steps run; their image has the spec, and "
	  "its\n"
	  "source, in its working directory. Nothing is sent to a service.\n\n"
	  "DEST or --output is the file; without it, or for -, a definition, CSV or JSON lines go\n"
	  "to stdout. The same command renews what it wrote before.",
	  cmd_export, .exits = { EXIT_SPEC, EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker export @last --to tensorboard",
			  "writes the newest run's curves: 'tensorboard --logdir runs' shows "
			  "them" },
			{ "stoker export gpu-7 gpu-7.csv --to csv",
			  "writes a file for a spreadsheet" },
			{ "stoker export m5.yaml --to airflow -o dag.py",
			  "writes a DAG to paste" } } },
	{ "stats", "", 0, 0, OPT_BIT(SINCE) | OPT_BIT(BY) | OPT_BIT(CSV),
	  "success rate, goodput, failures and costs over all runs",
	  "Each figure is printed with its definition. Times and costs come from the ledger, by "
	  "its\n"
	  "bins; those of nodes count each node. --since is about the time at which a run was "
	  "created.\n\n"
	  "A node fails more than its share if at least 2 runs failed on it by what a machine can\n"
	  "cause, and the chance is at most 1 in 100 that any of the nodes has so many by its "
	  "share "
	  "of\n"
	  "the hours or of the runs. However often a run fails on a node, it counts there once.\n"
	  "Machines that a service names anew for each job cannot be compared.",
	  cmd_stats, .exits = { EXIT_REFUSED },
	  .examples = { { "stoker stats --since 30d", "shows the last 30 days" },
			{ "stoker stats --by instance", "compares types of machines" },
			{ "stoker stats --by node --csv > nodes.csv",
			  "writes each machine's runs and failures for a spreadsheet" } } },
	{ "doctor", "[SPEC]", 0, 1,
	  SPEC_OPTS | OPT_BIT(ONLY) | OPT_BIT(STRICT) | OPT_BIT(READ_ONLY) | OPT_BIT(INSIDE) |
		  OPT_BIT(YES) | OPT_BIT(POLICY) | OPT_BIT(TRUST),
	  "check machine, credentials and all that a spec names",
	  "Each finding is ok, warn, fail or unknown, with what was seen and its cure. Without a\n"
	  "spec: this machine and these credentials. All is asked at once, for some seconds at\n"
	  "most; what a service does not answer, or this identity may not look at, is unknown.\n"
	  "In each place of a bucket one probe is written, read and removed; --read-only leaves\n"
	  "that out. --inside also starts a job of one node with the spec's role, image and "
	  "network,\n"
	  "which tries each place and secret from there and counts devices; what it costs is told\n"
	  "first, and asked for unless --yes is given. Exit code 0: nothing is fail; 4: something "
	  "is.\n\n"
	  "--policy prints the least policy of IAM that allows what the spec needs: submitter is\n"
	  "whoever types, and driver.role; job and execution are the roles of the jobs; scheduler\n"
	  "is driver.scheduler_role; doctor is whoever runs these checks. --trust prints who may\n"
	  "take on the roles. Nothing is checked then, and nobody is asked if the spec says "
	  "region\n"
	  "and account: of the account 'aws.account' or the ARN of a role does.",
	  cmd_doctor, .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker doctor", "checks this machine and these credentials" },
			{ "stoker doctor stoker.yaml", "checks what a run of the spec needs" },
			{ "stoker doctor --policy job stoker.yaml",
			  "prints what to allow the role of its jobs" },
			{ "stoker doctor stoker.yaml --json --strict",
			  "is a step of a pipeline: what is not certain counts" } } },
	{ "machines", "[WORD]", 0, 1, 0, "list the instance types that stoker knows",
	  "Accelerators and their memory, EFA interfaces, USD an hour and an accelerator-hour, "
	  "whether\n"
	  "SageMaker trains on ml.TYPE, and where the figures are from. WORD is part of a type's "
	  "name\n"
	  "or of its GPU's, or a kind of accelerator: neuron, nvidia. Rows of your own, in\n"
	  "~/.config/stoker/instances.yaml or where STOKER_INSTANCES says, are among them. A "
	  "price is\n"
	  "EC2's, on demand; SageMaker's is another.",
	  cmd_machines, .exits = { EXIT_SPEC },
	  .examples = { { "stoker machines", "lists all machines" },
			{ "stoker machines trn1", "lists those of one family" },
			{ "stoker machines h100 --json",
			  "prints one JSON object a machine with such GPUs" } } },
	{ "sweep", "[SPEC]", 0, 1,
	  SPEC_OPTS | OPT_BIT(ID) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(METRIC) | OPT_BIT(THROUGHPUT) |
		  OPT_BIT(STEP_TIME) | OPT_BIT(TO) | OPT_BIT(CSV) | OPT_BIT(MARKDOWN),
	  "run the cells of a spec's section 'sweep', and compare them",
	  "Each cell is an ordinary run, ID-CELL-REPEAT, with a driver of its own in the "
	  "background:\n"
	  "the commands for runs work on it. 'stoker plan' shows the cells before. The order is\n"
	  "shuffled, by the id. A cell that is refused, or that fails, is a row 'not supported', "
	  "and\n"
	  "the others go on. At the end the cells are compared, as 'stoker compare ID' does "
	  "later.\n\n"
	  "Repeated with the same --id the command goes on, and repeats no run that has ended.\n"
	  "SIGTERM and Ctrl-C leave the runs that are under way and exit with 8; with\n"
	  "--on-interrupt stop they are stopped first, and the exit code is 6.\n\n"
	  "Exit code 1: no run\n"
	  "succeeded; 4: something outside of the spec (credentials, an image, a tool) refused a "
	  "cell,\n"
	  "which is tried again when the command is repeated; 5: a limit of sweep.stop_when was\n"
	  "reached.",
	  cmd_sweep, .fallback = "stoker.yaml",
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_UNREACHABLE },
	  .examples = { { "stoker sweep ladder.yaml --id ladder-1",
			  "runs all cells; repeated, it goes on" },
			{ "stoker sweep ladder.yaml --set sweep.repeat=3 --csv > ladder.csv",
			  "runs each cell three times, for a spreadsheet" } } },
	{ "report", "[RUN…] [FILE]", 0, -1, OPT_BIT(OUTPUT) | OPT_BIT(OPEN) | OPT_BIT(WATCH),
	  "write runs as one page of HTML",
	  "The page needs no network: verdict, comparison with the first run, curves of all\n"
	  "metrics, step times, time and money, attempts with their evidence, nodes, and how to\n"
	  "repeat it. Without JavaScript it has the same in tables. Curves are thinned without\n"
	  "losing a peak. Values whose names look secret are not in it.\n\n"
	  "An operand that ends in .html is the file, like --output. A file that exists is\n"
	  "replaced only if it is a report; '--output -' prints the page. With --watch the page\n"
	  "loads itself again.",
	  cmd_report, .fallback = "@last", .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker report", "writes report-ID.html about the newest run" },
			{ "stoker report base big --output ladder.html --open",
			  "compares two runs, and shows the page in a browser" },
			{ "stoker report --watch page.html",
			  "renews the page while the newest run goes on" } } },
	{ "cp", "RUN:WHAT DEST", 2, 2, OPT_BIT(PHASE) | OPT_BIT(ATTEMPT),
	  "copy the newest checkpoint, the outputs or the logs of a run into a directory",
	  "RUN:checkpoint copies the newest complete checkpoint, under its own name; RUN:outputs\n"
	  "what the newest attempt left in STOKER_OUTPUT_DIR; RUN:log the output of all nodes, a\n"
	  "file for each: --phase and --attempt choose the attempt. DEST is made if it is absent.\n"
	  "After an interruption the same command continues.",
	  cmd_cp, .exits = { EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker cp @last:checkpoint models/",
			  "copies the newest complete checkpoint" },
			{ "stoker cp gpu-7:log logs/ --phase precompile",
			  "copies the logs of the newest precompile attempt" } } },
	{ "exec", "[RUN] -- CMD…", 1, -1, OPT_BIT(NODE) | OPT_BIT(PHASE) | OPT_BIT(ATTEMPT),
	  "run a command beside a job of this machine",
	  "The command gets the environment, secrets included, and the folder of the job's\n"
	  "command, and this terminal; its exit status is that of exec. On AWS the way of the\n"
	  "service is named.",
	  cmd_exec, .exits = { EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker exec -- ps -ef",
			  "looks at the processes from within the newest job" },
			{ "stoker exec gpu-7 --node 1 -- sh", "opens a shell beside node 1" } } },
	{ "diff", "RUN|SPEC RUN|SPEC", 2, 2, SPEC_OPTS,
	  "show what differs between two runs or specs",
	  "Compares fields, source, image and compiler. An operand with a dot or a slash is a "
	  "spec.\n"
	  "Exit code 0: no difference; 1: they differ.",
	  cmd_diff, .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_NOT_FOUND },
	  .examples = { { "stoker diff gpu-7 gpu-8", "shows what was changed between two runs" },
			{ "stoker diff @last stoker.yaml",
			  "shows what was edited since the newest run" } } },
	{ "schedule add", "[SPEC]", 0, 1,
	  SPEC_OPTS | OPT_BIT(TO) | OPT_BIT(PRINT) | OPT_BIT(SYSTEM),
	  "have another scheduler wake stoker when a spec is due",
	  "The scheduler of --to (systemd, cron or eventbridge) is the alarm clock: it calls\n"
	  "'stoker schedule run NAME', which decides. Spec and source are pinned beside the "
	  "model,\n"
	  "with ${VAR} as it is now, so that later edits do not change a turn; the same command "
	  "again\n"
	  "updates both. Secrets from env: are refused: an alarm has no such environment.\n\n"
	  "A scheduler that leaves out times which a clock change skips gets one more alarm for "
	  "them.\n"
	  "cron goes by the clock of this machine, and EventBridge starts a job of driver.image.",
	  cmd_schedule_add, .fallback = "stoker.yaml",
	  .exits = { EXIT_SPEC, EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker schedule add stoker.yaml --to systemd",
			  "sets a timer of this user" },
			{ "stoker schedule add --to cron --print",
			  "prints the line for a crontab" } } },
	{ "schedule ls", "", 0, 0, 0, "list schedules, when they are due, and their alarms",
	  "An alarm that is not as it was set, or gone, is marked: 'stoker schedule add' sets it\n"
	  "again.",
	  cmd_schedule_ls, .exits = { EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker schedule ls", "lists the schedules of this state" } } },
	{ "schedule rm", "SCHEDULE", 1, 1, 0, "remove the alarms of a schedule",
	  "SCHEDULE is the name of the spec. Models, and the records of turns beside them, stay.",
	  cmd_schedule_rm, .exits = { EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker schedule rm m5", "removes timer, line or schedules" } } },
	{ "schedule run", "SCHEDULE|URL", 1, 1,
	  OPT_BIT(AT) | OPT_BIT(OUTCOME) | OPT_BIT(ON_INTERRUPT) | OPT_BIT(ON_HANGUP) |
		  OPT_BIT(LEASE),
	  "run the turn of a schedule that is due",
	  "What an alarm calls. Computes the due time from the pinned cron and zone, and runs its "
	  "turn\n"
	  "as 'stoker retrain' would, unless it was decided before; its run's id is derived from "
	  "name\n"
	  "and due time, so several alarms make one run. A turn that nobody drives any more is "
	  "taken\n"
	  "over. If one is driven, schedule.overlap says what becomes of this one. Not due: "
	  "exit 0.\n"
	  "URL is that of promote.url.",
	  cmd_schedule_run,
	  .exits = { EXIT_RUN_FAILED, EXIT_SPEC, EXIT_REFUSED, EXIT_GATE, EXIT_STOPPED,
		     EXIT_DETACHED, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker schedule run m5", "runs the turn that is due, if any" },
			{ "stoker schedule run s3://bucket/models/m5 --at 2026-11-30T02:00:00Z",
			  "the same for the schedule pinned there, as of that moment" } } },
	{ "schedule next", "[SPEC]", 0, 1, SPEC_OPTS | OPT_BIT(NUMBER) | OPT_BIT(AT),
	  "show when a spec is due",
	  "Due times come from schedule.cron in schedule.timezone, after now or the moment of "
	  "--at.\n"
	  "A time that a clock change skips is due in the first minute after the gap; one that "
	  "comes\n"
	  "twice is due once, the first time.",
	  cmd_schedule_next, .fallback = "stoker.yaml", .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker schedule next", "shows the next ten due times" },
			{ "stoker schedule next stoker.yaml -n 3 --at 2027-03-27",
			  "shows what a clock change does" } } },
	{ "cache ls", "URL", 1, 1, 0, "list the graphs of a compile cache", NULL, cmd_cache_ls,
	  .exits = { EXIT_REFUSED },
	  .examples = { { "stoker cache ls .cache/jax",
			  "shows each graph, its size and whether it is done" } } },
	{ "cache verify", "URL|SPEC", 1, 1, SPEC_OPTS,
	  "check a cache against its compile manifests",
	  "Reads every entry that a compile manifest names (with a SPEC: the manifest of its "
	  "graph\n"
	  "key) and compares size and SHA-256. Exit code 0: all entries are good; 5: an entry is\n"
	  "missing or damaged.",
	  cmd_cache_verify, .exits = { EXIT_SPEC, EXIT_REFUSED, EXIT_GATE },
	  .examples = { { "stoker cache verify .cache/jax", "checks every compile manifest in it" },
			{ "stoker cache verify stoker.yaml",
			  "checks the compile manifest of this spec" } } },
	{ "cache why", "[SPEC]", 0, 1, SPEC_OPTS,
	  "explain warm or cold: the ingredient that changed, old value and new", NULL,
	  cmd_cache_why, .fallback = "stoker.yaml", .exits = { EXIT_SPEC, EXIT_REFUSED },
	  .examples = { { "stoker cache why stoker.yaml --set hyperparameters.batch_size=32",
			  "names the batch size, old and new" } } },
	{ "cache pull", "URL DIR", 2, 2, OPT_BIT(ONLY) | OPT_BIT(DRY_RUN),
	  "download a compile cache into a directory",
	  "Copies the objects that DIR lacks or has with other content. Nothing is deleted, and\n"
	  "unchanged objects are not read again. Each graph's marker follows its content, and the\n"
	  "compile manifests come last; the lock files of compilers are not copied. After an\n"
	  "interruption the same command continues. Names that cannot be files are refused and\n"
	  "reported. Exit code 4 also if an object changed while it was copied.",
	  cmd_cache_pull, .exits = { EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker cache pull s3://bucket/neuron-cache .cache/neuron",
			  "downloads new and changed objects" },
			{ "stoker cache pull s3://bucket/neuron-cache .cache/neuron --dry-run",
			  "shows the objects that would be downloaded" } } },
	{ "cache push", "DIR URL", 2, 2, OPT_BIT(ONLY) | OPT_BIT(DRY_RUN),
	  "upload a directory to a compile cache",
	  "Copies the files that URL lacks or has with other content, and deletes nothing there.\n"
	  "Links are refused. The rules of 'stoker help cache pull' apply.",
	  cmd_cache_push, .exits = { EXIT_REFUSED, EXIT_UNREACHABLE },
	  .examples = { { "stoker cache push .cache/neuron s3://bucket/neuron-cache",
			  "uploads new and changed files" },
			{ "stoker cache push .cache/jax /mnt/shared/jax --only stoker/",
			  "uploads the compile manifests only" } } },
	{ "cache gc", "URL", 1, 1, OPT_BIT(OLDER_THAN) | OPT_BIT(DELETE),
	  "show old graphs that no compile manifest names; --delete removes them",
	  "A graph may be removed if no compile manifest names it and all of its entries are "
	  "older\n"
	  "than --older-than, at least a day. A graph is removed as a whole or not at all. "
	  "Entries\n"
	  "that a compiler has locked stay, and so do entries of no known form. Other programs\n"
	  "that use the cache write no compile manifests: they compile missing graphs again. Exit\n"
	  "code 5: a manifest cannot be read, so that nothing may be removed.",
	  cmd_cache_gc, .exits = { EXIT_REFUSED, EXIT_GATE },
	  .examples = { { "stoker cache gc .cache/jax --older-than 30d",
			  "shows what could be removed; nothing is changed" },
			{ "stoker cache gc .cache/jax --older-than 30d --delete",
			  "removes them" } } },
	{ "promote", "RUN", 1, 1, OPT_BIT(FORCE) | OPT_BIT(REASON) | OPT_BIT(LEASE),
	  "make the model of a run the current version",
	  "Copies the model to promote.url, proves every file by its SHA-256, appends an entry to\n"
	  "the lineage, and moves the pointer current.json. The command can be repeated: it goes "
	  "on\n"
	  "where it was ended, and promotes once. A run that a gate refused, that failed, or "
	  "whose\n"
	  "turn another version has overtaken needs --force, which needs a --reason. A debug run "
	  "is\n"
	  "never promoted. Exit code 5: a gate said no, another version came first, or the model "
	  "is\n"
	  "not what the run wrote.",
	  cmd_promote,
	  .exits = { EXIT_RUN_FAILED, EXIT_REFUSED, EXIT_GATE, EXIT_BUSY, EXIT_NOT_FOUND,
		     EXIT_UNREACHABLE },
	  .examples = { { "stoker promote gpu-7", "makes the newest checkpoint of gpu-7 current" },
			{ "stoker promote gpu-7 --force --reason 'hold-out was wrong'",
			  "promotes it although a gate said no" } } },
	{ "rollback", "[MODEL] [GENERATION]", 0, 2, OPT_BIT(REASON),
	  "go back to an earlier version of a model",
	  "Appends an entry to the lineage and moves the pointer; nothing is deleted. Without a\n"
	  "GENERATION it is the newest earlier version of another run. The next 'retrain' takes "
	  "the\n"
	  "version as its parent, and asks for data that this version was not given.",
	  cmd_rollback, .exits = { EXIT_REFUSED, EXIT_GATE, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker rollback --reason 'wrong labels in week 4'",
			  "goes back to the version before" },
			{ "stoker rollback m5 12 --reason 'bad embeddings'",
			  "goes back to generation 12 of the model m5" } } },
	{ "lineage", "[MODEL]", 0, 1, OPT_BIT(VERIFY) | OPT_BIT(HEAD),
	  "show every promotion of a model, the newest first",
	  "--verify computes every digest again: of the entries, each of which names the one "
	  "before,\n"
	  "and of the files that they name. It needs no network if MODEL is a copy of the folder "
	  "on\n"
	  "this machine. Who can write the whole folder can write a new chain: --head compares it\n"
	  "with a digest that was kept elsewhere. Exit code 5: an object differs; it is named.",
	  cmd_lineage, .fallback = "@last",
	  .exits = { EXIT_REFUSED, EXIT_GATE, EXIT_NOT_FOUND, EXIT_UNREACHABLE },
	  .examples = { { "stoker lineage m5", "shows the versions of the model m5" },
			{ "stoker lineage ./copy-of-m5 --verify",
			  "verifies a copy of its folder" } } },
	{ "schema", "", 0, 0, OPT_BIT(OF), "print the JSON Schema of the spec, or of printed JSON",
	  "Draft 2020-12. --of NAME describes a line of JSON by the command that prints it: "
	  "status\n"
	  "(also wait), list, plan, validate, init, logs, metrics, compare (also sweep), sweep,\n"
	  "stats, export, diff, rm, promote, rollback, lineage, cache-ls, cache-verify, cache-why, "
	  "cache-gc, version,\n"
	  "completion, help; copy for cp, cache pull and cache push;\n"
	  "events for run, attach, resume, stop and events; error for the line that ends a "
	  "command\n"
	  "with an error. 'stoker help json' explains the keys.",
	  cmd_schema, .is_bare = true, .exits = { 0 },
	  .examples = { { "stoker schema > stoker.schema.json",
			  "writes the schema for an editor: # yaml-language-server: "
			  "$schema=stoker.schema.json" },
			{ "stoker schema --of status",
			  "describes what 'stoker status --json' prints" } } },
	{ "version", "", 0, 0, 0, "print the versions of stoker and of everything linked", NULL,
	  cmd_version, .is_bare = true, .examples = { { "stoker version", "prints them" } } },
	{ "completion", "SHELL", 1, 1, 0, "print the completion script of a shell",
	  "bash: stoker completion bash > ~/.local/share/bash-completion/completions/stoker\n\n"
	  "zsh: stoker completion zsh > a folder of $fpath, as _stoker, before compinit runs\n\n"
	  "fish: stoker completion fish > ~/.config/fish/completions/stoker.fish\n\n"
	  "The Debian package and the archive for any Linux bring all three. They ask stoker for\n"
	  "the words that may come next, so they always fit its version: commands, options and\n"
	  "their values, specs, runs, fields and topics.",
	  cmd_completion, .is_bare = true,
	  .examples = { { "source <(stoker completion bash)",
			  "enables completion in this bash" } } },
	{ "help", "[TOPIC]", 0, 2, 0,
	  "show help on a command, a field of the spec or another topic",
	  "'stoker COMMAND --help' shows the same. 'stoker help topics' lists the other topics.",
	  cmd_help, .is_bare = true,
	  .examples = { { "stoker help run", "a command" },
			{ "stoker help retry.backoff", "a field of the spec" },
			{ "stoker help environment", "the variables that a job gets" } } },
	{ "complete", "[WORD…]", 0, -1, 0, NULL, NULL, cmd_complete, .exits = { 0 } },
	{ "manual", "PAGE DATE", 2, 2, 0, NULL, NULL, cmd_manual, .is_bare = true, .exits = { 0 } },
	{ 0 },
};
