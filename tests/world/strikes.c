/* One thing that stoker does, with each of its calls failing in turn: see strikes.h. */
#include "tests/world/strikes.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/hash.h"
#include "jobs/base/mem.h"
#include "tests/world/habits.h"
#include "tests/world/host.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/losses.h"
#include "tests/world/operators.h"
#include "tests/world/programs.h"
#include "tests/world/rules.h"
#include "tests/world/sqlite.h"
#include "tests/world/story.h"
#include "tests/world/tree.h"

pid_t __real_waitpid(pid_t pid, int *status, int options);
void __real__exit(int status) __attribute__((noreturn));

#define OUT        "/srv/user/struck"
#define LASTING_NS (10 * 60 * WORLD_S)
#define LONGEST_NS (2 * 3600 * WORLD_S)
#define SITES_MAX  65536
#define FRAMES     48
#define MOST_CALLS 2000000 /* of one that does not turn in a circle */

/* How a call fails. */
enum way { WAY_ONCE, WAY_LASTING, WAY_DONE, WAYS };
static const char *const way_names[WAYS] = { "once", "for minutes", "though done" };

static const struct strike_action *action;
static struct schedule places;
static struct process *struck; /* whose calls fail; NULL: none do */
static strike_fn before_fn;    /* of strikes_do() */
static const char *only;       /* cases with that in their words; NULL: all */
static uint64_t calls, sites, share, cases, broken;
static bool have_hit; /* a call of `act` */

/* The case that this process is: of which call, and how. */
static struct {
	bool is;
	enum call_id id;
	int error;
	enum way way;
	int64_t until_ns; /* of WAY_LASTING */
	char words[200];
} own;

bool strikes_may_end_run(void)
{
	return own.is && (own.way == WAY_LASTING || call_is_answer(own.id, own.error));
}

/* ---- the program ---- */

static int count_open(void)
{
	int count = 0;

	for (int fd = 0; fd < PROCESS_FDS; fd++)
		count += self->fds[fd].file != NULL;
	return count;
}

static strike_fn fn_named(const char *name)
{
	if (strcmp(name, "act") == 0)
		return action->act;
	if (strcmp(name, "before") == 0)
		return before_fn;
	if (strcmp(name, "again") == 0)
		return action->again ? action->again : action->act;
	return action->check;
}

/* Exit statuses of the program beside 0. */
enum { REFUSED = 1, BROKE = 2 };

static int complain(const char *what, const struct err *why)
{
	fprintf(stderr, "%s%s%s\n", what, why ? ": " : "", why ? why->message : "");
	return BROKE;
}

static int strike_main(int argc, char **argv)
{
	AUTO(err_freep) struct err *why = NULL;
	int open_before = count_open(), result;

	/* background_start() starts this program. */
	if (argc > 4 && strcmp(argv[1], "--state") == 0) {
		result = operator_resume(argv[argc - 1], &why);
		if (result >= 0)
			return result;
		(void)complain("the background", why);
		return (int)why->code;
	}
	result = fn_named(argv[1])(argv[2], &why);
	if (count_open() != open_before)
		return complain("a descriptor is left open", why);
	if (result >= 0)
		return why ? complain("it is done, and there is an error", why) : 0;
	if (!why || !why->message || !why->message[0])
		return complain("it failed without a word", NULL);
	if (why->code == EXIT_DEFECT)
		return complain("stoker takes the failure for a defect of its own", why);
	fprintf(stderr, "%s\n", why->message);
	return REFUSED;
}

/* ---- cases ---- */

static const char *words_of(enum call_id id, int error, enum way way, const char *path)
{
	static char words[200];
	size_t len = path ? strlen(path) : 0;

	snprintf(words, sizeof words, "%s(%.90s) %s %s", call_rows[id].name,
		 len > 90 ? path + len - 90
		 : len    ? path
			  : "",
		 strerrorname_np(error), way_names[way]);
	return words;
}

