/* The setting of a schedule: see play.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/sb.h"
#include "tests/world/bucket.h"
#include "tests/world/cloud.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"
#include "tests/world/sqlite.h"
#include "tests/world/tree.h"
#include "tests/world/tree_internal.h"
#include "tests/world/workspace.h"

#define BIN  "/opt/stoker/"
#define VENV "/opt/venv/"
#define JOB  "/srv/user/job/"

static void put_text(struct machine *machine, const char *path, const char *text, mode_t mode)
{
	tree_put(machine, path, text, strlen(text), mode);
}

/* A machine with stoker and a Python that has the compiler. */
static void install(struct machine *machine)
{
	put_text(machine, BIN "stoker", "\177ELF world stoker\n", 0755);
	put_text(machine, BIN "agent/stoker-node", "\177ELF world stoker-node\n", 0755);
	put_text(machine, BIN "stoker-node", "\177ELF world stoker-node\n", 0755);
	put_text(machine, VENV "bin/python", "\177ELF world python\n", 0755);
	put_text(machine, VENV "bin/neuron_parallel_compile",
		 "\177ELF world neuron_parallel_compile\n", 0755);
	put_text(machine, VENV "bin/straggler", "\177ELF world straggler\n", 0755);
	put_text(machine, VENV "bin/neuron-ls", "\177ELF world neuron-ls\n", 0755);
	put_text(machine, VENV "bin/nccom-test", "\177ELF world nccom-test\n", 0755);
	put_text(machine, VENV "bin/torchrun", "\177ELF world torchrun\n", 0755);
	put_text(machine, VENV "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n", 0644);
	programs_install_compiler(machine, 0);
	tree_mkdirs(machine, "/var/tmp");
	tree_mkdirs(machine, "/srv/user/.local/state");
}

static const char *workspace_of(const struct setting *setting)
{
	if (setting->far_workspace)
		return "s3://bucket/work";
	return setting->state == STATE_SHARE ? "/shared/work" : "/srv/user/work";
}

const char *setting_state(const struct setting *setting)
{
	static const char *const urls[STATE_KINDS] = {
		[STATE_SQLITE] = "/srv/user/state",
		[STATE_FOLDER] = "dir:/srv/user/state",
		[STATE_SHARE] = "dir:/shared/state",
		[STATE_BUCKET] = "s3://bucket/state",
	};

	return urls[setting->state];
}

static void add_limit(struct sb *spec, const char *name, int64_t seconds)
{
	if (seconds > 0)
		sb_addf(spec, "  %s: %llds\n", name, (long long)seconds);
}

static void add_count(struct sb *spec, const char *name, int64_t count)
{
	if (count > 0)
		sb_addf(spec, "  %s: %lld\n", name, (long long)count);
}

static const char *const on_exceed[] = { NULL, "warn", "stop", "recompile" };

static void write_spec(struct schedule *schedule)
{
	const struct setting *s = &schedule->setting;
	const char *workspace = workspace_of(s);
	AUTO(sb_release) struct sb spec = SB_INIT;

	sb_addf(&spec,
		"version: 1\nname: world\nengine: %s\nworkspace: %s\n"
		"source: {path: ., include: [train.py%s]}\n"
		"command: [" VENV "bin/python, train.py]\n"
		"hyperparameters: {max_steps: %lld}\n"
		"env: {PATH: \"" VENV "bin:/usr/bin:/bin\"}\n",
		s->cloud ? "batch" : "local", workspace,
		s->retrains ? ", evaluate.py, infer.py" : "", (long long)s->steps);
	sb_addf(&spec,
		"compile:\n  kind: neuron\n  cache_url: %s/cache\n"
		"  overrides: {hyperparameters: {max_steps: 2}}\n",
		workspace);
	add_limit(&spec, "timeout", s->compile_timeout_s);
	if (s->on_exceed > 0)
		sb_addf(&spec, "  jit_budget: {graphs: 0, on_exceed: %s}\n",
			on_exceed[s->on_exceed]);
	if (s->trains_on_incomplete)
		sb_adds(&spec, "  on_incomplete: train\n");
	sb_addf(&spec, "resources: {nodes: %d}\n", s->nodes);
	sb_adds(&spec, "metrics:\n"
		       "  - {name: step, regex: \"^step: ([0-9]+)\"}\n"
		       "  - {name: loss, regex: \"loss: ([0-9.eE+-]+)\"}\n");
	setting_add_metrics(schedule, &spec);
	sb_addf(&spec, "checkpoint:\n  kind: files\n  grace: %llds\n",
		(long long)s->checkpoint_grace_s);
	if (!s->saves_at_home)
		sb_addf(&spec, "  url: %s/saved\n", workspace);
	sb_addf(&spec, "retry:\n  backoff: {first: %llds, max: %llds}\n",
		(long long)s->backoff_first_s, (long long)s->backoff_max_s);
	add_count(&spec, "attempts", s->retry_attempts);
	add_count(&spec, "without_progress", s->retry_without_progress);
	sb_addf(&spec, "limits:\n  grace: %llds\n", (long long)s->grace_s);
	add_limit(&spec, "stall", s->stall_s);
	add_limit(&spec, "deadline", s->deadline_s);
	add_limit(&spec, "start", s->start_s);
	add_limit(&spec, "queue", s->queue_s);
	add_limit(&spec, "unreachable", s->unreachable_s);
	if (s->health > 0)
		sb_addf(&spec, "health:\n  device: true\n  timeout: %llds\n%s",
			(long long)s->health_s,
			s->health > 1 ? "  collectives: {ops: [all_reduce], size: 1MiB}\n" : "");
	setting_add_retraining(schedule, &spec);
	for (int host = 0; host < 2 && schedule->hosts[host]; host++) {
		tree_put(schedule->hosts[host], JOB "job.yaml", spec.text, spec.len, 0644);
		put_text(schedule->hosts[host], JOB "train.py", "train()\n", 0644);
		if (!s->retrains)
			continue;
		put_text(schedule->hosts[host], JOB "evaluate.py", "evaluate()\n", 0644);
		put_text(schedule->hosts[host], JOB "infer.py", "infer()\n", 0644);
	}
}

