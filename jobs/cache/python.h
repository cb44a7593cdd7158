/*
 * Which Python a program runs under, and which versions of packages it would
 * import: found by looking at files, because starting Python and importing a
 * framework takes seconds and would happen at every `plan`.
 */
#ifndef STK_CACHE_PYTHON_H
#define STK_CACHE_PYTHON_H

#include "jobs/cache/kind.h"

struct python {
	char *program;  /* what was found for the spec's program; NULL: nothing */
	char *version;  /* "3.11"; NULL: no Python, or none that can be told */
	char **folders; /* where its packages lie, in import order; NULL-terminated */
};

/* Follow the program: a script's #! line, a virtual environment's pyvenv.cfg, an
 * interpreter's own prefix, Debian's layout, a version manager's shim (the only
 * case in which something is started: that shim, with -c, for 10 s at most).
 * What cannot be told is left NULL; errors are failed reads of files that are
 * there. */
int python_find(const struct program_place *place, struct python *ret, struct err **err);
void python_clear(struct python *python); /* for AUTO() */

/* Called for every installed distribution, folder by folder, so that of two with
 * one name the first is imported. Names as in "jax-cuda12-plugin": lower case,
 * with dashes. */
typedef void (*python_package_fn)(void *arg, const char *name, const char *version);
void python_packages(const struct python *python, python_package_fn fn, void *arg);

#endif
