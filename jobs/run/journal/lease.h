/*
 * The lease on a run: it has one driver at a time. One interface, two kinds, chosen by where the
 * journal lies.
 *
 * On a local disk a lock on `<state>/runs/<run>/driver.lock`. The kernel drops it with its holder,
 * so a dead driver is replaced at once and a stopped one keeps the run.
 *
 * On an object store the object `runs/<run>/lease.json`, changed only by compare-and-swap. Its
 * holder rewrites it every `renew_ms`. Another process takes it when its holder gave it up, when
 * the holder is a process of this machine that is dead, or when the object stayed unchanged for
 * `valid_ms` on the clock of the taker: clocks of different machines are never compared. The holder
 * counts its own time from before each write and stops earlier than any other process may take
 * over.
 *
 * An object that no driver can have written (it does not parse, or has no holder) is an error with
 * a remedy, EXIT_REFUSED: it shows neither that the run is driven nor that it is not. A live holder
 * rewrites it. A server that shows the same object each time and refuses each write that names it
 * (412 to a right If-Match) is waited for as long as limits.unreachable allows.
 *
 * A lease says which process should act; what makes a late holder harmless is the journal, where
 * its next append meets that of its successor.
 */
#ifndef STK_RUN_JOURNAL_LEASE_H
#define STK_RUN_JOURNAL_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/run/journal/journal.h"

struct lease_rules {
	int64_t valid_ms; /* time without a renewal after which it may be taken */
	int64_t renew_ms; /* interval of renewals */
	bool over_damage; /* a damaged lease is watched like any other, and taken */
};
#define LEASE_RULES ((struct lease_rules){ .valid_ms = 60000, .renew_ms = 20000 })

struct lease;

/* Tries once, without waiting. Returns 1 if the lease is taken; 0 if the holder may be dead: call
 * again with the same `*lease` in `*ret_wait_ms`; -1 if it is held (EXIT_BUSY names host and pid),
 * damaged or unreachable. `*lease` is NULL before the first try; the caller frees it in every case.
 * `rules` NULL means LEASE_RULES. */
int lease_try(struct journal *journal, const char *run, const struct lease_rules *rules,
	      struct lease **lease, int64_t *ret_wait_ms, struct err **err);

/* "pid 17 on host", the holder at the last try; borrowed. */
const char *lease_holder(const struct lease *lease);

/* Looks without taking it. Returns 1 if the run has no driver, 0 if it has one or that is not
 * certain yet: call again later with the same `*lease`, which the caller frees. Changes nothing and
 * creates nothing. */
int lease_check(struct journal *journal, const char *run, const struct lease_rules *rules,
		struct lease **lease, struct err **err);

/* Sends the signal to the holder that a look found, if it is without doubt a process of this
 * machine. Returns true if the signal was sent. */
bool lease_signal(const struct lease *lease, int signo);

/* Tries until the lease is taken (0), or it is held by a live process or can be neither read nor
 * won (-1, EXIT_UNREACHABLE). `*lease` is NULL before the first call; the caller frees it in every
 * case, and passes it again where it tries again: a write whose answer was lost is known by it as
 * our own, and need not be waited for. `on_wait` (may be NULL) is called at the beginning of each
 * kind of wait with its cause (`trouble`; NULL: the holder, which may be dead) and its longest
 * duration, 0 if unlimited. */
typedef void (*lease_wait_fn)(void *arg, const char *holder, const struct err *trouble,
			      int64_t at_most_ms);
int lease_take(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct lease **lease, struct err **err);

/* True if it was taken, and no other process is known to have taken it since. Its time may be over:
 * see lease_is_mine(). False for NULL. */
bool lease_is_held(const struct lease *lease);

/* Call it before every effect. Returns 0 if the lease is held (renewed, if that was due; else only
 * a clock was read), or -1 if it is not, or that cannot be proved now: EXIT_BUSY: another process
 * has it, stand down; EXIT_UNREACHABLE: its store could not be written in time, no effect until a
 * later call returns 0, which it does if no other process took it meanwhile. */
int lease_keep(struct lease *lease, struct err **err);

/* True if the holder may still act, by the clock alone. */
bool lease_is_mine(const struct lease *lease);

/* Milliseconds until lease_keep has to be called again; -1 if no renewal is needed. */
int64_t lease_due(const struct lease *lease);

/* Returns the id of a run in the state directory whose lock is held, NULL if there is none; the
 * caller frees it. */
char *lease_find_lock(const char *state_dir);

/* Removes the lease itself, as the last trace of a forgotten run. */
int lease_remove(struct lease *lease, struct err **err);

/* Gives the lease up at once, so that a successor need not wait, and frees it. */
void lease_freep(struct lease **lease);

#endif
