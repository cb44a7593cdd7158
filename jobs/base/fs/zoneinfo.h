/*
 * The system's time zones: compiled files of tzdata, found by name where the C library, Python and
 * Go look for them. jobs/calendar/zone.h reads their bytes.
 */
#ifndef STK_BASE_FS_ZONEINFO_H
#define STK_BASE_FS_ZONEINFO_H

#include "jobs/base/err.h"
#include "jobs/base/sb.h"

/* Appends the file of a zone. `dir` is the value of TZDIR (tzset(3)); NULL or empty: the usual
 * folders. Returns 1; 0 if there is no such zone; -1 with an error (EXIT_REFUSED) if this machine
 * has no zones at all, or the file cannot be read. */
int zoneinfo_read(const char *dir, const char *name, struct sb *ret, struct err **err);
/* The same of the machine's own zone, /etc/localtime, by which its daemons go; 0: it has none, and
 * its clock shows UTC. */
int zoneinfo_read_own(struct sb *ret, struct err **err);

#endif
