/* Finds steps and compiler messages in the command's output: see output_scan.h. */
#include "jobs/cache/kinds/output_scan.h"

#include <string.h>

#include "jobs/base/text/regex.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/order.h"

/* A pattern is dropped after so many searches that took too many steps. */
#define GIVEN_UP_MAX 3

int output_scan_init(struct output_scan *listen, const json_t *metrics, const char *kind,
		     struct err **err)
{
	const json_t *metric;
	size_t i;

	*listen = (struct output_scan){ .line = SB_INIT_MAX(OUTPUT_SCAN_LINE) };
	listen->kind = kind ? compile_kind_find(kind) : NULL;
	json_array_foreach (metrics, i, metric) {
		const char *name = js_str(metric, "name"), *regex = js_str(metric, "regex");

		if (!name || !regex || strcmp(name, METRIC_STEP) != 0)
			continue;
		if (regex_compile(regex, &listen->step, err) < 0)
			return err_wrap(err, "the metric '%s'", name);
		break;
	}
	return 0;
}

void output_scan_release(struct output_scan *listen)
{
	regex_freep(&listen->step);
	if (listen->line.text)
		sb_release(&listen->line);
}

/* True if compilation goes on after this message. Silence may follow only these messages; others
 * end a compilation, and something else begins. */
static bool goes_on(const struct graph_note *note)
{
	return note->kind == NOTE_MISS || note->kind == NOTE_EXTRACTED ||
	       (note->kind == NOTE_REMAINING && note->graphs > 0);
}

/* True for messages about no graph in particular. */
static bool is_remark(const struct graph_note *note)
{
	return note->kind == NOTE_CACHE || note->kind == NOTE_TOTALS ||
	       note->kind == NOTE_NOTHING || note->kind == NOTE_WORKER_DIED ||
	       note->kind == NOTE_SCRIPT_FAILED;
}

static bool hear_compiler(struct output_scan *listen, struct mono now)
{
	struct graph_note note;
	size_t at = 0;
	bool heard = false, waits = false;

	if (!listen->kind || !listen->kind->scan)
		return false;
	while (listen->kind->scan(listen->line.text, listen->line.len, &at, &note)) {
		if (is_remark(&note))
			continue;
		waits |= note.kind == NOTE_WAITING;
		if (note.kind == NOTE_WAITING)
			continue;
		stall_compile(listen->stall, now, goes_on(&note));
		listen->compiles++;
		heard = true;
	}
	if (waits && !heard) {
		stall_wait(listen->stall, now);
		/* Not a sign of life for the other nodes either, so do not count these bytes. */
		listen->bytes -= listen->bytes > listen->line.len ? listen->line.len + 1 : 0;
	}
	return heard || waits;
}

static bool hear_step(struct output_scan *listen, struct mono now)
{
	double value;
	int64_t step;
	bool found, is_new;

	if (!listen->step)
		return false;
	found = regex_number(listen->step, listen->line.text, listen->line.len, &value);
	if (!found && regex_given_up(listen->step) >= GIVEN_UP_MAX) {
		regex_freep(&listen->step);
		stall_forget_steps(listen->stall);
		return false;
	}
	if (!found || !(value >= 0 && value < 9e15))
		return false;
	step = (int64_t)value;
	is_new = !listen->stepped || step > listen->last_step;
	if (!listen->stepped)
		listen->first_step = step;
	if (is_new)
		listen->last_step = step;
	listen->stepped = true;
	if (listen->meter)
		step_rate_meter_step(listen->meter, step, clock_awake_now().ms, clock_utc_now());
	if (is_new)
		stall_step(listen->stall, now, step);
	return true;
}

static void end_line(struct output_scan *listen, struct mono now, bool drawn)
{
	bool heard = listen->line.len > 0 && hear_compiler(listen, now);

	heard |= listen->line.len > 0 && hear_step(listen, now);
	if (!heard || drawn)
		stall_output(listen->stall, now, drawn);
	sb_clear(&listen->line);
	listen->line.truncated = false;
}

void output_scan_pass(struct output_scan *listen, struct mono now, const char *bytes, size_t len)
{
	listen->bytes += len;
	while (len > 0) {
		size_t i = 0;

		/* Only the next byte tells whether the carriage return drew a bar or ended a
		 * line. */
		if (listen->returned) {
			end_line(listen, now, *bytes != '\n');
			listen->returned = false;
			if (*bytes == '\n') {
				bytes++;
				len--;
				continue;
			}
		}
		while (i < len && bytes[i] != '\n' && bytes[i] != '\r')
			i++;
		sb_add(&listen->line, bytes, i);
		if (i < len && bytes[i] == '\n')
			end_line(listen, now, false);
		else if (i < len)
			listen->returned = true;
		else
			stall_output(listen->stall, now, false); /* half a line */
		bytes += i + (i < len);
		len -= i + (i < len);
	}
}
