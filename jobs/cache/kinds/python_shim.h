/*
 * Asks a version manager's shim (pyenv, asdf) which Python it stands for. The answer depends on
 * variables, files in the working directory and its parents, and the manager's own rules, so only
 * the shim itself knows it.
 */
#ifndef STK_CACHE_KINDS_PYTHON_SHIM_H
#define STK_CACHE_KINDS_PYTHON_SHIM_H

#include "jobs/cache/kinds/python.h"

#define PYTHON_SHIM_MS 10000

/* Fills version and folders. A shim that fails, hangs or prints an invalid answer leaves them NULL,
 * which is not an error: the job will meet the same problem. */
int python_ask_shim(const char *shim, const struct program_place *place, struct python *ret);

#endif
