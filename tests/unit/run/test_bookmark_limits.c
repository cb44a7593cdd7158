/* Parts of an attempt's logs that are too large to be kept beside the journal, or to be used: see
 * jobs/run/journal/bookmark.c. */
#include "bookmark_fixture.h"

/* The largest that is kept can be read again, too. */
static void what_is_too_large_is_neither_kept_nor_used(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(auto_free) char *text = NULL;
	AUTO(auto_free) char *longer = NULL;
	size_t len;

	(void)state;
	said.sizes[0] = LEAST;
	watch->logs[0].tail.offset = LEAST;
	json_object_set_new(watch->late, "x", json_string(""));
	bookmark_put(watch, true);
	len = 32 * MIB - kept_bytes();
	text = mem_zero(len + 2, 1);
	memset(text, 'y', len + 1);
	for (int fits = 0; fits < 2; fits++) {
		forget();
		text[len + 1 - (size_t)fits] = '\0';
		json_object_set_new(watch->late, "x", json_string(text));
		watch->marked_bytes = 0;
		bookmark_put(watch, true);
		assert_int_equal(is_kept(), fits);
		assert_int_equal(watch->marked_bytes, LEAST);
	}
	assert_int_equal(kept_bytes(), 32 * MIB);
	assert_int_equal(another_driver()->logs[0].tail.offset, LEAST);
	{
		AUTO(sb_release) struct sb bytes = SB_INIT;
		AUTO(auto_free) char *path = bookmark();
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_read(path, 64 * MIB, &bytes, &err), 0);
		longer = mem_format("%s ", bytes.text);
	}
	put(longer);
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	end();
}

/* A tally of so many graphs is not worth its bytes, and nothing is worth keeping without it. */
static void without_its_graphs_nothing_is_kept(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	for (int i = 0; i <= 5000; i++) {
		AUTO(auto_free)
		char *line =
			mem_format("Call compiler with cmd: neuronx-cc compile --framework=XLA "
				   "/tmp/model.MODULE_%d+3cc9a3cb.hlo_module.pb --output "
				   "/tmp/model.MODULE_%d+3cc9a3cb.neff",
				   1000000 + i, 1000000 + i);

		graph_tally_scan(watch->tally, driver.kind, 0, line, strlen(line));
	}
	watch->logs[0].tail.offset = LEAST;
	bookmark_put(watch, true);
	assert_false(is_kept());
	assert_int_equal(watch->marked_bytes, LEAST); /* nor is it tried again at once */
	end();
}

/* A line of more than a mebibyte is not read again from its beginning. */
static void of_a_line_that_is_too_long_the_rest_is_dropped(void **state)
{
	static const struct {
		size_t len;
		bool dropping;
	} rows[] = { { MIB, false }, { MIB + 1, true } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
		AUTO(auto_free) char *line = mem_zero(rows[i].len + 1, 1);
		const json_t *log;
		json_auto_t *value = NULL;

		memset(line, 'z', rows[i].len);
		say(0, "first\n");
		say(0, line);
		read_all(watch);
		bookmark_put(watch, true);
		value = kept();
		log = json_array_get(json_object_get(value, "logs"), 0);
		assert_int_equal(js_bool(log, "dropping", !rows[i].dropping), rows[i].dropping);
		assert_int_equal(js_int(log, "offset", -9),
				 rows[i].dropping ? said.logs[0].len : strlen("first\n"));
		watch = another_driver();
		assert_int_equal(watch->logs[0].tail.dropping, rows[i].dropping);
		say(0, "\nnext\n");
		read_all(watch);
		assert_string_equal(watch->logs[0].last[0], "first");
		assert_string_equal(watch->logs[0].last[rows[i].dropping ? 1 : 2], "next");
		end();
	}
}

static void a_file_that_is_too_large_is_not_used(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(auto_free) char *url = mem_format("sqlite:%s/disk", dir);
	AUTO(auto_free) char *folder = mem_format("%s/disk/runs/r1", dir);
	AUTO(auto_free) char *path = fs_join(folder, "reading.json");
	AUTO(auto_free) char *spaces = mem_zero(32 * MIB + 2, 1);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb bytes = SB_INIT;

	(void)state;
	assert_int_equal(fs_mkdirs(folder, &err), 0); /* where the lock of the driver lies */
	journal_freep(&driver.journal);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &driver.journal, &err), 0);
	say_much(0, LEAST);
	read_all(watch);
	bookmark_put(watch, true);
	assert_int_equal(fs_read(path, MIB, &bytes, &err), 0);
	memset(spaces, ' ', 32 * MIB + 1);
	memcpy(spaces, bytes.text, bytes.len);
	for (int fits = 0; fits < 2; fits++) {
		assert_int_equal(
			fs_write_atomic(path, spaces, 32 * MIB + 1 - (size_t)fits, 0600, &err), 0);
		assert_int_equal(another_driver()->logs[0].tail.offset, fits ? LEAST : 0);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_large_is_neither_kept_nor_used),
		cmocka_unit_test(without_its_graphs_nothing_is_kept),
		cmocka_unit_test(of_a_line_that_is_too_long_the_rest_is_dropped),
		cmocka_unit_test(a_file_that_is_too_large_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
