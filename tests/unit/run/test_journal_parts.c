/* The small parts of a journal: what lies in the place of a file, how damage is named, the mark of
 * a run's end, and the order of runs. See jobs/run/journal/damage.h, end_mark.h and begun.h. */
#include "jobs/run/journal/damage.h"

#include <sys/stat.h>

#include "jobs/base/hash.h"
#include "jobs/run/journal/begun.h"
#include "jobs/run/journal/end_mark.h"
#include "tests/unit/checkpoint/trees.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-parts-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

/* ---- objects in the way ---- */

/* `path`: of what is in the way of `key`, NULL if nothing is. */
static void assert_obstacle(const char *key, const char *path, const char *kind)
{
	AUTO(sb_release) struct sb what = SB_INIT, where = SB_INIT;
	AUTO(auto_free) char *whole = path ? fs_join(dir, path) : NULL;
	AUTO(auto_free) char *words = path ? mem_format("'%s' is %s", whole, kind) : NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(damage_obstacle(dir, key, &what, &where), path != NULL);
	assert_string_equal(what.text ? what.text : "", words ? words : "");
	assert_string_equal(where.text ? where.text : "", whole ? whole : "");
	sb_clear(&what);
	assert_int_equal(damage_obstacle(dir, key, &what, NULL), path != NULL);
	assert_int_equal(damage_refuse_obstacle(dir, key, "the thing", &err), path ? -1 : 0);
	if (!path) {
		assert_null(err);
		return;
	}
	assert_true(err->damage);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->message, "cannot read the thing: '");
	assert_contains(err->message, words);
	assert_contains(err->hint, "move '");
	assert_contains(err->hint, whole);
}

static void make_node(const char *name, mode_t mode, dev_t device)
{
	AUTO(auto_free) char *path = fs_join(dir, name);

	assert_int_equal(mknod(path, mode | 0600, device), 0);
}

static void anything_but_a_file_is_in_the_way_of_one(void **state)
{
	AUTO(auto_free) char *link = fs_join(dir, "a/b/link");
	AUTO(auto_free) char *folder = fs_join(dir, "a/b/folder");

	(void)state;
	put_text(dir, "a/b/file", "1");
	assert_int_equal(symlink("/nowhere", link), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
	make_node("a/b/pipe", S_IFIFO, 0);
	make_node("a/b/socket", S_IFSOCK, 0);
	assert_obstacle("a/b/file", NULL, NULL);
	assert_obstacle("a/b/none", NULL, NULL);
	assert_obstacle("none/b", NULL, NULL);
	assert_obstacle("a/b/link", "a/b/link", "a link");
	assert_obstacle("a/b/folder", "a/b/folder", "a folder");
	assert_obstacle("a/b/pipe", "a/b/pipe", "a pipe");
	assert_obstacle("a/b/socket", "a/b/socket", "a socket");
	/* and anything but a folder of what is in one */
	assert_obstacle("a/b/file/x", "a/b/file", "no folder");
	assert_obstacle("a/b/file/x/y", "a/b/file", "no folder");
	assert_obstacle("a/b/pipe/x", "a/b/pipe", "a pipe");
	assert_obstacle("a/b/link/x", "a/b/link", "a link");
	assert_obstacle("a/b/folder/x", NULL, NULL);
	{
		AUTO(sb_release) struct sb what = SB_INIT;

		assert_true(damage_obstacle("/dev", "null", &what, NULL));
		assert_string_equal(what.text, "'/dev/null' is a device");
	}
}

/* ---- words about damage ---- */

static void damage_of_an_event_has_its_place_and_a_cure(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(damage_of_event(&err, "/f", "r", 3), -1);
	assert_string_equal(err->message, "event 3 of run r in '/f' is damaged: unreadable");
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_true(err->damage);
	assert_string_equal(err->hint,
			    "restore the file from a copy, or continue from what is left with "
			    "'stoker resume r --salvage', or forget the run with 'stoker rm r'");
	err_freep(&err);
	err_set(&err, EXIT_GATE, "empty");
	assert_int_equal(damage_of_event(&err, "/f", "r", 4), -1);
	assert_string_equal(err->message, "event 4 of run r in '/f' is damaged: empty");
	assert_int_equal(damage_hint(&err, "the disk", "s"), -1);
	assert_contains(err->hint, "restore the disk from a copy");
	err_freep(&err);
	assert_int_equal(damage_of_file(&err, "/f", "it is torn"), -1);
	assert_string_equal(err->message, "the journal '/f' is damaged: it is torn");
	assert_true(err->damage);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->hint, "stoker resume RUN --salvage");
}

static void what_is_set_aside_is_named_by_number_and_sum(void **state)
{
	AUTO(auto_free) char *one = damage_aside_name(3, "abc", 3);
	AUTO(auto_free) char *none = damage_aside_name(123456789012, "", 0);

	(void)state;
	/* printf abc | sha256sum */
	assert_string_equal(one, "damaged/000000000003-ba7816bf8f01.json");
	assert_string_equal(none, "damaged/123456789012-e3b0c44298fc.json");
}

static void note_run(void *arg, const char *run)
{
	sb_addf(arg, "%s ", run);
}

