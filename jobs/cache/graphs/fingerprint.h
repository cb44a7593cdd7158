/*
 * The package versions that a program would run with, for compile_kind.fingerprint(): common to all
 * compilers that come as Python packages.
 */
#ifndef STK_CACHE_GRAPHS_FINGERPRINT_H
#define STK_CACHE_GRAPHS_FINGERPRINT_H

#include "jobs/cache/kinds/compile_kind.h"

/* {"python":"3.11", package: version…} for those of `packages` that are installed (NULL-terminated;
 * names as in python.h, or a prefix followed by *). A program that is not known to be Python is
 * identified by its content. */
int fingerprint_python(const struct program_place *place, const char *const *packages, json_t **ret,
		       struct err **err);

/* The same, but for people: NULL in `ret` if the program is not there, or not known to be Python.
 * No file but the metadata of packages is read. */
int fingerprint_packages(const struct program_place *place, const char *const *packages,
			 json_t **ret, struct err **err);

/* True if the fingerprint holds something to compare with another: a Python version, or a program's
 * digest. False for NULL. */
bool fingerprint_tells(const json_t *fingerprint);

/* Compares two fingerprints, that of a manifest and that found by a job: the members known in both
 * that differ, and those that were added, as [{"field","old","new"}], sorted by field; empty if
 * there are none. `ret_unknown` gets a description of the members that cannot be compared, which
 * are not in the list; the caller frees it; NULL if there are none. */
json_t *fingerprint_compare(const json_t *locked, const json_t *found, char **ret_unknown);

/* "neuronx-cc 2.26 in place of 2.25 (and 2 more)", for a list that is not empty; the compiler
 * itself comes first if it is in the list. fingerprint_pair() returns a name that is unique to the
 * list. The caller frees both. */
char *fingerprint_words(const json_t *changed);
char *fingerprint_pair(const json_t *changed);

#endif