/* As the spec has it by itself, soon used up, or more than a cause can be retried. */
static int64_t draw_retries(void)
{
	return chance_one_in(3) ? 0 : chance_one_in(2) ? 1 + chance_below(3) : 5 + chance_below(6);
}

static void draw_long_training(struct setting *s)
{
	s->step_ns = (2 + chance_below(6)) * WORLD_S;
	s->stall_s = 40 + chance_below(60);
	if (chance_one_in(4)) { /* with many checkpoints */
		s->steps = 60 + chance_below(60);
		s->step_ns = WORLD_S;
		s->saves_every = 1;
	}
	s->deadline_s = chance_one_in(2) ? 20 + chance_below(s->steps * s->step_ns / WORLD_S) : 0;
}

static void draw(struct schedule *schedule)
{
	struct setting *s = &schedule->setting;

	s->nodes = chance_below(16) < 7 ? 1 : 2 + (int)chance_below(3);
	s->calm = schedule->number % 10 == 0;
	s->state = chance_below(16) < 7 ? STATE_FOLDER
		   : chance_one_in(2)   ? STATE_SHARE
					: STATE_BUCKET;
	if (s->state == STATE_FOLDER && schedule->number % 2 == 1)
		s->state = STATE_SQLITE;
	s->cloud = s->state == STATE_BUCKET && !chance_one_in(3);
	s->far_workspace = s->cloud || (s->state == STATE_BUCKET) || chance_one_in(6);
	s->neighbour = chance_one_in(6);
	s->two_hosts = s->state >= STATE_SHARE && chance_one_in(2);
	/* Times are short, in relation to each other as in real jobs: a driver asks up to ten times
	 * a second, and what nothing happens in costs the most. */
	s->steps = 10 + chance_below(25);
	s->step_ns = chance_one_in(5) ? (500 + chance_below(2500)) * WORLD_MS
				      : (20 + chance_below(200)) * WORLD_MS;
	s->compile_ns =
		(chance_one_in(6) ? 1000 + chance_below(4000) : 50 + chance_below(450)) * WORLD_MS;
	s->saves_every = 1 + chance_below(4);
	s->stall_s = chance_one_in(100) ? 0 : 20 + chance_below(30);
	s->compile_timeout_s = chance_one_in(200) ? 0 : 20 + chance_below(40);
	s->deadline_s = chance_one_in(3) ? 5 + chance_below(60) : 0;
	s->start_s = 120;
	s->unreachable_s = 60 + chance_below(240);
	s->queue_s = chance_one_in(3) ? 20 + chance_below(chance_one_in(2) ? 60 : 280) : 0;
	s->backoff_first_s = 1 + chance_below(5);
	s->backoff_max_s = 5 + chance_below(30);
	s->grace_s = chance_one_in(3) ? 30 + chance_below(60) : 2 + chance_below(20);
	s->checkpoint_grace_s = 5 + chance_below(25);
	if (chance_one_in(8)) { /* a patient spec */
		s->backoff_first_s = 5 + chance_below(40);
		s->backoff_max_s = s->backoff_first_s + chance_below(120);
	}
	s->on_exceed = chance_one_in(2) ? 0 : 1 + (int)chance_below(STK_LENGTH(on_exceed) - 1);
	s->trains_on_incomplete = chance_one_in(10);
	s->retry_attempts = draw_retries();
	/* Many of both, and the cause alone says when it is enough. */
	s->retry_without_progress =
		s->retry_attempts >= 5 && chance_one_in(2) ? s->retry_attempts : draw_retries();
	s->saves_at_home = chance_one_in(3);
	s->neighbour_first = s->neighbour && chance_one_in(2);
	if (s->calm) {
		s->deadline_s = s->queue_s = 0;
		s->compile_timeout_s = 120;
		if (chance_one_in(3)) { /* slow, and healthy all the same */
			int64_t stall_s = s->stall_s > 0 ? s->stall_s : 40;

			s->step_ns = (2 + chance_below(stall_s / 4 - 1)) * WORLD_S;
			s->steps = 4 + chance_below(6);
		}
		return;
	}
	if (chance_one_in(3)) /* limits that are reached soon */
		s->start_s = 2 + chance_below(10);
	if (chance_one_in(3))
		s->unreachable_s = 10 + chance_below(50);
	if (chance_one_in(6)) /* minutes of training: it is still there when something follows */
		draw_long_training(s);
	if (chance_one_in(60)) { /* hours of training, and of faults */
		s->step_ns = (120 + chance_below(240)) * WORLD_S;
		s->steps = 20 + chance_below(15);
		s->stall_s = 1800;
		s->deadline_s = 0;
	}
}

