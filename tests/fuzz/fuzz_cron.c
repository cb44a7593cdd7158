/*
 * A line of cron, and behind FUZZ_PART the file of a time zone (without one: Lord Howe's rule).
 * A fault names a part of the line. Due times lie behind the moment and in order; each is found
 * again, from before and from behind; none lies between two of them.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/calendar/due.h"

static const char howe[] = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";

static void walk(const struct cron *cron, const struct zone *zone, int64_t from)
{
	struct due due, again;

	for (int i = 0; i < 20 && due_next(cron, zone, from, &due); i++) {
		MUST(due.at > from);
		MUST(due_next(cron, zone, due.at - 1, &again) && again.at == due.at);
		MUST(due_last(cron, zone, due.at, &again) && again.at == due.at);
		MUST(!due_last(cron, zone, due.at - 1, &again) || again.at <= from);
		MUST(due.moved == (zone_local(zone, due.at) != due.wanted));
		from = due.at;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct span rest = { (const char *)bytes, len }, part;
	struct cron_fault fault = { 0 };
	struct zone zone = { 0 };
	struct cron cron;
	char *line, *file = NULL;

	span_next(&rest, FUZZ_PART, &part);
	line = mem_copy_n(part.text ? part.text : "", part.text ? part.len : 0);
	if (rest.text)
		file = span_copy(rest);
	if (!cron_parse(line, &cron, &fault)) {
		MUST(fault.text >= line && fault.text + fault.len <= line + strlen(line));
		MUST(fault.field <= CRON_FIELDS && *fault.why && *fault.hint);
	} else if (file ? zone_read(file, rest.len, &zone)
			: zone_rule_read(howe, sizeof howe - 1, &zone)) {
		for (int64_t at = -2000000000; at < 6000000000; at += 799999999) {
			struct zone_period period = zone_period_at(&zone, at);

			MUST(period.from <= at && at < period.to);
			walk(&cron, &zone, at);
		}
	}
	free(line);
	free(file);
	return 0;
}
