/*
 * The completion scripts of shells. The files live in cmd/completion/ and are
 * embedded when stoker is built: a generated file defines this array.
 */
#ifndef STK_CMD_SCRIPT_H
#define STK_CMD_SCRIPT_H

#include <stddef.h>

struct script_file {
	const char *name;    /* of the shell */
	const char *summary; /* its first comment line without "# " */
	const char *text;    /* NUL-terminated as well */
	size_t len;
};

extern const struct script_file script_files[];
extern const size_t script_file_count;

#endif