/* Forks for the next case: true in the child. The parent waits for it. */
static bool next_case(enum call_id id, int error, enum way way, const char *path)
{
	const char *words = words_of(id, error, way, path);
	pid_t pid;
	int status;

	if (only && !strstr(words, only))
		return false;
	pid = host_fork();
	cases++;
	if (pid == 0) {
		own.is = true;
		own.id = id;
		own.error = error;
		own.way = way;
		own.until_ns = now_ns + LASTING_NS;
		snprintf(own.words, sizeof own.words, "%s", words);
		return true;
	}
	while (__real_waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(2);
	if (status != 0)
		broken++;
	return false;
}

static void strike(struct process *process, struct call *call)
{
	call->error = own.error;
	call->done = own.way == WAY_DONE;
	process->refused++;
}

/* Not been here on this way through the code, as the return addresses on the stack tell. */
static bool is_new_way_here(enum call_id id)
{
	static uint64_t seen[SITES_MAX];
	void *frames[FRAMES];
	int count = backtrace(frames, FRAMES);
	uint64_t site = (uint64_t)id + 1;

	for (int i = 0; i < count; i++)
		site = (site ^ (uint64_t)(uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint64_t at = site % SITES_MAX;; at = (at + 1) % SITES_MAX) {
		if (seen[at] == site)
			return false;
		if (seen[at] == 0) {
			seen[at] = site;
			if (++sites == SITES_MAX)
				world_broken("there are too many ways to calls");
			return true;
		}
	}
}

/* What a process hears its orders by is not refused for minutes: it could hear none. */
static bool brings_orders(enum call_id id, const char *path)
{
	return id == CALL_poll ||
	       (path && (strncmp(path, "pipe:", 5) == 0 || strstr(path, "[signalfd]")));
}

static void on_call(struct process *process, struct call *call, const char *path)
{
	const struct call_row *row = &call_rows[call->id];
	int errors = 0;

	if (process != struck || row->kind == CALL_OWN || row->errors[0] == 0)
		return;
	call->error = action->refused ? action->refused(call->id, path) : 0;
	if (call->error)
		return;
	if (own.is) {
		if (own.way == WAY_LASTING && call->id == own.id && now_ns < own.until_ns &&
		    !brings_orders(call->id, path))
			strike(process, call);
		return;
	}
	calls++;
	if (!is_new_way_here(call->id) || sites % share != 0)
		return;
	while (row->errors[errors])
		errors++;
	/* Each error once; of the two other ways one each, in turn. */
	for (int i = 0; i < errors + 2; i++) {
		enum way way = i < errors ? WAY_ONCE : i == errors ? WAY_LASTING : WAY_DONE;
		int error = row->errors[i < errors ? (uint64_t)i : calls % (uint64_t)errors];

		if ((way == WAY_DONE && row->kind != CALL_CHANGES) ||
		    (way == WAY_LASTING && (error == EINTR || brings_orders(call->id, path))))
			continue;
		if (next_case(call->id, error, way, path)) {
			strike(process, call);
			return;
		}
	}
}

static void tell(const char *what)
{
	printf("%s: %s\n", own.is ? own.words : "nothing fails", what);
	fflush(stdout);
}

/* Output of a process. */
static void tell_output(void)
{
	char *text = tree_get(places.hosts[0], OUT, NULL);

	printf("%s", text ? text : "");
	free(text);
}

/* Starts the program and plays until it has ended; its exit status, -1: it has not. */
static int play(const char *what, bool strikes)
{
	const char *state = setting_state(&places.setting);
	char *argv[] = { (char *)"stoker", (char *)what, places.run, NULL };
	char variable[256];
	char *envp[] = { variable, (char *)"HOME=/srv/user", (char *)"USER=user",
			 (char *)"PATH=/usr/bin:/bin", NULL };
	const struct process_start start = { .machine = places.hosts[0],
					     .program = "/opt/stoker/strike",
					     .argv = argv,
					     .envp = envp,
					     .cwd = "/srv/user/job",
					     .out_path = OUT };
	int64_t began_ns = now_ns;
	struct process *process;

	snprintf(variable, sizeof variable, "STOKER_STATE=%s", state);
	process = process_start(&start);
	if (strikes)
		struck = process;
	while (process && process->state == PROCESS_ALIVE && now_ns - began_ns < LONGEST_NS &&
	       process->calls < MOST_CALLS)
		world_play_until(now_ns + WORLD_S);
	struck = NULL;
	if (strikes)
		have_hit = process && process->refused > 0;
	if (process && process->state == PROCESS_ALIVE)
		printf("after %lld s and %llu calls:\n", (long long)((now_ns - began_ns) / WORLD_S),
		       (unsigned long long)process->calls);
	if (!process || process->state == PROCESS_ALIVE)
		return -1;
	return WIFEXITED(process->status) ? WEXITSTATUS(process->status) : 128;
}

/* The rules of strikes.h hold. */
static bool holds(void)
{
	int status = play("act", true);

	if (status != 0 && (status != REFUSED || !own.is)) {
		tell(status < 0 ? "it does not end" : "it broke");
		return false;
	}
	status = play("again", false);
	if (status != 0) {
		tell(status < 0 ? "asked again, it does not end" : "asked again, it is not done");
		return false;
	}
	if (action->check && play("check", false) != 0) {
		tell("what it left is not what it should be");
		return false;
	}
	return true;
}

/* ---- the run before ---- */

static bool has_processes(const char *name)
{
	for (const struct process *at = processes; at; at = at->next)
		if (at->state == PROCESS_ALIVE && at->argv && at->argv[0] &&
		    strcmp(at->argv[0], name) == 0)
			return true;
	return false;
}

static void play_until(bool (*is_over)(int64_t asked), int64_t asked)
{
	int64_t until_ns = now_ns + LONGEST_NS;

	(void)operator_start(&places, 0, "run", places.run);
	while (!is_over(asked)) {
		if (now_ns > until_ns)
			world_broken("the run before the strikes does not get there");
		world_play_until(now_ns + 10 * WORLD_MS);
	}
}

static bool has_ended(int64_t events)
{
	(void)events;
	return story_last(story_of(places.run), EV_RUN_ENDED, 0) && !has_processes("stoker");
}

static bool has_events(int64_t events)
{
	const struct story *story = story_of(places.run);

	return story && story->count >= events;
}

static bool has_event(int64_t kind)
{
	return story_last(story_of(places.run), (enum event_kind)kind, 0) != NULL;
}

void strikes_run_to_end(struct schedule *schedule)
{
	(void)schedule;
	play_until(has_ended, 0);
}

void strikes_run_until(int64_t events)
{
	play_until(has_events, events);
	for (struct process *at = processes; at; at = at->next)
		if (at->state == PROCESS_ALIVE && at->argv && at->argv[0] &&
		    strcmp(at->argv[0], "stoker") == 0)
			process_signal(at, SIGKILL);
}

void strikes_run_until_event(enum event_kind kind)
{
	play_until(has_event, kind);
	for (struct process *at = processes; at; at = at->next)
		if (at->state == PROCESS_ALIVE)
			process_signal(at, SIGKILL);
}

void strikes_do(strike_fn fn)
{
	before_fn = fn;
	if (play("before", false) != 0) {
		tell_output();
		world_broken("what comes before the strikes does not work");
	}
}

/* In the spec of each host; `at`: NULL: at its end. */
static void edit_specs(const char *at, const char *by)
{
	static const char path[] = "/srv/user/job/job.yaml";

	for (int host = 0; host < 2 && places.hosts[host]; host++) {
		AUTO(auto_free) char *spec = tree_get(places.hosts[host], path, NULL);
		const char *from = at ? strstr(spec, at) : spec + strlen(spec);
		AUTO(auto_free) char *edited = NULL;

		if (!from)
			world_broken("the spec has no such text");
		edited = mem_format("%.*s%s%s", (int)(from - spec), spec, by,
				    from + (at ? strlen(at) : 0));
		tree_put(places.hosts[host], path, edited, strlen(edited), 0644);
	}
}

void strikes_add_to_spec(const char *lines)
{
	edit_specs(NULL, lines);
}

void strikes_edit_spec(const char *text, const char *by)
{
	edit_specs(text, by);
}

/* ---- driving ---- */

int strikes_drive(const char *run, struct err **err)
{
	return operator_run(run, STRIKES_SPEC, err);
}

bool strikes_have_hit(void)
{
	return have_hit;
}

/* ---- all of it ---- */

static void look_on(void)
{
}

static void begin(const struct strike_action *given)
{
	static const char text[] = "\177ELF world strike\n";

	action = given;
	places = (struct schedule){ .seed = 1, .number = 1, .scenario = given->scenario };
	playing = &places;
	story_reset();
	rules_reset();
	losses_reset();
	setting_make(&places);
	habits_draw();
	world_observer = look_on;
	program_register("strike", strike_main);
	tree_put(places.hosts[0], "/opt/stoker/strike", text, strlen(text), 0755);
	if (given->before)
		given->before(&places);
	call_fault = on_call;
}

static bool strikes_play(const char *name, const struct strike_action *given)
{
	bool good;

	begin(given);
	good = holds();
	if (!good)
		tell_output();
	if (own.is) {
		fflush(stdout);
		__real__exit(good ? 0 : 1);
	}
	printf("%s: calls %llu by %llu ways, cases %llu, broken %llu\n", name,
	       (unsigned long long)calls, (unsigned long long)sites, (unsigned long long)cases,
	       (unsigned long long)broken);
	return good && broken == 0;
}

/* In a process of its own, so that the next one begins with a new world. */
static bool play_apart(const struct strike_action *given, uint64_t every)
{
	pid_t pid;
	int status;

	share = (given->share ? given->share : 1) * (every ? every : 1);
	pid = host_fork();
	if (pid == 0)
		__real__exit(strikes_play(given->name, given) ? 0 : 1);
	while (__real_waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return status == 0;
}

int strikes_main(int argc, char **argv, const struct strike_action *actions, size_t count)
{
	char hex[SHA256_HEX];
	uint64_t every = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	only = argc > 3 ? argv[3] : NULL;
	operators_register();
	programs_register();
	sqlite_register();
	hash_sha256_hex("", 0, hex); /* libcrypto sets itself up before a world begins */
	for (size_t i = 0; i < count; i++)
		if (argc < 3 || strstr(actions[i].name, argv[2]))
			good &= play_apart(&actions[i], every);
	return good ? 0 : 1;
}
