/* Notifications about a turn without a run: who gets them, what they say, and what fails. */
#include "jobs/run/notify_turn.h"

#include <stdlib.h>

#include "jobs/base/fs/fs.h"
#include "tests/unit/quoted.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-notify-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static int tell(const char *rules, struct err **err)
{
	AUTO(auto_free) char *spec = fs_join(dir, "job.yaml");
	json_auto_t *list = quoted_json(rules), *facts = quoted_json("{'due':'2026-11-30'}");
	const struct notify_turn turn = { .rules = list,
					  .spec_file = spec,
					  .name = "weekly",
					  .occasion = "nothing_new",
					  .id = "weekly-2026-11-30",
					  .text = "weekly: no new data",
					  .facts = facts };

	return notify_turn_send(&turn, err);
}

/* The content of a file of the test's folder; NULL: it is not there. The caller frees it. */
static char *text_of(const char *name)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(err_freep) struct err *err = NULL;
	struct sb text = SB_INIT;

	if (!fs_exists(path))
		return NULL;
	assert_int_equal(fs_read(path, 4096, &text, &err), 0);
	return sb_take(&text);
}

static void every_rule_that_asks_gets_one_message(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *one = NULL;
	AUTO(auto_free) char *two = NULL;
	AUTO(auto_free) char *other = NULL;
	AUTO(auto_free)
	char *want = quoted(
		"{'due':'2026-11-30','id':'weekly-2026-11-30-0','occasion':'nothing_new','name':"
		"'weekly','text':'weekly: no new data'}\nnothing_new\n");

	(void)state;
	assert_int_equal(
		tell("[{'when':['failed','nothing_new'],'command':['sh','-c','cat >> one; echo "
		     "$STOKER_OCCASION >> one']},"
		     "{'when':['skipped'],'command':['sh','-c','cat >> other']},"
		     "{'when':['nothing_new'],'command':['sh','-c','echo ${STOKER_RUN-none} >> "
		     "two']}]",
		     &err),
		0);
	one = text_of("one");
	two = text_of("two");
	other = text_of("other");
	assert_non_null(one);
	assert_string_equal(one, want);
	assert_string_equal(two, "none\n");
	assert_null(other);
}

static void a_failure_is_told_after_all_had_theirs(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *tries = NULL;
	AUTO(auto_free) char *last = NULL;

	(void)state;
	assert_int_equal(
		tell("[{'when':['nothing_new'],'command':['sh','-c','echo . >> tries; echo no "
		     "route >&2; exit 3']},"
		     "{'when':['nothing_new'],'command':['sh','-c','echo done >> last']}]",
		     &err),
		-1);
	assert_non_null(strstr(err->message, "notify[0] failed"));
	assert_non_null(strstr(err->message, "no route"));
	tries = text_of("tries");
	last = text_of("last");
	assert_string_equal(tries, ".\n.\n.\n");
	assert_string_equal(last, "done\n");
}

static void one_that_fails_once_is_tried_again(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(tell("[{'when':['nothing_new'],'command':['sh','-c','test -e there || { "
			      ": > there; exit 1; }']}]",
			      &err),
			 0);
	assert_int_equal(tell("[]", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_rule_that_asks_gets_one_message, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_failure_is_told_after_all_had_theirs, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_fails_once_is_tried_again, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
