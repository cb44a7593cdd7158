/*
 * Memory that holds keys, tokens and passwords: wiped before it is freed, so that no
 * later core dump or use of the same page shows them.
 */
#ifndef STK_AWS_CREDENTIALS_SECRET_H
#define STK_AWS_CREDENTIALS_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* For AUTO(): wipes up to the NUL and frees; NULL is fine. */
void secret_freep(char **text);
/* Like secret_freep(), for a NULL-terminated array of texts. */
void secret_strv_freep(char ***texts);
/* Wipes every string in the value, even if it is referenced elsewhere, then releases it. */
void secret_json_freep(json_t **value);

/* Reads the whole of a regular file of at most `max` bytes and adds a NUL; the content is never
 * copied on the way. The caller wipes and frees it. A file that holds a NUL byte is an error.
 * Returns 0 with `ret` NULL if there is no regular file of that name. */
int secret_read(const char *path, size_t max, char **ret, struct err **err);

#endif
