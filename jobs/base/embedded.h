/*
 * A text file that travels inside the binary. cmake/embed.cmake writes the arrays of
 * them when stoker is built; each is declared where it belongs.
 */
#ifndef STK_BASE_EMBEDDED_H
#define STK_BASE_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
	const char *name;    /* of the file, without its extension */
	const char *summary; /* its first comment line without "# " */
	const char *text;    /* NUL-terminated as well */
	size_t len;
};

#endif
