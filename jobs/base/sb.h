/*
 * A growing string with a maximum from birth.
 *
 * `text` is always NUL-terminated (never NULL, even when empty) and may hold
 * NUL bytes before `len`. Bytes beyond the maximum are dropped and `truncated` is set, so a flood
 * of outside text cannot exhaust memory.
 *
 * A builder that begins as SB_INIT_SECRET wipes all memory that it frees, also when it moves to a
 * larger block. (sb_addf() leaves traces on the stack: do not use it for secrets.)
 */
#ifndef STK_BASE_SB_H
#define STK_BASE_SB_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/auto.h"

#define SB_MAX_DEFAULT ((size_t)64 << 20)

struct sb {
	char *text; /* points at a shared empty string while cap is 0 */
	size_t len, cap, max;
	bool truncated, secret;
};

extern char sb_empty[1];
#define SB_INIT            ((struct sb){ sb_empty, 0, 0, SB_MAX_DEFAULT, false, false })
#define SB_INIT_MAX(bytes) ((struct sb){ sb_empty, 0, 0, (bytes), false, false })
#define SB_INIT_SECRET     ((struct sb){ sb_empty, 0, 0, SB_MAX_DEFAULT, false, true })

void sb_add(struct sb *sb, const void *bytes, size_t len);
void sb_adds(struct sb *sb, const char *text);
void sb_addc(struct sb *sb, char c);
void sb_addf(struct sb *sb, const char *fmt, ...) STK_PRINTF(2, 3);
void sb_addv(struct sb *sb, const char *fmt, va_list args) STK_PRINTF(2, 0);
void sb_drop(struct sb *sb, size_t len); /* forget the first `len` bytes */
void sb_clear(struct sb *sb);            /* empty, memory kept */
void sb_release(struct sb *sb);          /* empty, memory freed; for AUTO() */

/* The text; the caller frees it (and wipes it if it is secret). The builder is empty afterwards. */
char *sb_take(struct sb *sb);

#endif
