/*
 * Finds the Python that a program runs under, and the versions of the packages that it would
 * import, by reading files: starting Python and importing a framework takes seconds and would
 * happen at every `plan`.
 */
#ifndef STK_CACHE_KINDS_PYTHON_H
#define STK_CACHE_KINDS_PYTHON_H

#include "jobs/cache/kinds/compile_kind.h"

struct python {
	char *program;  /* path of the spec's program; NULL: not found */
	char *version;  /* "3.11"; NULL: not Python, or unknown */
	char **folders; /* folders of its packages, in import order; NULL-terminated */
};

/* Follow the program: a script's #! line, a virtual environment's pyvenv.cfg, an
 * interpreter's own prefix, Debian's layout, a version manager's shim (the only case in which a
 * process is started: that shim, with -c, for 10 s at most). Unknown members are left NULL; errors
 * are failed reads of existing files. */
int python_find(const struct program_place *place, struct python *ret, struct err **err);
void python_clear(struct python *python); /* for AUTO() */

/* Called for every installed distribution, folder by folder: if two have the same name, the first
 * is the one imported. Names as in "jax-cuda12-plugin": lower case, with dashes. Returns -1 if a
 * folder cannot be read to its end now: what is installed is then not known. */
typedef void (*python_package_fn)(void *arg, const char *name, const char *version);
int python_packages(const struct python *python, python_package_fn fn, void *arg, struct err **err);

#endif
