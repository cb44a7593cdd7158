/*
 * Tries whether a server keeps the conditions of writes. Leases, events, claims, manifests and
 * marks all rest on them, and some servers that speak S3 ignore them (status 200, and the object is
 * overwritten) or garble them (radosgw of Debian 12 and 13 answers 412 to a right If-Match). So
 * they are tried before they are trusted: with an object of its own name, so that simultaneous
 * trials do not meet.
 *
 * Sources: guide of Amazon S3, "Conditional writes"; API Reference, PutObject.
 */
#ifndef STK_RUN_PLAN_CONDITIONS_H
#define STK_RUN_PLAN_CONDITIONS_H

#include "jobs/store/store.h"

/* Name of trial objects, in the root of a store's prefix, followed by 16 hex digits. */
#define PREFLIGHT_KEY "stoker-probe-"

/* Tries If-None-Match and If-Match, each where it holds and where it does not, and reads the object
 * afterwards: eight requests. The object is then deleted, if possible. Returns 0, or -1 with:
 *   EXIT_REFUSED      the server cannot be trusted: the error names it, with the bucket, the
 *                     condition and the answer; or a right is missing, which it names
 *   EXIT_UNREACHABLE  no verdict: 409, 503 and lost replies to the last attempt
 * `what` is what the store is to the run ("state"). Stores on a disk need no trial. */
int conditions_try(struct store *store, const char *what, struct err **err);
/* The same with this key, beneath which nothing is yet; the object stays, if there is one. */
int conditions_try_at(struct store *store, const char *key, const char *what, struct err **err);

/* Returns "s3://bucket" of a store's URL, the unit that keeps conditions or does not. The caller
 * frees it. */
char *conditions_bucket(const char *url);

#endif
