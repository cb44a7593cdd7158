/*
 * How commands, the cloud and who starts drivers behave in a schedule: drawn at each start, from
 * the few bad habits that this schedule has. A calm schedule has none, but all the good ones in
 * their variety.
 */
#include "tests/world/habits.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/world/cloud.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"

/* Bad habits of the commands; a schedule has some of them. */
enum habit {
	HABIT_FAILS_TRANSIENT, /* as a network or a neighbour makes it fail */
	HABIT_FAILS_USER,      /* as a mistake in the script does */
	HABIT_FAILS_UNKNOWN,
	HABIT_HANGS,
	HABIT_COMPILES_LATE,
	HABIT_FLOODS,
	HABIT_DRAWS_BARS,
	HABIT_DEAF_TO_STOP,
	HABIT_DEAF_TO_SAVE,
	HABIT_IGNORES_CHECKPOINT,
	HABIT_SAVES_IN_PLACE,
	HABIT_EXTRACTS,       /* phase 1's settings have leaked into the training */
	HABIT_LEAVES_CHILD,   /* it ends while a process that it has started lives on */
	HABIT_NO_CAPACITY,    /* the service has no machines */
	HABIT_DOUBLES,        /* the service makes two jobs of one call */
	HABIT_OTHER_COMPILER, /* some of its machines have another version */
	HABIT_FAILS_DENIED,   /* for want of a right, or of quota */
	HABIT_FAILS_AT_START, /* where it fails, it does so each time before it has done anything */
	HABIT_TIMER_STARTS,   /* a timer starts drivers whether or not one is there */
	HABIT_STOPS_BY_HAND,  /* who types Ctrl-C wants the run to be stopped */
	HABIT_SAVES_SLOWLY,   /* a checkpoint takes seconds, and there are few */
	HABIT_BEGINS_SLOWLY,  /* a training loads for long before its first step */
	HABIT_TAKES_MACHINES, /* the service does, of jobs that run (Spot) */
	HABIT_SLOW_LOGS,      /* a request for a log takes the service long, and some are long */
	HABIT_DIES_COMPILING, /* in the middle of a graph, as one does that gets too little memory
			       */
	HABIT_IMPATIENT,      /* who sees a driver do nothing for a while starts another one */
	HABIT_SLOW_TOOLS,     /* those of a check-up take long */
	HABIT_SICK_MACHINES,  /* a check-up finds something, or a tool of it hangs or fails */
	HABITS
};
static bool has[HABITS];

struct last_words {
	enum habit habit;
	const char *text;
	int exit;
};
static const struct last_words all_last_words[] = {
	{ HABIT_FAILS_TRANSIENT,
	  "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
	  "peer [10.0.0.7]:4711",
	  1 },
	{ HABIT_FAILS_TRANSIENT,
	  "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL", 1 },
	{ HABIT_FAILS_USER, "ModuleNotFoundError: No module named 'tranformers'", 1 },
	{ HABIT_FAILS_USER, "ValueError: batch_size must be divisible by the number of workers",
	  1 },
	{ HABIT_FAILS_DENIED,
	  "botocore.exceptions.ClientError: Error Code: AccessDenied, Message: Access Denied", 1 },
	{ HABIT_FAILS_UNKNOWN, "the frobnicator gave up", 3 },
	{ HABIT_FAILS_UNKNOWN, NULL, 9 },
};

/* What fails at its start fails each time for the same reason. */
static const struct last_words *draw_last_words(void)
{
	const struct last_words *found = NULL;
	int64_t seen = 0;

	for (size_t i = 0; i < sizeof all_last_words / sizeof all_last_words[0]; i++)
		if (has[HABIT_FAILS_AT_START] && has[all_last_words[i].habit] &&
		    playing->number % 2 == i % 2)
			return &all_last_words[i];
	for (size_t i = 0; i < sizeof all_last_words / sizeof all_last_words[0]; i++)
		if (has[all_last_words[i].habit] && chance_one_in(++seen))
			found = &all_last_words[i];
	return found;
}

/* Of what a healthy training does without a word limits.stall knows nothing. */
static int64_t draw_load(void)
{
	int64_t stall_s = playing->setting.stall_s;

	return chance_below((stall_s > 0 && stall_s < 60 ? stall_s / 2 : 30) * WORLD_S);
}

static void draw_traits(struct traits *ret, bool precompiles, int64_t attempt, int node)
{
	const struct setting *s = &playing->setting;
	/* The last third is free of faults; a command fails by itself for as long. */
	bool bad = !playing->setting.calm && attempt < playing->bad_attempts &&
		   (has[HABIT_FAILS_AT_START] || !chance_one_in(4));
	const struct last_words *words = bad ? draw_last_words() : NULL;
	int64_t last = precompiles ? GRAPHS_OF_JOB : s->steps;
	bool slow = has[HABIT_SAVES_SLOWLY];

	*ret = (struct traits){
		.step_ns = s->step_ns,
		.compile_ns = s->compile_ns,
		.steps_between_saves = slow ? 4 * s->saves_every : s->saves_every,
		.save_ns = slow ? chance_below(10 * WORLD_S) : 0,
		.shard_bytes = 1 + chance_below(20000),
		.fails_at = !words                      ? -1
			    : has[HABIT_FAILS_AT_START] ? 0
							: chance_below(last),
		.exit = words ? words->exit : 0,
		.last_words = words ? words->text : NULL,
		.hangs_at = bad && has[HABIT_HANGS] && chance_one_in(2)
				    ? chance_below(chance_one_in(3) ? 1 : last)
				    : -1,
		.load_ns = has[HABIT_BEGINS_SLOWLY] ? draw_load() : 0,
		.says_first = node == 0 && has[HABIT_SLOW_LOGS] && chance_one_in(2)
				      ? chance_below(10 << 20)
				      : 0,
		.dies_compiling = bad && has[HABIT_DIES_COMPILING] && chance_one_in(2),
		.late_graph_at = bad && has[HABIT_COMPILES_LATE] ? 1 + chance_below(last) : -1,
		.line_bytes = has[HABIT_FLOODS] ? 2000 : chance_below(80),
		.bar = has[HABIT_DRAWS_BARS],
		.saves_in_place = has[HABIT_SAVES_IN_PLACE],
		.leaves_child = has[HABIT_LEAVES_CHILD] && chance_one_in(2),
		.extracts = bad && has[HABIT_EXTRACTS] && !precompiles,
		.saves_on_signal = !has[HABIT_DEAF_TO_SAVE],
		.ignores_stop = has[HABIT_DEAF_TO_STOP],
		.saves_on_stop = !has[HABIT_DEAF_TO_STOP] && chance_one_in(2),
		.ignores_checkpoint = has[HABIT_IGNORES_CHECKPOINT] && bad,
		.task_ns = s->task_ns,
		.leaves_metrics = s->retrains && !chance_one_in(4),
	};
}

