/* When a schedule is due: see schedule_times.h. */
#include "cmd/schedule/schedule_times.h"

#include <stdlib.h>

#include "cmd/screen/out.h"
#include "cmd/view/table.h"
#include "jobs/base/text/text.h"
#include "jobs/calendar/civil.h"

void schedule_times_release(struct schedule_times *times)
{
	schedule_zone_release(&times->zone);
}

static int read_times(struct schedule_times *times, struct err **err)
{
	struct cron_fault fault = { 0 };
	int found = schedule_zone_read(times->timezone, NULL, &times->zone, err);

	if (found < 0)
		return -1;
	if (found == 0) {
		err_set(err, EXIT_REFUSED, "this machine has no time zone '%s'", times->timezone);
		return err_hint(err, "install the package tzdata, or a newer one");
	}
	if (cron_parse(times->line, &times->cron, &fault))
		return 0;
	/* A spec's was parsed when it was read. */
	err_set(err, EXIT_REFUSED, "the pinned schedule '%.80s' is damaged: '%.*s' %s", times->line,
		(int)(fault.len < 80 ? fault.len : 80), fault.text, fault.why);
	err_damage(err);
	return err_hint(err, "'stoker schedule add SPEC --to …' pins it again");
}

int schedule_times_of_spec(const struct spec *spec, const char *path, struct schedule_times *ret,
			   struct err **err)
{
	ret->name = spec_str(spec, SPEC_NAME);
	ret->line = spec_str(spec, SPEC_SCHEDULE_CRON);
	ret->timezone = spec_str(spec, SPEC_SCHEDULE_TIMEZONE);
	if (ret->line)
		return read_times(ret, err);
	err_set(err, EXIT_SPEC, "the spec has no section 'schedule'");
	err_at(err, path, 0, 0);
	return err_hint(err, "say when it is due, for example schedule: {cron: 0 3 * * MON, "
			     "timezone: Europe/Berlin}");
}

int schedule_times_of_pin(const json_t *pin, struct schedule_times *ret, struct err **err)
{
	ret->name = js_str(pin, "name");
	ret->line = js_str(pin, "cron");
	ret->timezone = js_str(pin, "timezone");
	return read_times(ret, err);
}

/* "2026-11-30T03:00:00+01:00" */
static char *local_text(int64_t local, int32_t offset)
{
	struct civil civil = civil_of(local);
	int minutes = abs(offset) / CIVIL_MINUTE;

	return mem_format("%04lld-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", (long long)civil.year,
			  civil.month, civil.day, civil.hour, civil.minute, civil.second,
			  offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

static void print_due_json(const struct schedule_times *times, const struct due *due,
			   int32_t offset)
{
	AUTO(auto_free) char *local = local_text(due->at + offset, offset);
	AUTO(auto_free) char *skipped = local_text(due->wanted, 0);
	json_auto_t *line = json_object();
	char utc[UTC_TEXT];

	skipped[16] = '\0'; /* no offset belongs to a time that is on no clock */
	js_put_str(line, "name", times->name);
	js_put_str(line, "cron", times->line);
	js_put_str(line, "timezone", times->timezone);
	js_put_str(line, "due", clock_utc_format((struct utc){ due->at * 1000 }, utc));
	js_put_str(line, "local", local);
	if (due->moved)
		js_put_str(line, "skipped", skipped);
	out_json(line);
}

static void add_due_row(struct table *table, const struct due *due, int32_t offset, struct utc at)
{
	static const char weekdays[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	struct civil local = civil_of(due->at + offset), wanted = civil_of(due->wanted);
	int minutes = abs(offset) / CIVIL_MINUTE;
	char utc[UTC_TEXT];

	clock_utc_format((struct utc){ due->at * 1000 }, utc);
	table_add_row(table, MARK_NONE);
	table_set(table, 0,
		  mem_format("%s %04lld-%02d-%02d %02d:%02d %c%02d:%02d", weekdays[local.weekday],
			     (long long)local.year, local.month, local.day, local.hour,
			     local.minute, offset < 0 ? '-' : '+', minutes / 60, minutes % 60));
	table_set(table, 1, mem_format("%.16sZ", utc));
	table_set(table, 2, text_format_duration(due->at * 1000 - at.ms));
	if (due->moved)
		table_set(table, 3,
			  mem_format("the clock skips %02d:%02d", wanted.hour, wanted.minute));
}

static void print_head(const struct schedule_times *times, struct utc at)
{
	int64_t seconds = at.ms / 1000 - (at.ms % 1000 < 0);
	char utc[UTC_TEXT] = "";
	struct due last;

	if (due_last(&times->cron, &times->zone.zone, seconds, &last))
		clock_utc_format((struct utc){ last.at * 1000 }, utc);
	out_note("%s: '%s' in %s%s%.16s%s", times->name, times->line, times->timezone,
		 *utc ? "; it was last due at " : "", utc, *utc ? "Z" : "");
}

void schedule_times_print(const struct schedule_times *times, struct utc at, int64_t count)
{
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb lines = SB_INIT;
	int64_t after = at.ms / 1000 - (at.ms % 1000 < 0);
	struct due due;

	table_add_column(&table, "DUE", 0, 0);
	table_add_column(&table, "UTC", 0, 0);
	table_add_column(&table, "IN", 1, 0);
	table_add_column(&table, "", 2, 0);
	for (int64_t i = 0; i < count && due_next(&times->cron, &times->zone.zone, after, &due);
	     i++) {
		int32_t offset = zone_period_at(&times->zone.zone, due.at).offset;

		if (out_is_json())
			print_due_json(times, &due, offset);
		else
			add_due_row(&table, &due, offset, at);
		after = due.at;
	}
	if (out_is_json())
		return;
	print_head(times, at);
	table_print(&table, out_width(), SIZE_MAX, out_style(), &lines);
	out_finished(lines.text);
}
