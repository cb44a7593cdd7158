/*
 * Reads progress in the command's output as it passes: steps by the order's metric, the compiler's
 * messages, any output at all. All of it is passed to stall.h; the steps also to step_rate.h.
 *
 * Lines end at a newline or a carriage return, so steps are found in progress
 * bars too. Memory is bounded: only the first OUTPUT_SCAN_LINE bytes of a line are read.
 */
#ifndef STK_CACHE_KINDS_OUTPUT_SCAN_H
#define STK_CACHE_KINDS_OUTPUT_SCAN_H

#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/base/stall.h"
#include "jobs/base/step_rate.h"
#include "jobs/base/text/js.h"

#define OUTPUT_SCAN_LINE ((size_t)16 << 10)

struct regex;
struct compile_kind;

struct output_scan {
	struct stall *stall;           /* borrowed */
	struct step_rate_meter *meter; /* borrowed; NULL: arrival times of steps are not wanted */
	struct regex *step;            /* owned; NULL: no metric reports steps */
	const struct compile_kind *kind;
	struct sb line;
	bool returned; /* the last byte was a carriage return */

	bool stepped;
	int64_t first_step, last_step; /* last: the largest */
	uint64_t bytes, compiles;      /* bytes: of output; compiles: messages of the compiler */
};

/* `metrics` are those of the order, `kind` is its compile kind; NULL if absent. A pattern that does
 * not compile is an error (EXIT_SPEC). */
int output_scan_init(struct output_scan *listen, const json_t *metrics, const char *kind,
		     struct err **err);
void output_scan_release(struct output_scan *listen); /* for AUTO(); { 0 } is fine */

void output_scan_pass(struct output_scan *listen, struct mono now, const char *bytes, size_t len);

#endif
