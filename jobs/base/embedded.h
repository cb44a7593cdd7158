/*
 * A text file embedded in the binary. cmake/embed.cmake writes the arrays of such files when stoker
 * is built; each array is declared by the module that uses it.
 */
#ifndef STK_BASE_EMBEDDED_H
#define STK_BASE_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
	const char *name;    /* file name without its extension */
	const char *summary; /* first comment line of the file, without "# " */
	const char *text;    /* NUL-terminated as well */
	size_t len;
};

#endif
