/*
 * The starter specs of `stoker init`. The text files live in templates/ and
 * are embedded when stoker is built: a generated file defines this
 * array, in order of file name.
 */
#ifndef STK_SPEC_TEMPLATE_H
#define STK_SPEC_TEMPLATE_H

#include <stddef.h>

struct template_file {
	const char *name;    /* "quickstart": the file name without .yaml */
	const char *summary; /* its first comment line without "# " */
	const char *text;    /* NUL-terminated as well */
	size_t len;
};

extern const struct template_file template_files[];
extern const size_t template_file_count;

#endif
