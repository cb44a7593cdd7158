/* Lines of cron that are good, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/calendar/cron.h"

#define BITS(...) bits_of((const int[]){ __VA_ARGS__, -1 })

static uint64_t bits_of(const int *values)
{
	uint64_t bits = 0;

	for (; *values >= 0; values++)
		bits |= UINT64_C(1) << *values;
	return bits;
}

static struct cron parsed(const char *line)
{
	struct cron_fault fault;
	struct cron cron;

	if (!cron_parse(line, &cron, &fault))
		fail_msg("'%s': '%.*s' %s", line, (int)fault.len, fault.text, fault.why);
	return cron;
}

static void fields_are_sets(void **state)
{
	struct cron cron = parsed(" 5,10-20/5\t22-23,0 1-31/10 jan-MAR,12 fri-SUN ");

	(void)state;
	assert_int_equal(cron.bits[CRON_MINUTE], BITS(5, 10, 15, 20));
	assert_int_equal(cron.bits[CRON_HOUR], BITS(0, 22, 23));
	assert_int_equal(cron.bits[CRON_DAY], BITS(1, 11, 21, 31));
	assert_int_equal(cron.bits[CRON_MONTH], BITS(1, 2, 3, 12));
	assert_int_equal(cron.bits[CRON_WEEKDAY], BITS(5, 6, 0));
	assert_true(cron.either_day);
	cron = parsed("50/4 * */2 * 7");
	assert_int_equal(cron.bits[CRON_MINUTE], BITS(50, 54, 58));
	assert_int_equal(cron.bits[CRON_HOUR], (1 << 24) - 1);
	assert_int_equal(cron.bits[CRON_WEEKDAY], BITS(0));
	assert_false(cron.either_day); /* begins with a star */
	assert_int_equal(parsed("0 0 * * 0-7").bits[CRON_WEEKDAY], 127);
	assert_int_equal(parsed("0 0 * * SUN-SUN").bits[CRON_WEEKDAY], 1);
}

static void words_stand_for_lines(void **state)
{
	static const char *const rows[][2] = {
		{ "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },
		{ "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
		{ "@monthly", "0 0 1 * *" },  { "@yearly", "0 0 1 1 *" },
		{ "@annually", "0 0 1 1 *" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cron word = parsed(rows[i][0]), line = parsed(rows[i][1]);

		assert_memory_equal(word.bits, line.bits, sizeof word.bits);
		assert_int_equal(word.either_day, line.either_day);
	}
}

static void faults_name_the_part(void **state)
{
	static const struct {
		const char *line, *part, *why;
		enum cron_field field;
	} rows[] = {
		{ "60 * * * *", "60", "is no minute", CRON_MINUTE },
		{ "* 24 * * *", "24", "is no hour", CRON_HOUR },
		{ "* * 0 * *", "0", "is no day of the month", CRON_DAY },
		{ "* * 1,32 * *", "32", "is no day of the month", CRON_DAY },
		{ "* * * 13 *", "13", "is no month", CRON_MONTH },
		{ "* * * JANUARY *", "JANUARY", "is no month", CRON_MONTH },
		{ "* * * * 8", "8", "is no day of the week", CRON_WEEKDAY },
		{ "* * L * *", "L", "is no day of the month", CRON_DAY },
		{ "* * * * 5#2", "5#2", "is no day of the week", CRON_WEEKDAY },
		{ "* * ? * *", "?", "is no day of the month", CRON_DAY },
		{ "001 * * * *", "001", "is no minute", CRON_MINUTE },
		{ "-1 * * * *", "-1", "is no minute", CRON_MINUTE },
		{ "*/0 * * * *", "*/0", "has no step", CRON_MINUTE },
		{ "*/ * * * *", "*/", "has no step", CRON_MINUTE },
		{ "*/90 * * * *", "*/90", "longer than its range", CRON_MINUTE },
		{ "* */24 * * *", "*/24", "longer than its range", CRON_HOUR },
		{ "* 1-5/5 * * *", "1-5/5", "longer than its range", CRON_HOUR },
		{ "* 22-3 * * *", "22-3", "ends before it begins", CRON_HOUR },
		{ "* * * NOV-FEB *", "NOV-FEB", "ends before it begins", CRON_MONTH },
		{ "1,,2 * * * *", ",", "empty part", CRON_MINUTE },
		{ "1, * * * *", " ", "empty part", CRON_MINUTE },
		{ "1;2 * * * *", "1;2", "is no minute", CRON_MINUTE },
		{ "* * * *", "* * * *", "fewer than five", CRON_FIELDS },
		{ "", "", "fewer than five", CRON_FIELDS },
		{ " \t", "", "fewer than five", CRON_FIELDS },
		{ "* * * * * 2027", "* * * * * 2027", "more than five", CRON_FIELDS },
		{ "@reboot", "@reboot", "is not one of", CRON_FIELDS },
		{ "@Daily", "@Daily", "is not one of", CRON_FIELDS },
		{ "0 0 30 2 *", "0 0 30 2 *", "never comes", CRON_FIELDS },
		{ "0 0 31 2,4,6,9,11 *", "0 0 31 2,4,6,9,11 *", "never comes", CRON_FIELDS },
		{ "* * *\n* *", "*\n*", "is no day of the month", CRON_DAY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cron_fault fault = { 0 };
		struct cron cron;

		if (cron_parse(rows[i].line, &cron, &fault))
			fail_msg("'%s' is accepted", rows[i].line);
		if (fault.len != strlen(rows[i].part) ||
		    memcmp(fault.text, rows[i].part, fault.len) != 0 ||
		    !strstr(fault.why, rows[i].why) || fault.field != rows[i].field)
			fail_msg("'%s': field %d: '%.*s' %s", rows[i].line, (int)fault.field,
				 (int)fault.len, fault.text, fault.why);
		assert_true(*fault.hint);
	}
}

/* A leap day comes, and either day field is enough for another one. */
static void what_comes_is_accepted(void **state)
{
	(void)state;
	parsed("0 0 29 2 *");
	parsed("0 0 30 2 MON");
	parsed("0 0 */30 2 MON"); /* 1 February */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_sets),
		cmocka_unit_test(words_stand_for_lines),
		cmocka_unit_test(faults_name_the_part),
		cmocka_unit_test(what_comes_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
