/*
 * What the two kinds of lease share: lease.c (the interface, the lock on a
 * local disk) and lease_object.c (the object). Included by these alone.
 */
#ifndef STK_RUN_LEASE_INSIDE_H
#define STK_RUN_LEASE_INSIDE_H

#include "jobs/base/clock.h"
#include "jobs/run/lease.h"
#include "jobs/store/store.h"

/* In the folder of the run. */
#define LEASE_LOCK   "driver.lock"
#define LEASE_OBJECT "lease.json"

struct lease {
	char run[JOURNAL_RUN_MAX];
	char *holder; /* for people; of the last try */
	bool held;
	/* a lock: the folder stays while the descriptor is open */
	int fd;
	char *path;
	/* an object */
	struct store *store; /* of the journal; NULL: a lock */
	struct lease_rules rules;
	char *key;
	char nonce[33];
	char tag[STORE_TAG]; /* of the object as last read */
	int64_t epoch, renewed;
	struct mono since; /* it was ours at this moment */
	struct mono next;  /* when to renew it */
	char *seen;        /* the foreign object that is watched, and since when */
	struct mono seen_at;
};

int lease_object_try(struct lease *lease, int64_t *ret_wait_ms, struct err **err);
int lease_object_look(struct lease *lease, struct err **err);
int lease_object_keep(struct lease *lease, struct err **err);
void lease_object_release(struct lease *lease);

/* EXIT_BUSY, naming the holder of the last try. */
int lease_busy(const struct lease *lease, struct err **err);

#endif
