/* Zones: the rule at the end of a file, and due times at clock changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/calendar/civil.h"
#include "jobs/calendar/due.h"

static int64_t moment(int year, int month, int day, int hour, int minute)
{
	return civil_days(year, month, day) * CIVIL_DAY + hour * CIVIL_HOUR + minute * CIVIL_MINUTE;
}

static struct zone ruled(const char *rule)
{
	struct zone zone = { 0 };

	if (!zone_rule_read(rule, strlen(rule), &zone))
		fail_msg("'%s' is no rule", rule);
	return zone;
}

static void days_have_their_names(void **state)
{
	(void)state;
	for (int64_t day = civil_days(1600, 1, 1); day < civil_days(2401, 1, 1); day += 13) {
		struct civil civil = civil_of(day * CIVIL_DAY + 86399);

		assert_int_equal(civil_days(civil.year, civil.month, civil.day), day);
		assert_int_equal(civil.hour * 10000 + civil.minute * 100 + civil.second, 235959);
	}
	assert_int_equal(civil_of(moment(2026, 11, 29, 0, 0)).weekday, 0);
	assert_int_equal(civil_of(-1).weekday, 3);
}

/* Moments from POSIX's text and from zdump(8). */
static void rules_change_the_offset(void **state)
{
	static const struct {
		const char *rule;
		int year, month, day, hour, minute; /* UTC */
		int32_t before, from;
	} rows[] = {
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2040, 3, 25, 1, 0, 3600, 7200 },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 2040, 10, 28, 1, 0, 7200, 3600 },
		{ "EST5EDT,M3.2.0,M11.1.0", 2040, 3, 11, 7, 0, -18000, -14400 },
		{ "EST5EDT,M3.2.0,M11.1.0", 2040, 11, 4, 6, 0, -14400, -18000 },
		{ "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2040, 3, 31, 15, 0, 39600, 37800 },
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2040, 3, 25, 1, 0, -7200, -3600 },
		{ "XXX3YYY,J60,J300/1:30:30", 2040, 3, 1, 5, 0, -10800, -7200 },
		{ "XXX3YYY,59,J300", 2040, 2, 29, 5, 0, -10800, -7200 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct zone zone = ruled(rows[i].rule);
		int64_t at = moment(rows[i].year, rows[i].month, rows[i].day, rows[i].hour,
				    rows[i].minute);
		struct zone_period before = zone_period_at(&zone, at - 1),
				   from = zone_period_at(&zone, at);

		if (before.offset != rows[i].before || from.offset != rows[i].from ||
		    before.to != at || from.from != at)
			fail_msg("'%s': %d until %lld, then %d", rows[i].rule, before.offset,
				 (long long)(before.to - at), from.offset);
	}
}

static void what_is_no_rule_is_refused(void **state)
{
	static const char *const rows[] = { "",
					    "CE-1",
					    "CET",
					    "CET-25",
					    "CET-1CEST",
					    "CET-1CEST,M3.5.0",
					    "CET-1CEST,M13.5.0,M10.5.0",
					    "CET-1CEST,M3.6.0,M10.5.0",
					    "<CET-1",
					    "CET-1CEST,M3.5.0,M10.5.0,",
					    "CET-1CEST,J0,J365",
					    "CET-1:60",
					    "CET-1CEST,366,1",
					    "CET-1CEST,M3.5.7,M10.5.0" };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct zone zone = { 0 };

		if (zone_rule_read(rows[i], strlen(rows[i]), &zone))
			fail_msg("'%s' is accepted", rows[i]);
	}
}

static void due_is(const char *rule, const char *line, int64_t after, int64_t at, bool moved)
{
	struct zone zone = ruled(rule);
	struct cron_fault fault;
	struct cron cron;
	struct due due, last;

	assert_true(cron_parse(line, &cron, &fault));
	assert_true(due_next(&cron, &zone, after, &due));
	if (due.at != at || due.moved != moved)
		fail_msg("'%s': %lld minutes off", line, (long long)(due.at - at) / 60);
	assert_true(due_last(&cron, &zone, due.at, &last));
	assert_int_equal(last.at, due.at);
	assert_true(!due_last(&cron, &zone, due.at - 1, &last) || last.at <= after);
}

