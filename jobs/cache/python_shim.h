/*
 * Asking a version manager's shim (pyenv, asdf) which Python it stands for. The
 * answer depends on variables, files on the way up from the working directory
 * and the manager's own rules, so only the shim itself knows it.
 */
#ifndef STK_CACHE_PYTHON_SHIM_H
#define STK_CACHE_PYTHON_SHIM_H

#include "jobs/cache/python.h"

#define PYTHON_SHIM_MS 10000

/* Fill version and folders. A shim that fails, hangs or talks nonsense leaves
 * them NULL, which is no error: the job will run into the same. */
int python_ask_shim(const char *shim, const struct program_place *place, struct python *ret);

#endif