static void runs_are_told_by_what_they_leave(void **state)
{
	AUTO(sb_release) struct sb names = SB_INIT, lost = SB_INIT;

	(void)state;
	damage_each_run(dir, "trace", note_run, &names);
	assert_int_equal(names.len, 0);
	assert_int_equal(damage_lost_runs(dir, "trace", &lost), 0);
	assert_int_equal(lost.len, 0);
	put_text(dir, "runs/a/trace", "1");
	put_text(dir, "runs/Not-An-Id/trace", "1");
	put_text(dir, "runs/b/other", "1");
	damage_each_run(dir, "trace", note_run, &names);
	assert_string_equal(names.text, "a ");
	assert_int_equal(damage_lost_runs(dir, "trace", &lost), 1);
	assert_string_equal(lost.text, "a");
	put_text(dir, "runs/b/trace", "1");
	put_text(dir, "runs/c/trace", "1");
	sb_clear(&lost);
	assert_int_equal(damage_lost_runs(dir, "trace", &lost), 3);
	assert_int_equal(lost.len, strlen("a, b, c"));
	put_text(dir, "runs/d/trace", "1");
	put_text(dir, "runs/e/trace", "1");
	sb_clear(&lost);
	assert_int_equal(damage_lost_runs(dir, "trace", &lost), 5);
	assert_int_equal(lost.len, strlen("a, b, c")); /* the first few */
}

/* ---- the mark of the end ---- */

static void a_mark_is_a_number_with_its_sum(void **state)
{
	AUTO(auto_free) char *path = fs_join(dir, "runs/r/journal.end");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *want = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	char sum[SHA256_HEX];
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	put_text(dir, "runs/r/x", "1");
	end_mark_write(dir, "r", 12);
	umask(mask);
	hash_sha256_hex("r 12", 4, sum);
	want = mem_format("000000000012 %.16s\n", sum);
	text = get_bytes(dir, "runs/r/journal.end");
	assert_string_equal(text.text, want);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(end_mark_read(dir, "r"), 12);
	/* of one run it says nothing of another */
	put_text(dir, "runs/s/journal.end", want);
	assert_int_equal(end_mark_read(dir, "s"), 0);
	assert_int_equal(end_mark_remove(dir, "r", &err), 0);
	assert_int_equal(end_mark_remove(dir, "r", &err), 0);
	assert_false(fs_exists(path));
	put_text(dir, "runs/r/journal.end", "");
	assert_int_equal(end_mark_read(dir, "r"), 0);
	drop(dir, "runs/r/journal.end");
	/* a pipe keeps nobody waiting, and no link is followed */
	assert_int_equal(mkfifo(path, 0600), 0);
	end_mark_write(dir, "r", 3);
	assert_int_equal(end_mark_read(dir, "r"), 0);
	drop(dir, "runs/r/journal.end");
	put_text(dir, "target", "1");
	{
		AUTO(auto_free) char *target = fs_join(dir, "target");
		AUTO(sb_release) struct sb untouched = SB_INIT;

		assert_int_equal(symlink(target, path), 0);
		end_mark_write(dir, "r", 3);
		assert_int_equal(end_mark_read(dir, "r"), 0);
		untouched = get_bytes(dir, "target");
		assert_string_equal(untouched.text, "1");
	}
}

/* ---- the order of runs ---- */

struct listed {
	struct sb names;
	int stop_at, count, result;
};

static int list(void *arg, const char *run, const char *head, struct err **err)
{
	struct listed *listed = arg;

	(void)head;
	sb_addf(&listed->names, "%s ", run);
	if (++listed->count != listed->stop_at)
		return 0;
	return listed->result < 0 ? err_set(err, EXIT_GATE, "enough") : listed->result;
}

static void runs_are_in_the_order_in_which_they_began(void **state)
{
	static const char *const rows[][2] = {
		{ "new", "{\"at\":\"2026-11-21T11:36:03.000Z\"}" },
		{ "old", "{\"at\":\"2026-11-21T11:36:01.000Z\"}" },
		{ "b", "{\"at\":\"2026-11-21T11:36:02.000Z\"}" },
		{ "a", "{\"at\":\"2026-11-21T11:36:02.000Z\"}" },
		{ "unknown", "{\"at\":\"yesterday\"}" },
		{ "none", NULL },
		{ "bad", "{" },
		{ "new", "{\"at\":\"2026-11-21T11:36:00.000Z\"}" }, /* the first counts */
		{ "Not An Id", NULL },
	};
	AUTO(begun_release) struct begun begun = { 0 };
	struct err *err = NULL;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		begun_add(&begun, rows[i][0], rows[i][1], rows[i][1] ? strlen(rows[i][1]) : 0);
	assert_int_equal(begun.count, 7);
	for (int result = -1; result <= 1; result++) {
		struct listed listed = { .names = SB_INIT, .stop_at = 2, .result = result };

		assert_int_equal(begun_hand_out(&begun, list, &listed, &err), result < 0 ? -1 : 0);
		assert_string_equal(listed.names.text,
				    result ? "bad none " : "bad none unknown old a b new ");
		sb_release(&listed.names);
	}
	assert_string_equal(err->message, "enough");
	err_freep(&err);
	{
		struct begun nothing = { 0 };

		assert_int_equal(begun_hand_out(&nothing, list, NULL, &err), 0);
	}
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(anything_but_a_file_is_in_the_way_of_one),
		OF(damage_of_an_event_has_its_place_and_a_cure),
		OF(what_is_set_aside_is_named_by_number_and_sum),
		OF(runs_are_told_by_what_they_leave),
		OF(a_mark_is_a_number_with_its_sum),
		OF(runs_are_in_the_order_in_which_they_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