static void clock_changes_neither_lose_nor_double(void **state)
{
	static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";
	static const char howe[] = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";

	(void)state;
	/* the gap: 02:30 does not exist on 28 March 2027 */
	due_is(berlin, "30 2 * * SUN", moment(2027, 3, 25, 0, 0), moment(2027, 3, 28, 1, 0), true);
	due_is(berlin, "30 2 * * SUN", moment(2027, 3, 28, 1, 0), moment(2027, 4, 4, 0, 30), false);
	/* several in the gap, and the minute after it, are one */
	due_is(berlin, "*/20 * * * *", moment(2027, 3, 28, 0, 40), moment(2027, 3, 28, 1, 0), true);
	due_is(berlin, "*/20 * * * *", moment(2027, 3, 28, 1, 0), moment(2027, 3, 28, 1, 20),
	       false);
	/* the repeated hour: the first time */
	due_is(berlin, "30 2 * * *", moment(2027, 10, 31, 0, 0), moment(2027, 10, 31, 0, 30),
	       false);
	due_is(berlin, "30 2 * * *", moment(2027, 10, 31, 0, 30), moment(2027, 11, 1, 1, 30),
	       false);
	due_is(berlin, "0 * * * *", moment(2027, 10, 31, 0, 0), moment(2027, 10, 31, 2, 0), false);
	/* half an hour at Lord Howe */
	due_is(howe, "15 2 * * *", moment(2027, 10, 2, 12, 0), moment(2027, 10, 2, 15, 30), true);
	due_is(howe, "45 1 * * *", moment(2027, 4, 3, 12, 0), moment(2027, 4, 3, 14, 45), false);
	due_is(howe, "45 1 * * *", moment(2027, 4, 3, 14, 45), moment(2027, 4, 4, 15, 15), false);
}

struct file {
	char bytes[256];
	size_t len;
};

static void put(struct file *file, uint64_t value, size_t size)
{
	while (size-- > 0)
		file->bytes[file->len++] = (char)(value >> (8 * size));
}

static void put_text(struct file *file, const char *text)
{
	memcpy(file->bytes + file->len, text, strlen(text));
	file->len += strlen(text);
}

static void put_header(struct file *file, unsigned times, unsigned types)
{
	put_text(file, "TZif2");
	file->len += 15; /* zeros */
	for (int i = 0; i < 3; i++)
		put(file, 0, 4);
	put(file, times, 4);
	put(file, types, 4);
	put(file, 4, 4);
}

static void put_type(struct file *file, int32_t offset)
{
	put(file, (uint32_t)offset, 4);
	put(file, 0, 2);
}

/* A zone of one change, a day forward at the end of 29 December 2011, as Samoa's. */
static struct file samoa(void)
{
	struct file file = { .len = 0 };

	put_header(&file, 0, 1);
	put_type(&file, -36000);
	put_text(&file, "AAA");
	put(&file, 0, 1);
	put_header(&file, 1, 2);
	put(&file, 0x4efd8ba0, 8);
	put(&file, 1, 1);
	put_type(&file, -36000);
	put_type(&file, 50400);
	put_text(&file, "AAA");
	put(&file, 0, 1);
	put_text(&file, "\n<+14>-14\n");
	return file;
}

static void a_day_that_a_zone_leaves_out_is_not_lost(void **state)
{
	struct file file = samoa();
	struct zone zone;
	struct cron_fault fault;
	struct cron cron;
	struct due due;

	(void)state;
	assert_true(zone_read(file.bytes, file.len, &zone));
	assert_int_equal(zone_period_at(&zone, 0x4efd8ba0).offset, 50400);
	assert_int_equal(zone_period_at(&zone, 0x4efd8ba0 - 1).offset, -36000);
	assert_true(cron_parse("0 3 30 12 *", &cron, &fault));
	assert_true(due_next(&cron, &zone, moment(2011, 12, 1, 0, 0), &due));
	assert_int_equal(due.at, 0x4efd8ba0);
	assert_true(due.moved);
	for (size_t len = 0; len < file.len; len++)
		assert_false(zone_read(file.bytes, len, &zone));
}

static void a_leap_day_on_a_weekday_is_found_across_a_century(void **state)
{
	struct zone zone;
	struct cron_fault fault;
	struct cron cron;
	struct due due;

	(void)state;
	zone_utc(&zone);
	/* A star makes both day fields count: a Saturday or Sunday. */
	assert_true(cron_parse("0 0 29 2 */6", &cron, &fault));
	assert_true(due_next(&cron, &zone, moment(2088, 3, 1, 0, 0), &due));
	assert_int_equal(due.at, moment(2116, 2, 29, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(days_have_their_names),
		cmocka_unit_test(rules_change_the_offset),
		cmocka_unit_test(what_is_no_rule_is_refused),
		cmocka_unit_test(clock_changes_neither_lose_nor_double),
		cmocka_unit_test(a_day_that_a_zone_leaves_out_is_not_lost),
		cmocka_unit_test(a_leap_day_on_a_weekday_is_found_across_a_century),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
