/*
 * Who drives a run: one process at a time. One interface, two kinds, chosen by
 * where the journal lies.
 *
 * On a local disk a lock on `<state>/runs/<run>/driver.lock`. The kernel drops
 * it with its holder, so a dead driver is replaced at once and a stopped one
 * keeps the run.
 *
 * On an object store the object `runs/<run>/lease.json`, changed only by
 * compare-and-swap. Its holder writes it anew every `renew_ms`. Another process
 * takes it when its holder gave it up, when it is a process of this machine
 * that is dead, or when the object stayed unchanged for `valid_ms` on the clock
 * of the one who wants it: clocks of different machines are never compared. The
 * holder counts its own time from before each write and stops earlier than
 * anybody may take over.
 *
 * A lease says who should act; what makes a late holder harmless is the journal,
 * where its next append meets that of its successor.
 */
#ifndef STK_RUN_LEASE_H
#define STK_RUN_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/run/journal.h"

struct lease_rules {
	int64_t valid_ms; /* this long without a renewal, and it may be taken */
	int64_t renew_ms; /* how often it is renewed */
};
#define LEASE_RULES ((struct lease_rules){ .valid_ms = 60000, .renew_ms = 20000 })

struct lease;

/* One try, without waiting: 1 it is ours; 0 its holder may be dead: call again
 * with the same `*lease` in `*ret_wait_ms`; -1 it is held (EXIT_BUSY names host
 * and pid) or cannot be reached. `*lease` is NULL before the first try and is
 * the caller's to free in every case. `rules` NULL means LEASE_RULES. */
int lease_try(struct journal *journal, const char *run, const struct lease_rules *rules,
	      struct lease **lease, int64_t *ret_wait_ms, struct err **err);

/* "pid 17 on host", who held it at the last try; borrowed. */
const char *lease_holder(const struct lease *lease);

/* Without taking it: 1 nobody drives the run, 0 somebody does, or that is not
 * certain yet: call again later with the same `*lease`, which is the caller's to
 * free. Changes nothing and creates nothing. */
int lease_look(struct journal *journal, const char *run, const struct lease_rules *rules,
	       struct lease **lease, struct err **err);

/* Try until it is ours (0) or held by someone alive (-1). Before each wait `on_wait`
 * (may be NULL) is told who is waited for and how long it can take at most. */
typedef void (*lease_wait_fn)(void *arg, const char *holder, int64_t at_most_ms);
int lease_take(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct lease **ret, struct err **err);

/* Call it before every effect. 0: it is ours (renewed, if that was due; else
 * nothing was done but to read a clock). -1: it is not, or that cannot be proved
 * now: EXIT_BUSY another has it: stand down; EXIT_UNREACHABLE its store could not be
 * written in time: no effect until a later call says 0, which it does if nobody took it
 * meanwhile. */
int lease_keep(struct lease *lease, struct err **err);

/* By the clock alone: may its holder still act? */
bool lease_is_mine(const struct lease *lease);

/* Milliseconds until lease_keep has to be called again; -1: it needs no renewal. */
int64_t lease_due(const struct lease *lease);

/* The run is gone: take away what the lease itself consists of, as its last trace. */
int lease_remove(struct lease *lease, struct err **err);

/* Give it up at once, so that a successor need not wait, and free it. */
void lease_freep(struct lease **lease);

#endif
