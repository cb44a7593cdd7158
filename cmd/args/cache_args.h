/* Opening the cache that a command line names. */
#ifndef STK_CMD_ARGS_CACHE_ARGS_H
#define STK_CMD_ARGS_CACHE_ARGS_H

#include "jobs/store/store.h"

/* A directory must exist; a bucket is only checked when it is listed. */
int cache_args_open(const char *url, struct store **ret, struct err **err);

#endif
