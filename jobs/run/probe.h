/*
 * Before a run begins: may it do in its buckets what it will have to? A right that is
 * missing is found out now, not after an hour of compiling.
 */
#ifndef STK_RUN_PROBE_H
#define STK_RUN_PROBE_H

#include "jobs/base/json.h"
#include "jobs/run/journal.h"

/* List, write, read and delete beneath every prefix that the plan and the journal name
 * and that is no directory, each once: four requests. The object is gone afterwards.
 * EXIT_REFUSED names what cannot be done, where, and the right that it takes. */
int probe_places(const json_t *plan, const struct journal *journal, struct err **err);

#endif
