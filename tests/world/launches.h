/* What the engine was really made to start: one launch for each submission that had an effect, seen
 * by the world itself (processes of the engine local, jobs of the cloud). */
#ifndef STK_TESTS_WORLD_LAUNCHES_H
#define STK_TESTS_WORLD_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/flow/event.h"

struct cloud_job;
struct process;

struct launch {
	char run[48];
	enum phase phase;
	int64_t attempt;
	int64_t at_ns;
	const struct process *agent; /* engine local: of node 0 */
	const struct cloud_job *job; /* the cloud's */
	struct launch *next;         /* older */
};
extern struct launch *launches; /* newest first */

void launches_reset(void);
/* Those of the last run are forgotten. */
void launches_next_run(void);
void launches_look(void); /* after each effect */
/* A process of that attempt that lives, on any machine: an agent, a command, what these have
 * started; NULL: none. */
const struct process *launch_process(const char *run, enum phase phase, int64_t attempt);
/* False for an agent that is gone and had started no command by then: as if it had never been, so
 * that the same attempt may be submitted again. */
bool launch_had_effect(const struct launch *launch, int64_t by_ns);
/* The engine itself would say that all of it has ended. */
bool launch_is_over(const char *run, enum phase phase, int64_t attempt);

#endif
