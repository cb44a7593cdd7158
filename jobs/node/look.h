/*
 * A look around from where jobs run: what `stoker doctor --inside` has an agent try in place of the
 * command, with the rights of the jobs' role and over the jobs' network. Each place is listed,
 * written, read and deleted from, with a probe of its own; each secret is read and thrown away; STS
 * is asked whose the credentials are. Devices are counted by the check-up before
 * (jobs/node/health/health.h).
 *
 * Each finding is a line of JSON in the log, which begins with LOOK_LINE: {"check": "inside.…",
 * "on", "state": "ok" | "fail" | "unknown", "seen", "cure", "code", "request_id", "field"}, as the
 * doctor prints it (jobs/run/doctor/doctor.h); the last line is LOOK_LINE and "{}".
 */
#ifndef STK_NODE_LOOK_H
#define STK_NODE_LOOK_H

#include "jobs/node/helper.h"

/* True if the order has it. */
bool look_needed(const struct agent_config *config);
/* Starts it in place of the command: its process leads a group, and writes to `write_fd`. */
int look_start(struct helper *helper, const struct agent_config *config, int write_fd,
	       pid_t *ret_pid, struct err **err);
void look_release(struct helper *helper); /* { 0 } is fine */

#endif