/* A check-up of the nodes before the training, and a deadline close to the training's end. Last, so
 * that the rest is as it was without them. */
static void draw_more(struct setting *s)
{
	int64_t lasts_s = s->steps * s->step_ns / WORLD_S;

	if (chance_one_in(4)) {
		s->health = 1 + (int)chance_below(2);
		s->health_s = 20 + chance_below(60);
	}
	if (s->deadline_s > 0 && lasts_s >= 5 && chance_one_in(2))
		s->deadline_s = lasts_s + chance_below(lasts_s / 2 + 15);
}

/* The fixed settings in which every place is tried. */
static const struct scenario {
	const char *name;
	struct setting setting;
} scenarios[] = {
	{ "two-nodes",
	  { .nodes = 2, .state = STATE_FOLDER, .steps = 8, .saves_every = 3, .stall_s = 600 } },
	{ "far",
	  { .nodes = 2,
	    .state = STATE_BUCKET,
	    .far_workspace = true,
	    .cloud = true,
	    .two_hosts = true,
	    .steps = 8,
	    .saves_every = 3,
	    .stall_s = 600 } },
	{ "bucket",
	  { .nodes = 1,
	    .state = STATE_FOLDER,
	    .far_workspace = true,
	    .steps = 8,
	    .saves_every = 3,
	    .stall_s = 600 } },
	{ "sqlite",
	  { .nodes = 1, .state = STATE_SQLITE, .steps = 8, .saves_every = 3, .stall_s = 600 } },
	{ "drain",
	  { .nodes = 1,
	    .state = STATE_FOLDER,
	    .steps = 400,
	    .saves_every = 20,
	    .deadline_s = 60,
	    .stall_s = 600 } },
};

const char *setting_find_scenario(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(scenarios); i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return scenarios[i].name;
	return NULL;
}

static void set_scenario(struct schedule *schedule)
{
	struct setting *s = &schedule->setting;

	for (size_t i = 0; i < STK_LENGTH(scenarios); i++)
		if (strcmp(scenarios[i].name, schedule->scenario) == 0)
			*s = scenarios[i].setting;
	schedule->one_run = true;
	s->calm = true;
	s->step_ns = 500 * WORLD_MS;
	s->compile_ns = 500 * WORLD_MS;
	s->start_s = 1800;
	s->backoff_first_s = 5;
	s->backoff_max_s = 60;
	s->grace_s = 20;
	s->checkpoint_grace_s = 30;
}

