/*
 * Damaged state: how it is reported, and what else shows that something is missing. Damage is what
 * a read proves. Its errors are EXIT_REFUSED with `damage` set; they name the file, the run (if the
 * file belongs to one) and a remedy. Other runs are not affected.
 */
#ifndef STK_RUN_JOURNAL_DAMAGE_H
#define STK_RUN_JOURNAL_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/sb.h"

/* Turns the error in `err`, which says what is wrong ("it is empty"; NULL counts as "it cannot be
 * read"), into the error of event `seq` of the run in `file`. Returns -1. */
int damage_of_event(struct err **err, const char *file, const char *run, int64_t seq);

/* Sets the error for a file of all runs: `what` is the end of a sentence. Returns -1. */
int damage_of_file(struct err **err, const char *file, const char *what);

/* True if `key` beneath `root` should be a regular file and is something else, or one of its
 * folders is not a folder: "'/root/a' is a pipe" is appended to `ret` and its path to `ret_path`
 * (NULL: not wanted). False if it is as it should be, or absent. Never blocks on the file. */
bool damage_obstacle(const char *root, const char *key, struct sb *ret, struct sb *ret_path);

/* Refuses what damage_obstacle() finds. Returns 0 if there is no obstacle, else -1. `of` is what
 * should be there ("the lease of run one"). */
int damage_refuse_obstacle(const char *root, const char *key, const char *of, struct err **err);

/* Adds the cure: restore `what` ("the file") from a copy, salvage the run, or forget it. Returns
 * -1. */
int damage_hint(struct err **err, const char *what, const char *run);

/* The name, in the folder of a run, of what was set aside of it. */
#define DAMAGE_ASIDE "damaged/"
/* Returns the name of an event that was set aside, in the folder of its run: "damaged/<seq>-<begin
 * of its SHA-256>.json"; the caller frees it. The same bytes always have the same name. */
char *damage_aside_name(int64_t seq, const void *bytes, size_t len);

/* Calls `fn` for each run with a file `trace` in its folder beneath `dir`/runs; NULL: with a
 * folder. */
typedef void (*damage_run_fn)(void *arg, const char *run);
void damage_each_run(const char *dir, const char *trace, damage_run_fn fn, void *arg);

/* Counts those runs, for a journal that does not know them. Returns the number; the names of the
 * first few are appended to `ret`. */
size_t damage_lost_runs(const char *dir, const char *trace, struct sb *ret);

#endif
