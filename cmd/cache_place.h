/* Opening the cache that a command line names. */
#ifndef STK_CMD_CACHE_PLACE_H
#define STK_CMD_CACHE_PLACE_H

#include "jobs/store/store.h"

/* A directory must be there; a bucket is looked at by whoever lists it. */
int cache_place_open(const char *url, struct store **ret, struct err **err);

#endif
