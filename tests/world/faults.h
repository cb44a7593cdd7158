/*
 * What goes wrong in a schedule. Each schedule switches on its own few families, at its own rates:
 * all at once would hide what one of them breaks. Every fault is drawn before the play begins, as a
 * line of a script with its time; so a schedule is a list of faults, and dropping one of them
 * leaves the others as they were. The last third of a schedule is free of faults.
 */
#ifndef STK_TESTS_WORLD_FAULTS_H
#define STK_TESTS_WORLD_FAULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/world/call.h"
#include "tests/world/truth.h"

struct process;

/* Kinds of processes that a fault may aim at. */
enum target {
	TARGET_ANY,
	TARGET_DRIVER,
	TARGET_AGENT,
	TARGET_HELPER,
	TARGET_COMMAND,
	TARGET_COUNT
};

enum fault_kind {
	FAULT_CALL,    /* a call fails: once, three times in a row, for a minute, until calm */
	FAULT_SLOW,    /* a call takes seconds or minutes */
	FAULT_SHORT,   /* reads and writes are short */
	FAULT_HANG,    /* a folder does not answer for a while: hangs.h */
	FAULT_SERVICE, /* the service that runs the jobs does not answer one kind of request, or any
			*/
	FAULT_PLACE,   /* a place refuses whatever is asked of it, or only what changes it */
	FAULT_IN_CALLS = FAULT_PLACE, /* up to here */
	FAULT_KILL,         /* SIGKILL of one process; of mode calm: again after each span */
	FAULT_PAUSE,        /* SIGSTOP, later SIGCONT */
	FAULT_SUSPEND,      /* a machine sleeps for a while */
	FAULT_REBOOT,       /* a machine stops without loss of what it wrote, and starts again */
	FAULT_POWER,        /* the same, and what was not synced may be lost */
	FAULT_CLOCK,        /* a wall clock is set */
	FAULT_OUTAGE,       /* the service does not answer anybody; of mode once: one machine */
	FAULT_DISK_FULL,    /* no space on a disk for a while */
	FAULT_TAKE_MACHINE, /* the cloud takes a machine of a job away */
	FAULT_TAKE_DOWN,    /* somebody ends the job at the service */
	FAULT_STOP,         /* a user stops the run */
	FAULT_SIGNAL,       /* a driver gets SIGTERM or SIGINT */
	FAULT_SUPERSEDE,    /* another attempt takes the claim of the one that runs */
	FAULT_RIVAL,        /* another driver is started though one is there */
	FAULT_BUSY,         /* another program writes to the database, and does not end */
	FAULT_LOSS,         /* somebody removes a file of the cache or of a checkpoint */
	FAULT_KINDS
};
extern const char *const fault_names[FAULT_KINDS];

enum fault_mode { MODE_ONCE, MODE_THRICE, MODE_MINUTE, MODE_CALM, MODE_COUNT };
extern const char *const fault_mode_names[MODE_COUNT];

struct fault {
	enum fault_kind kind;
	int64_t at_event;  /* it waits for so many events of the schedule's runs; 0: for none */
	const char *after; /* of that name (event_rows[]); NULL: of any */
	int64_t at_ns;     /* since the schedule began, or that event was written */
	enum target target;
	enum call_id call;
	int error;
	bool done; /* the call is carried out all the same */
	enum fault_mode mode;
	int64_t span_ns; /* how long it lasts, how far a clock is set, how slow a call is */
	uint64_t chance; /* which of several processes or machines */
	int place;       /* of FAULT_PLACE */
	/* while it plays */
	int64_t from_ns, until_ns;
	int left;
	uint64_t struck; /* so often */
};

#define FAULTS_MAX 64
extern struct fault faults[FAULTS_MAX];
extern int fault_count;

/* Places that a fault may be about: parts of the paths, or of the keys, that lie there. */
#define PLACES       10
#define PLACES_DRAWN 7 /* whatever the spec asks for; the others are of a retraining */
extern const char *const place_names[PLACES];
/* The fault refuses that call about that path (NULL: it has none); with which of its errors. */
bool place_is_refused(const struct fault *fault, enum call_id id, const char *path);
int place_error(const struct fault *fault, enum call_id id);
/* What is refused of it, by the fault's chance. */
enum place_refuses {
	PLACE_REFUSES_CHANGES,
	PLACE_REFUSES_LOOKS,
	PLACE_REFUSES_ALL,
	PLACE_REFUSES_COUNT /* whatever it is */
};
/* Draws which place, and how it refuses; of the place of that name. */
void place_draw(struct fault *fault);
void place_draw_of(struct fault *fault, const char *name, enum place_refuses refuses);
/* One of those that only a retraining has. */
void place_draw_of_stages(struct fault *fault);

/* The claim of a phase as it lies in the workspace of the run that plays; NULL: none. */
json_t *claim_in_workspace(enum truth_phase phase);
/* Another has it, if a command of the run is under way. */
void claim_taken_by_another(uint64_t chance);

/* The call asks the service that runs the jobs. */
bool fault_asks_engine(enum call_id id);

/* Draws the faults of the schedule that plays. */
void faults_draw(void);
void faults_draw_together(void);
/* One more, of that kind and a chance of its own; there must be room for it. */
struct fault *fault_add(enum fault_kind kind);
/* Hangs them, or those of a script, into the world. */
void faults_begin(void);
struct story;
/* Tells that so many events have been written, the newest of them in that story: faults that wait
 * for one of them begin. */
void faults_on_events(int64_t events, const struct story *newest);
/* True while a disk is kept full. */
bool faults_fill_disk(void);
/* True from the last fault on. */
bool faults_are_over(void);
/* What the process is for the faults. */
enum target fault_target_of(const struct process *process);
/* Writes a fault as one line of a script; reads one (false: not a fault). */
void fault_print(const struct fault *fault, char *ret, size_t size);
bool fault_parse(const char *line, struct fault *ret);

#endif