static void draw_tool(struct tool_traits *ret)
{
	bool sick = has[HABIT_SICK_MACHINES] && !faults_are_over() && chance_one_in(6);

	*ret = (struct tool_traits){
		.takes_ns = chance_below(
			has[HABIT_SLOW_TOOLS] ? playing->setting.health_s * WORLD_S / 6 : WORLD_S),
		.hangs = sick && chance_one_in(3),
		.finds_fault = sick && chance_one_in(2),
		.exit = sick && chance_one_in(3) ? 1 : 0,
	};
}

static void draw_cloud(struct cloud_habits *ret)
{
	bool bad = !faults_are_over() && !playing->setting.calm;

	*ret = (struct cloud_habits){
		.queue_ns = chance_below(chance_one_in(8) ? 300 * WORLD_S : 20 * WORLD_S),
		.boot_ns = (5 + chance_below(20)) * WORLD_S,
		.shown_late_ns = bad ? chance_below(20 * WORLD_S) : 0,
		.end_late_ns = chance_below(15 * WORLD_S),
		.doubled = bad && has[HABIT_DOUBLES] && chance_one_in(2),
		.no_capacity = bad && has[HABIT_NO_CAPACITY] && chance_one_in(2),
		/* Nobody mends that: the run has to do with it. */
		.other_compiler = has[HABIT_OTHER_COMPILER] && chance_one_in(2),
		.restarts = playing->cloud_restarts,
		.log_ns = has[HABIT_SLOW_LOGS] ? chance_below(200) * WORLD_MS : 0,
		.taken_after_ns = bad && has[HABIT_TAKES_MACHINES] && chance_one_in(2)
					  ? 1 + chance_below(60 * WORLD_S)
					  : 0,
	};
	if (bad && chance_one_in(10))
		ret->no_capacity_until_ns =
			now_ns +
			chance_below(chance_one_in(8) ? 4 * 3600 * WORLD_S : 120 * WORLD_S);
	if (ret->no_capacity_until_ns > playing->calm_from_ns)
		ret->no_capacity_until_ns = playing->calm_from_ns;
}

static bool is_of_service(int habit)
{
	return habit == HABIT_NO_CAPACITY || habit == HABIT_DOUBLES ||
	       habit == HABIT_OTHER_COMPILER || habit == HABIT_TAKES_MACHINES ||
	       habit == HABIT_SLOW_LOGS || habit == HABIT_IMPATIENT;
}

bool habits_timer_starts(void)
{
	return has[HABIT_TIMER_STARTS];
}

bool habits_are_impatient(void)
{
	return has[HABIT_IMPATIENT];
}

void habits_draw(void)
{
	for (int habit = 0; habit < HABITS; habit++)
		has[habit] = !playing->setting.calm && chance_one_in(is_of_service(habit) ? 3 : 5);
	playing->bad_attempts = chance_below(9);
	has[HABIT_SAVES_IN_PLACE] = chance_one_in(3);
	has[HABIT_DIES_COMPILING] = !playing->setting.calm && chance_one_in(3);
	has[HABIT_STOPS_BY_HAND] = chance_one_in(2);
	has[HABIT_SAVES_SLOWLY] = chance_one_in(5);
	has[HABIT_BEGINS_SLOWLY] = chance_one_in(4);
	has[HABIT_FAILS_AT_START] = !playing->setting.calm && chance_one_in(3);
	playing->cloud_restarts = !playing->setting.calm && chance_one_in(4);
	has[HABIT_SLOW_TOOLS] = chance_one_in(2);
	has[HABIT_SICK_MACHINES] = !playing->setting.calm && chance_one_in(3);
	programs_traits = draw_traits;
	programs_tool = draw_tool;
	cloud_habits = draw_cloud;
}

bool habits_stop_on_interrupt(void)
{
	return has[HABIT_STOPS_BY_HAND];
}

void habits_print(char *ret, size_t size)
{
	uint64_t mask = 0;

	for (int habit = 0; habit < HABITS; habit++)
		mask |= (uint64_t)has[habit] << habit;
	snprintf(ret, size, "habits %" PRIx64 " %" PRId64 " %d", mask, playing->bad_attempts,
		 playing->cloud_restarts);
}

bool habits_parse(const char *line)
{
	uint64_t mask;
	int restarts;

	if (sscanf(line, "habits %" SCNx64 " %" SCNd64 " %d", &mask, &playing->bad_attempts,
		   &restarts) != 3)
		return false;
	for (int habit = 0; habit < HABITS; habit++)
		has[habit] = mask >> habit & 1;
	playing->cloud_restarts = restarts;
	return true;
}
