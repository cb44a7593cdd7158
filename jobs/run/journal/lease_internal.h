/*
 * Shared by the two kinds of lease: lease.c (the interface, the lock on a local disk) and
 * lease_object.c (the object), and lease_holder.c below them. Included by these alone.
 */
#ifndef STK_RUN_JOURNAL_LEASE_INTERNAL_H
#define STK_RUN_JOURNAL_LEASE_INTERNAL_H

#include "jobs/base/clock.h"
#include "jobs/base/process/proc.h"
#include "jobs/run/journal/lease.h"
#include "jobs/store/store.h"

/* The file's name in the folder of the run. */
#define LEASE_LOCK   "driver.lock"
#define LEASE_OBJECT "lease.json"

struct lease {
	char run[JOURNAL_RUN_MAX];
	char *holder;           /* for messages; as of the last try */
	struct proc_id process; /* holder, if a process of this machine; else pid 0 */
	bool held;
	/* lock: the folder stays while the descriptor is open */
	int fd;
	char *path;
	/* object */
	struct store *store; /* store of the journal; NULL: a lock */
	struct lease_rules rules;
	char *key;
	char nonce[33];
	char tag[STORE_TAG]; /* tag of the object as last read */
	int64_t epoch, renewed;
	struct mono since; /* start of the newest write that succeeded */
	struct mono next;  /* time of the next renewal */
	char *seen;        /* the foreign object under watch, and since when */
	struct mono seen_at;
	int refusals; /* consecutive refusals of a right condition; since when */
	struct mono refused_at;
};

int lease_object_try(struct lease *lease, int64_t *ret_wait_ms, struct err **err);
int lease_object_check(struct lease *lease, struct err **err);
int lease_object_keep(struct lease *lease, struct err **err);
void lease_object_release(struct lease *lease);
bool lease_object_signal(const struct lease *lease, int signo);

/* Sets the error for refused right conditions (EXIT_UNREACHABLE). Returns -1. */
int lease_refused(const struct lease *lease, struct err **err);

/* lease_holder.c: refuses anything but a regular file in place of the lease, without blocking on
 * it; or removes it, as no process can hold it. Returns 0 or -1. */
int lease_pass_obstacle(const struct lease *lease, const char *root, const char *key, bool removes,
			struct err **err);
/* Sets EXIT_BUSY with the holder of the last try. Returns -1. */
int lease_busy(const struct lease *lease, struct err **err);

#endif
