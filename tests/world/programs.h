/*
 * The programs of the world that are not stoker's: the training, its compiler, the Python that a
 * plan looks for. They use the world by the same calls as the code under test, so they block, fill
 * disks and are killed like it.
 *
 * A training compiles its graphs through a cache of the kind `neuron`, computes steps, prints,
 * saves and ends, as its traits say. The traits of each command are drawn when it starts, from the
 * rates of the schedule.
 */
#ifndef STK_TESTS_WORLD_PROGRAMS_H
#define STK_TESTS_WORLD_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine;

#define GRAPHS_OF_JOB 3 /* that the training needs */

/* The versions of the compiler that there are, and where each keeps its graphs below a cache. */
#define COMPILERS 2
extern const struct compiler {
	const char *version, *place;
} compilers[COMPILERS];
/* The machine gets that version, as pip installs it. */
void programs_install_compiler(struct machine *machine, int compiler);

/* The version that a machine has, a number of compilers[]. */
int programs_compiler_of(struct machine *machine);

/* The name of a graph. */
void programs_graph_name(char ret[64], int graph, bool late);

/* What the next command does; the schedule's hand fills it in at each start. */
struct traits {
	int64_t step_ns, compile_ns; /* of a step, of a graph, about */
	int64_t steps_between_saves;
	int64_t save_ns;        /* that a checkpoint takes */
	int64_t load_ns;        /* before the first step */
	int64_t shard_bytes;    /* of a checkpoint, for each node */
	int64_t fails_at;       /* step after which it fails, 0: before the first; -1: never */
	int exit;               /* its exit status then */
	const char *last_words; /* printed to stderr before it fails; NULL: nothing */
	int64_t hangs_at;       /* step after which nothing happens any more; -1: never */
	bool dies_compiling;    /* in the middle of a graph, of which the lock is left */
	int64_t late_graph_at; /* step at which a graph is compiled that is in no cache; -1: none */
	int64_t says_first;    /* bytes, before its first step */
	int64_t line_bytes;    /* printed with each step beside the report of the step */
	bool bar;              /* that is a bar drawn with carriage returns */
	bool saves_in_place;   /* not atomically: the last file decides */
	bool extracts;        /* it has its graphs extracted, as in phase 1, and computes nothing */
	bool leaves_child;    /* ends while a process that it has started lives on */
	bool saves_on_signal; /* it handles the signal that asks for a checkpoint */
	bool ignores_stop;    /* SIGTERM does nothing */
	bool saves_on_stop;   /* SIGTERM: saves, then ends */
	bool ignores_checkpoint; /* begins at step 0, whatever it is given */
	int64_t task_ns;         /* of a task, about */
	bool leaves_metrics;     /* in a file; else its log has them */
};

/* Draws the traits of a command that starts. Set by the schedule; never NULL while it plays. */
extern void (*programs_traits)(struct traits *ret, bool precompiles, int64_t attempt, int node);

/* What the next tool of a check-up does: neuron-ls, nccom-test, torchrun, a tensor operation. */
struct tool_traits {
	int64_t takes_ns;
	bool hangs;       /* it prints nothing and does not end */
	bool finds_fault; /* with the machine: too few devices, a wrong result */
	int exit;         /* its exit status, without a word where it is not 0 */
};
extern void (*programs_tool)(struct tool_traits *ret);

/* All of what a command saved lies in a folder of that machine. */
struct truth_save;
bool program_save_is_whole(const struct truth_save *save, struct machine *machine,
			   const char *folder);

/* Registers all programs with the kernel. */
void programs_register(void);
/* A task of an evaluation or an inference, of programs_tasks.c; its exit status. */
int programs_task_main(void);
/* The step that the meta.json of a folder names; -1 if it cannot be read. */
int64_t programs_step_of(const char *folder);
/* Writes a file of a folder; false if the disk did not take it. */
bool program_write_file(const char *folder, const char *name, const char *text, size_t len);
/* The tools of a check-up, of programs_health.c; what Python makes of health_tensor.py. */
void programs_register_tools(void);
int programs_tensor_main(int argc, char **argv);

/* For programs: waits, unless a signal comes; writes, waiting for a slow reader. */
void program_rest(int64_t ns);
void program_say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