void setting_make(struct schedule *schedule)
{
	struct setting *s = &schedule->setting;
	struct disk *share;

	chance_seed(schedule->seed, schedule->number);
	sqlite_reset();
	if (schedule->scenario) {
		set_scenario(schedule);
	} else if (!schedule->has_setting) {
		draw(schedule);
		draw_more(s);
		setting_draw_retraining(schedule);
	}
	schedule_name_run(schedule);
	schedule->hosts[0] = machine_new("head-0", WORLD_EPOCH_MS * WORLD_MS);
	if (s->two_hosts)
		schedule->hosts[1] = machine_new("head-1", WORLD_EPOCH_MS * WORLD_MS + WORLD_S);
	share = s->state == STATE_SHARE ? disk_new(DISK_SHARE, "filer:/export") : NULL;
	if (share)
		disk_refuse_folder_sync(share, chance_one_in(3));
	for (int host = 0; host < 2 && schedule->hosts[host]; host++) {
		install(schedule->hosts[host]);
		if (share)
			tree_mount(schedule->hosts[host]->root, "/shared", share);
	}
	write_spec(schedule);
	setting_put_holdout(schedule);
	/* It has all been there for long. */
	for (int host = 0; host < 2 && schedule->hosts[host]; host++)
		sync_disk(schedule->hosts[host]->root->mounts[0].disk);
	cloud_reset("s3://bucket/work", schedule->hosts[0]);
}

void setting_print(const struct setting *setting, char *ret, size_t size)
{
	size_t len = (size_t)snprintf(ret, size, "setting");

#define FIELD(name)                                                                                \
	if (len < size)                                                                            \
		len += (size_t)snprintf(ret + len, size - len, " " #name "=%lld",                  \
					(long long)setting->name);
	SETTING_FIELDS(FIELD)
#undef FIELD
}

bool setting_parse(const char *line, struct setting *ret)
{
	char copy[SETTING_LINE_MAX], *rest = NULL;

	if (strncmp(line, "setting ", strlen("setting ")) != 0)
		return false;
	snprintf(copy, sizeof copy, "%s", line + strlen("setting "));
	for (char *word = strtok_r(copy, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		char *value = strchr(word, '=');

		if (!value)
			return false;
		*value++ = '\0';
#define FIELD(name)                                                                                \
	if (strcmp(word, #name) == 0)                                                              \
		ret->name = (__typeof__(ret->name))strtoll(value, NULL, 10);
		SETTING_FIELDS(FIELD)
#undef FIELD
	}
	return true;
}

int setting_first_graph(const char *phase)
{
	return !phase                           ? 0
	       : strcmp(phase, "evaluate") == 0 ? 100
	       : strcmp(phase, "infer") == 0    ? 200
						: 0;
}

static bool is_whole_for(int number, int first)
{
	const struct compiler *compiler = &compilers[number];

	for (int graph = 0; graph < GRAPHS_OF_JOB; graph++) {
		char module[64];
		AUTO(auto_free) char *path = NULL;

		programs_graph_name(module, first + graph, false);
		path = mem_format("cache/%s/%s/model.done", compiler->place, module);
		if (!workspace_has(path))
			return false;
	}
	return true;
}

bool setting_cache_whole_for(int number)
{
	return is_whole_for(number, 0);
}

bool setting_graphs_whole(const char *phase)
{
	for (int compiler = 0; compiler < COMPILERS; compiler++)
		if (is_whole_for(compiler, setting_first_graph(phase)))
			return true;
	return false;
}

bool setting_cache_whole(void)
{
	return setting_graphs_whole("train");
}

struct process *operator_start(struct schedule *schedule, int host, const char *command,
			       const char *run)
{
	AUTO(auto_free)
	char *state = mem_format("STOKER_STATE=%s", setting_state(&schedule->setting));
	bool runs = strcmp(command, "run") == 0, retrains = runs && schedule->setting.retrains;
	char *argv[] = { (char *)"stoker",
			 (char *)(retrains ? "retrain" : command),
			 (char *)run,
			 runs ? (char *)(JOB "job.yaml") : NULL,
			 retrains ? (char *)setting_pause(&schedule->setting) : NULL,
			 NULL };
	char *envp[] = { state,
			 (char *)"HOME=/srv/user",
			 (char *)"USER=user",
			 (char *)"PATH=/usr/bin:/bin",
			 (char *)"LANG=C.UTF-8",
			 NULL };
	const struct process_start start = { .machine = schedule->hosts[host],
					     .program = BIN "stoker",
					     .argv = argv,
					     .envp = envp,
					     .cwd = JOB,
					     .out_path = "/srv/user/out" };

	schedule->drivers++;
	if (retrains)
		setting_put_data(schedule);
	return process_start(&start);
}
