/*
 * Memory that holds keys, tokens and passwords: wiped before it is freed, so that no
 * later core dump or use of the same page shows them.
 */
#ifndef STK_AWS_SECRET_H
#define STK_AWS_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"

/* For AUTO(): wipe up to the NUL, free; NULL is fine. */
void secret_freep(char **text);
/* The same for a NULL-terminated array of them. */
void secret_strv_freep(char ***texts);
/* Wipe every string in it, whoever else holds it, then release it. */
void secret_json_freep(json_t **value);

/* The whole of a regular file of at most `max` bytes, with a NUL behind; wipe it. It is
 * never copied on the way. A file that holds a NUL byte is an error. 0 with `ret` NULL:
 * there is no regular file of that name. */
int secret_read(const char *path, size_t max, char **ret, struct err **err);

#endif
