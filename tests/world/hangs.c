/* A folder that does not answer: see hangs.h. */
#include "tests/world/hangs.h"

#include <string.h>

#include "tests/world/kernel.h"
#include "tests/world/play.h"

#define EVERY   12
#define WHICH   7 /* of them: none that is calm */
#define FOLDER  "work/"
#define LEAST_S 3
#define MOST_S  150

void hangs_draw(void)
{
	struct fault *hang, *stop;

	if (playing->number % EVERY != WHICH || playing->setting.calm ||
	    playing->setting.far_workspace || fault_count + 2 > FAULTS_MAX)
		return;
	hang = fault_add(FAULT_HANG);
	hang->mode = MODE_MINUTE;
	hang->at_event = 1 + chance_below(EVENTS_WANTED / 2);
	hang->at_ns = chance_below(5 * WORLD_S);
	hang->span_ns = (LEAST_S + chance_below(MOST_S - LEAST_S)) * WORLD_S;
	if (!chance_one_in(2))
		return;
	stop = fault_add(FAULT_STOP);
	stop->at_event = hang->at_event;
	stop->at_ns = hang->at_ns + chance_below(hang->span_ns);
}

/* An agent takes its lock first, then sees to its signals. Until then a driver in another PID
 * namespace, who can only look at locks, does not see it; what comes of that is not tried here. */
static bool is_seen(const struct process *process)
{
	return strcmp(process->name, "stoker-node") != 0 || process->blocked != 0;
}

bool hangs_for(const struct process *process, enum call_id id, const char *path)
{
	return is_seen(process) && path && strstr(path, FOLDER) && call_rows[id].kind != CALL_OWN &&
	       fault_target_of(process) != TARGET_DRIVER;
}
