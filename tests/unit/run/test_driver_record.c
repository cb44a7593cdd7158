/* A driver that was taken over journals nothing more, though the journal would take it. */
#include "jobs/run/driver_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

static void count(void *arg, const struct event *ev, json_t *row)
{
	(void)ev;
	(void)row;
	++*(int *)arg;
}

static void who_was_taken_over_records_nothing(void **state)
{
	char dir[] = "/tmp/stoker-record-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	int recorded = 0;
	struct driver_options options = { .on_event = count, .arg = &recorded };
	struct driver driver = { .run = "r1", .options = &options };
	struct event ev = { .kind = EV_DRIVER_LEFT };

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(driver_record(&driver, &ev, &err), 0);
	assert_int_equal(recorded, 1);
	driver.stood_down = true;
	assert_int_equal(driver_record(&driver, &ev, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_int_equal(recorded, 1);
	journal_freep(&driver.journal);
	err_freep(&err);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_taken_over_records_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
