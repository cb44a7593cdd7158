/*
 * A schedule: one run (or several, one after the other) in one world, from its setting to its end.
 * All of it follows from a seed and a number: the setting (nodes, engine, state, workspace), which
 * faults there are and how often, and every choice while it plays.
 *
 *   setting.c   draws the setting, makes machines, disks, files and the spec
 *   play.c      plays: operators that start drivers again, users, the end
 *   faults.c    what goes wrong: in calls, processes, machines, clocks, services
 *   rules.c     what must hold; looked at after each event and effect
 */
#ifndef STK_TESTS_WORLD_PLAY_H
#define STK_TESTS_WORLD_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/world/call.h"
#include "tests/world/kernel.h"

/* Kinds of a run's state; those from STATE_SHARE on can be used from several machines. */
enum state_kind { STATE_SQLITE, STATE_FOLDER, STATE_SHARE, STATE_BUCKET, STATE_KINDS };

/* What happens at a place of a scenario (points.h). */
enum mishap {
	MISHAP_NONE,
	MISHAP_ERROR, /* one call fails once */
	MISHAP_DRIVER_KILLED,
	MISHAP_HELPER_KILLED,
	MISHAP_AGENT_KILLED,
	MISHAP_POWER,
	MISHAP_KILLED_TWICE, /* two processes, or two after one another */
};

struct setting {
	int nodes;  /* 1 to 4 */
	bool cloud; /* the far engine; else local */
	enum state_kind state;
	bool far_workspace; /* in a bucket; else a folder (of the share, where the state is there)
			     */
	bool two_hosts;     /* drivers may start on either of two machines */
	bool calm;          /* nothing goes wrong */
	bool neighbour;     /* another run of the same spec goes on beside the first one */
	int64_t steps;      /* of the training */
	int64_t step_ns, compile_ns; /* of a step, of a graph, about */
	int64_t saves_every;
	/* limits of the spec; 0: what it is without them */
	int64_t stall_s, deadline_s, start_s, queue_s, unreachable_s, compile_timeout_s;
	int on_exceed; /* of the budget for graphs compiled in training: of setting.c; 0: none */
	bool trains_on_incomplete;
	int64_t backoff_first_s, backoff_max_s;
	int64_t grace_s, checkpoint_grace_s;
	int64_t retry_attempts, retry_without_progress; /* 0: as it is by itself */
	bool neighbour_first;                           /* it begins before the first run */
	int health;         /* the nodes are checked up: 1: devices, 2: collectives, too; 0: not */
	int64_t health_s;   /* the time of it */
	bool saves_at_home; /* the spec names no place for checkpoints: they lie with the run */
	/* The run is one turn of a retraining (setting_retrain.c); else the spec ends with the
	 * training, and the rest says nothing. */
	bool retrains;
	int repeat, shards; /* of the evaluation; of the inference: 0: as many as it likes */
	bool infers, together, fetches, advises;
	int refused; /* every so many turns the candidate is too bad; 0: never */
	int pauses;  /* after which phase the first driver pauses: of setting_retrain.c; 0: none */
	int keeps;   /* versions; 0: all */
	int64_t task_ns, task_timeout_s;
	bool evaluates_ahead, infers_ahead; /* with compile: aot */
};

/* Runs follow one another until so many events have been written. */
#define EVENTS_WANTED 60

/* The fields of a setting, in the order of a script. */
/* clang-format off */
#define SETTING_FIELDS(F)                                                                          \
	F(nodes) F(cloud) F(state) F(far_workspace) F(two_hosts) F(calm) F(neighbour) F(steps)     \
	F(step_ns) F(compile_ns) F(saves_every) F(stall_s) F(deadline_s) F(start_s) F(queue_s)     \
	F(unreachable_s) F(compile_timeout_s) F(on_exceed) F(trains_on_incomplete)                 \
	F(backoff_first_s) F(backoff_max_s) F(grace_s) F(checkpoint_grace_s) F(retry_attempts)     \
	F(retry_without_progress) F(neighbour_first) F(saves_at_home) F(health) F(health_s)        \
	F(retrains) F(repeat) F(shards) F(infers) F(together) F(fetches) F(advises) F(refused)     \
	F(pauses) F(keeps) F(task_ns) F(task_timeout_s) F(evaluates_ahead) F(infers_ahead)
