/*
 * What holds of the log reader of every compiler kind and of the book that is filled
 * by it, whatever the log says.
 */
#ifndef STK_TESTS_FUZZ_LOG_H
#define STK_TESTS_FUZZ_LOG_H

#include "jobs/cache/kinds/compile_kind.h"

/* `text` is the log of node 0 up to FUZZ_PART, then that of node 1, …; FUZZ_CUT cuts
 * a log into the pieces in which it is read. `is_key` knows the names that the kind's
 * graphs may have. */
void log_check(const struct compile_kind *kind, bool (*is_key)(const char *text, size_t len),
	       const char *text, size_t len);

#endif
