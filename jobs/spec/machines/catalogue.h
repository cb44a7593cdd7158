/*
 * The files of configs/catalogue, as they are embedded in the binary, and our rows in them.
 *
 * The rows of instances.yaml are found by the layout of its lines and parsed one at a time, when a
 * type is asked for: the whole file as YAML would take longer than all the rest of a command that
 * reads a spec. The layout, which configs/catalogue/refresh writes:
 *
 *   groups:
 *     GROUP:
 *       all: {…}             what holds for the rows of the group, on one or more lines
 *       instances:
 *         TYPE: {…}          on one or more lines
 *
 * with each step two blanks, and lines that go on indented further than the one that began. Lines
 * that begin with '#' are passed over where a row, `all` or a group might begin.
 */
#ifndef STK_SPEC_MACHINES_CATALOGUE_H
#define STK_SPEC_MACHINES_CATALOGUE_H

#include <stdbool.h>

#include "jobs/base/embedded.h"

extern const struct embedded_file catalogue_files[];
extern const size_t catalogue_file_count;

/* Returns the file of that name without its extension, which there must be. */
const struct embedded_file *catalogue_file(const char *name);

struct catalogue_text {
	const char *text; /* not NUL-terminated */
	size_t len;
};

/* A row of instances.yaml: begins as { 0 }. */
struct catalogue_row {
	struct catalogue_text type;
	struct catalogue_text all, own; /* mappings of YAML: of the group, and over it of the row */
	size_t at;                      /* bytes of the file that are read */
};

/* Goes on to the next row, in the order of the file. Returns false at the end. */
bool catalogue_next(struct catalogue_row *row);
/* Finds the row of a type. Returns false if there is none. */
bool catalogue_seek(const char *type, struct catalogue_row *ret);

/* True if SageMaker trains on machines of this name, "ml.TYPE", by its service model. */
bool catalogue_trains_on(const char *name);
/* Returns the nearest name that SageMaker trains on: of the same family if it has any, else one
 * that differs by a slip. The caller frees it; NULL if none is near. */
char *catalogue_nearest_name(const char *name);
/* Returns the version of that service model, as "botocore 1.44.8". The caller frees it. */
char *catalogue_names_version(void);

#endif