/* clang-format on */

struct sb;

struct schedule {
	uint64_t seed, number;
	struct setting setting;
	bool has_setting;         /* of a script; else it is drawn */
	struct machine *hosts[2]; /* of the operators; the second may be NULL */
	char run[32];             /* that plays */
	char neighbour[32];       /* that plays beside it; no rule looks at it; "": none */
	int runs;                 /* begun so far */
	int64_t began_ns;         /* the run */
	int64_t calm_from_ns;     /* nothing goes wrong from then on */
	int64_t ended_ns;         /* the run's end is in the journal; 0: not yet */
	int drivers;              /* started so far */
	int data;                 /* objects that have arrived so far */
	int64_t bad_attempts;     /* of each phase, that may fail by themselves */
	bool cloud_restarts;      /* the service starts failed jobs again by itself */
	bool hosts_to_boot;       /* a head that has lost its power is switched on again */
	bool clock_stepped;       /* a wall clock was set */
	const char *scenario;     /* a fixed setting; NULL: drawn */
	const char *script;       /* of faults; NULL: drawn */
	bool one_run;         /* no other run follows: so a script says, and a scenario has it */
	const bool *left_out; /* which of the drawn faults do not happen; NULL: none of them */
	bool at_places;       /* points.h */
	enum mishap mishap;   /* it has happened, and nothing else goes wrong */
	const struct process *struck; /* whose call it was */
	bool trace, trace_calls;
};
extern struct schedule *playing;

/* Draws the setting, or sets that of the scenario, and makes the world. */
void setting_make(struct schedule *schedule);
#define SETTING_LINE_MAX 1024
/* Writes a setting as a line of a script; reads one (false: it is none). */
void setting_print(const struct setting *setting, char *ret, size_t size);
bool setting_parse(const char *line, struct setting *ret);
/* The value of STOKER_STATE that opens the state. */
const char *setting_state(const struct setting *setting);
/* A scenario's name as the settings have it; NULL: there is none of that name. */
const char *setting_find_scenario(const char *name);
/* All graphs of the job are in the cache, as it is, for one of the compilers. */
bool setting_cache_whole(void);
bool setting_cache_whole_for(int compiler);
/* The same of the graphs of a phase that compiles ahead: "train", "evaluate" or "infer". */
bool setting_graphs_whole(const char *phase);
/* The number of its first graph: each phase has graphs of its own. NULL: of the training. */
int setting_first_graph(const char *phase);
/* A wall clock was set since the schedule began. */
bool schedule_clock_stepped(void);
/* What a retraining adds to a setting, to its spec and to the machines (setting_retrain.c). */
void setting_draw_retraining(struct schedule *schedule);
void setting_add_retraining(const struct schedule *schedule, struct sb *spec);
void setting_add_metrics(const struct schedule *schedule, struct sb *spec);
void setting_put_holdout(struct schedule *schedule);
/* A place of that name beside the workspace, where all can see it. The caller frees it. */
char *setting_place(const struct setting *setting, const char *name);
/* New data arrives: another object where the spec has its data. */
void setting_put_data(struct schedule *schedule);
/* The candidate of the run that plays is worse than the gate allows. */
bool setting_is_refused(const struct schedule *schedule);
/* The name of the phase after which the first driver of a run pauses; NULL: it does not. */
const char *setting_pause(const struct setting *setting);
/* Starts a command of stoker on a host for a run: "run" (which is "retrain" where the setting
 * retrains), "resume" or "stop". */
struct process *operator_start(struct schedule *schedule, int host, const char *command,
			       const char *run);
/* The run plays beside the one that the rules look at; a process that drives it, or is its agent.
 */
bool schedule_is_neighbour(const char *run);
bool schedule_serves_neighbour(const struct process *process);
/* Names the next run. */
void schedule_name_run(struct schedule *schedule);
/* Plays until the run has ended and everything is over, or a rule breaks. */
void schedule_play(struct schedule *schedule);

/* A line of the timeline, if it is wanted. */
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
