/*
 * Reads progress out of the command's output as it passes: steps by the order's
 * metric, the compiler's messages, anything at all. What it hears goes to the
 * judge of stalls; the steps also into the report.
 *
 * Lines end at a newline or a carriage return, so steps are found in progress
 * bars too. Memory is bounded: of a longer line only the first LISTEN_LINE bytes
 * are looked at.
 */
#ifndef STK_CACHE_LISTEN_H
#define STK_CACHE_LISTEN_H

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/sb.h"
#include "jobs/base/stall.h"

#define LISTEN_LINE ((size_t)16 << 10)

struct regex;
struct compile_kind;

struct listen {
	struct stall *stall; /* borrowed */
	struct regex *step;  /* owned; NULL: nothing tells steps */
	const struct compile_kind *kind;
	struct sb line;
	bool returned; /* the last byte was a carriage return */

	bool stepped;
	int64_t first_step, last_step; /* last: the largest */
	uint64_t bytes, compiles;      /* heard; compiles: messages of the compiler */
};

/* `metrics` and `compile` are the order's, NULL where it has none. A pattern that
 * does not compile is an error (EXIT_SPEC). */
int listen_init(struct listen *listen, const json_t *metrics, const json_t *compile,
		struct err **err);
void listen_release(struct listen *listen); /* for AUTO(); { 0 } is fine */

void listen_pass(struct listen *listen, struct mono now, const char *bytes, size_t len);

#endif
