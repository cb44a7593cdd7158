/* Lines with which a job first went wrong: see first_cause.h. */
#include "jobs/run/attempt/first_cause.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

#define LINE_BYTES 4096 /* bytes kept of a line */
#define SLOW_STEPS 2    /* enough steps of one log, after SLOW_MS */
#define SLOW_MS    10000
#define APART_MS   1000
#define FAST_STEPS 3 /* enough steps of the same log */
/* Output of a process may lie in a buffer of its own (Python: io.DEFAULT_BUFFER_SIZE) and come out
 * at its end, behind the last words on stderr. */
#define BUFFER_BYTES 8192
#define FORGET_LINES 1000
#define FORGET_MS    3600000

struct first_cause_kept {
	char *text;
	size_t len, number;
};

struct first_cause_window {
	struct first_cause_kept before[CAUSE_BEFORE]; /* a ring of the newest lines */
	size_t passed;                                /* lines ever in the ring */
	struct first_cause_kept lines[CAUSE_LINES];
	size_t count;
	size_t behind;       /* further lines to keep */
	size_t bore;         /* number of the newest line that bears on a failure */
	struct mono bore_at; /* when it was read */
	size_t bytes;        /* log growth since then */
	int own_steps;       /* larger steps of the same log since then */
	struct mono step_at; /* when the newest of them was read */
	int steps;           /* steps of log `by`, the first to show one, counted APART_MS apart */
	struct mono by_at;
	size_t by;
	size_t seen;     /* lines so far */
	size_t survived; /* lines from the first after which the job went on */
};

struct first_cause {
	struct failure_index index;
	const struct failure_own *own;
	bool buffered;
	size_t nodes;
	struct first_cause_window windows[];
};

struct first_cause *first_cause_new(size_t nodes, bool buffered, const struct failure_own *own)
{
	struct first_cause *cause = mem_zero(1, sizeof *cause + nodes * sizeof cause->windows[0]);

	failure_index_init(&cause->index);
	cause->own = own;
	cause->buffered = buffered;
	cause->nodes = nodes;
	return cause;
}

static void kept_release(struct first_cause_kept *kept)
{
	free(kept->text);
	*kept = (struct first_cause_kept){ 0 };
}

static void window_drop(struct first_cause_window *window)
{
	for (size_t i = 0; i < window->count; i++)
		kept_release(&window->lines[i]);
	window->count = window->behind = 0;
	window->steps = window->own_steps = 0;
}

void first_cause_freep(struct first_cause **cause)
{
	if (!*cause)
		return;
	for (size_t n = 0; n < (*cause)->nodes; n++) {
		window_drop(&(*cause)->windows[n]);
		for (size_t i = 0; i < CAUSE_BEFORE; i++)
			kept_release(&(*cause)->windows[n].before[i]);
	}
	free(*cause);
	*cause = NULL;
}

static struct first_cause_kept kept_make(const char *line, size_t len, size_t number)
{
	len = len < LINE_BYTES ? len : LINE_BYTES;
	return (struct first_cause_kept){ mem_copy_n(line, len), len, number };
}

static void window_keep(struct first_cause_window *window, struct first_cause_kept kept)
{
	if (window->count < CAUSE_LINES)
		window->lines[window->count++] = kept;
	else
		kept_release(&kept);
}

/* Moves the lines of the ring into the window. */
static void window_keep_before(struct first_cause_window *window)
{
	size_t count = window->passed < CAUSE_BEFORE ? window->passed : CAUSE_BEFORE;

	for (size_t i = window->passed - count; i < window->passed; i++) {
		window_keep(window, window->before[i % CAUSE_BEFORE]);
		window->before[i % CAUSE_BEFORE] = (struct first_cause_kept){ 0 };
	}
	window->passed = 0;
}

static void window_pass(struct first_cause_window *window, struct first_cause_kept kept)
{
	struct first_cause_kept *place = &window->before[window->passed++ % CAUSE_BEFORE];

	kept_release(place);
	*place = kept;
}

static bool is_stale(const struct first_cause_window *window, size_t number, struct mono now)
{
	return window->count > 0 &&
	       (number - window->bore > FORGET_LINES || now.ms - window->bore_at.ms > FORGET_MS);
}

void first_cause_line(struct first_cause *cause, size_t node, const char *line, size_t len,
		      size_t number, struct mono now)
{
	struct first_cause_window *window = &cause->windows[node];
	struct first_cause_kept kept = kept_make(line, len, number);
	bool bears = failure_bears(&cause->index, cause->own, (struct failure_line){ line, len });

	window->seen = number + 1;
	if (is_stale(window, number, now))
		window_drop(window);
	if (bears) {
		window_keep_before(window);
		window->behind = CAUSE_BEHIND + 1;
		window->bore = number;
		window->bore_at = now;
		window->bytes = 0;
		window->steps = window->own_steps = 0;
	}
	window->bytes += len + 1;
	if (window->behind > 0) {
		window->behind--;
		window_keep(window, kept);
	} else {
		window_pass(window, kept);
	}
}

/* True if this step was made after the line. Out of a buffer, steps that are read at once count as
 * one, unless they span more than the buffer. */
static bool is_later(const struct first_cause *cause, const struct first_cause_window *window,
		     struct mono now)
{
	return !cause->buffered || window->own_steps == 0 || now.ms != window->step_at.ms ||
	       window->bytes > BUFFER_BYTES;
}

void first_cause_step(struct first_cause *cause, size_t node, struct mono now)
{
	for (size_t n = 0; n < cause->nodes; n++) {
		struct first_cause_window *window = &cause->windows[n];

		if (window->count == 0)
			continue;
		if (window->steps == 0)
			window->by = node;
		if (node == window->by &&
		    (window->steps == 0 || now.ms - window->by_at.ms >= APART_MS)) {
			window->steps++;
			window->by_at = now;
		}
		window->own_steps += node == n && is_later(cause, window, now);
		window->step_at = node == n ? now : window->step_at;
		if (window->own_steps < FAST_STEPS &&
		    (window->steps < SLOW_STEPS || now.ms - window->bore_at.ms < SLOW_MS))
			continue;
		window->survived = window->seen;
		window_drop(window);
	}
}

size_t first_cause_get(const struct first_cause *cause, size_t node, size_t below,
		       struct failure_line *ret)
{
	const struct first_cause_window *window = &cause->windows[node];
	size_t count = 0;

	while (count < window->count && window->lines[count].number < below) {
		ret[count] = (struct failure_line){ window->lines[count].text,
						    window->lines[count].len };
		count++;
	}
	return count;
}

size_t first_cause_survived(const struct first_cause *cause, size_t node)
{
	return cause->windows[node].survived;
}
