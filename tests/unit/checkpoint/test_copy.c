/* Copying a checkpoint to another root: whole or not at all, gone on with, and
 * never out of its folders. */
#include <dirent.h>

#include "jobs/checkpoint/kind.h"
#include "tests/unit/checkpoint/trees.h"

struct place {
	char *from, *to;
};

static struct place place_of(const char *dir)
{
	return (struct place){ fs_join(dir, "from"), fs_join(dir, "to/deep") };
}

static void place_release(struct place *place)
{
	free(place->from);
	free(place->to);
}

static struct ckpt one_in(const char *root, const char *name)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt ckpt = { 0 };

	checkpoint_prove(path, checkpoint_kind_find("auto"), &ckpt, &err);
	assert_no_error(err);
	return ckpt;
}

/* An event during a copy: `now` runs at the call `at` of the copy's callback (from 1). */
struct during {
	int at, calls;
	bool (*now)(void *arg); /* false: the copy stops */
	void *arg;
};

static bool on_copying(void *arg, uint64_t done, uint64_t total)
{
	struct during *during = arg;

	assert_true(done <= total);
	return ++during->calls != during->at || during->now(during->arg);
}

static bool stop(void *arg)
{
	(void)arg;
	return false;
}

static int copy_while(const struct ckpt *ckpt, const char *to, struct during *during,
		      struct err **err)
{
	return checkpoint_copy(ckpt, CKPT_FOLDER(to), on_copying, during, err);
}

/* The number of calls of the callback: of files that are copied, as these are short. */
static int copy_all(const struct ckpt *ckpt, const char *to)
{
	AUTO(err_freep) struct err *err = NULL;
	struct during during = { 0 };

	assert_int_equal(copy_while(ckpt, to, &during, &err), 0);
	assert_no_error(err);
	return during.calls;
}

static void assert_same(const char *from, const char *to, const char *name)
{
	AUTO(auto_free) char *a = fs_join(from, name);
	AUTO(auto_free) char *b = fs_join(to, name);
	AUTO(checkpoint_tree_release) struct checkpoint_tree mine = TREE_INIT;
	AUTO(checkpoint_tree_release) struct checkpoint_tree other = TREE_INIT;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(checkpoint_tree_read(a, &mine, &err), 1);
	assert_int_equal(checkpoint_tree_read(b, &other, &err), 1);
	assert_int_equal(mine.count, other.count);
	for (size_t i = 0; i < mine.count; i++) {
		AUTO(sb_release) struct sb x = get_bytes(a, mine.files[i].path);
		AUTO(sb_release) struct sb y = get_bytes(b, other.files[i].path);

		assert_string_equal(mine.files[i].path, other.files[i].path);
		assert_int_equal(x.len, y.len);
		assert_memory_equal(x.text, y.text, x.len);
	}
}

/* Names in a folder, the hidden ones too. */
static int entries_in(const char *dir)
{
	DIR *names = opendir(dir);
	int count = -2;

	if (!names)
		return -1;
	while (readdir(names))
		count++;
	closedir(names);
	return count;
}

static void each_kind_arrives_whole_and_complete(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *dir = mem_format("%s/%zu", (char *)*state, m);
		AUTO(place_release) struct place at = place_of(dir);
		AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

		make_all(&makers[m], at.from, 2);
		list = found_in(at.from, "auto");
		copy_all(&list.items[1], at.to);
		copy_all(&list.items[0], at.to);
		assert_same(at.from, at.to, makers[m].names[0]);
		assert_same(at.from, at.to, makers[m].names[1]);
		assert_newest(at.to, "auto", makers[m].names[1]);
		/* Nothing but the two and the pointer, where there is one. */
		assert_int_equal(entries_in(at.to), 2 + (list.items[0].kind->pointer != NULL));
	}
}

static void a_single_file_arrives_too(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };

	put_sb(at.from, "step-10.pt", torch_file());
	ckpt = one_in(at.from, "step-10.pt");
	copy_all(&ckpt, at.to);
	assert_newest(at.to, "auto", "step-10.pt");
	assert_same(at.from, at.to, "step-10.pt");
	assert_int_equal(entries_in(at.to), 1);
}

static bool nothing_is_found(void *arg)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(arg, "auto");

	assert_int_equal(list.count, 0);
	return true;
}

static void before_the_end_nothing_is_to_be_seen(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(auto_free) char *elsewhere = fs_join(*state, "elsewhere");
	AUTO(err_freep) struct err *err = NULL;
	struct during during = { .now = nothing_is_found, .arg = at.to };

	make_nxd(at.from, "step_10", 10);
	ckpt = one_in(at.from, "step_10");
	during.at = copy_all(&ckpt, elsewhere);
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), 0);
	assert_int_equal(during.calls, during.at);
	assert_newest(at.to, "auto", "step_10");
}

static void an_interrupted_copy_is_gone_on_with(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(auto_free) char *elsewhere = fs_join(*state, "elsewhere");
	int whole;

	make_nxd(at.from, "step_10", 10);
	ckpt = one_in(at.from, "step_10");
	whole = copy_all(&ckpt, elsewhere);
	assert_true(whole > 1);
	/* Stopped in each of the files: always the rest only. */
	for (int n = 1; n <= whole; n++) {
		AUTO(auto_free) char *to = mem_format("%s/to-%d", (char *)*state, n);
		AUTO(err_freep) struct err *err = NULL;
		struct during during = { .at = n, .now = stop };

		assert_int_equal(copy_while(&ckpt, to, &during, &err), -1);
		assert_contains(err->message, "was stopped");
		assert_int_equal(copy_all(&ckpt, to), whole - n + 1);
		assert_same(at.from, to, "step_10");
		assert_int_equal(entries_in(to), 1);
	}
}

/* The same again, with later times. */
static bool save_again(void *from)
{
	make_nxd(from, "step_10", 10);
	return true;
}

static void what_has_changed_at_the_source_is_copied_again(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct during during = { .at = 3, .now = save_again, .arg = at.from };

	make_nxd(at.from, "step_10", 10);
	ckpt = one_in(at.from, "step_10");
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), -1);
	assert_contains(err->message, "changed meanwhile");
	assert_newest(at.to, "auto", NULL);
	copy_all(&ckpt, at.to);
	assert_same(at.from, at.to, "step_10");
}

static void what_another_left_in_the_hidden_folder_does_not_come_along(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct during during = { .at = 3, .now = stop };

	make_nxd(at.from, "step_10", 10);
	put_text(at.from, "step_10/aaa", "will be gone");
	ckpt = one_in(at.from, "step_10");
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), -1);
	err_freep(&err);
	drop(at.from, "step_10/aaa");
	during = (struct during){ 0 };
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), -1);
	assert_contains(err->message, "was of another checkpoint");
	copy_all(&ckpt, at.to);
	assert_same(at.from, at.to, "step_10");
	assert_int_equal(entries_in(at.to), 1);
}

static void the_same_one_there_already_is_done_and_another_is_an_error(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(at.from, "step-00000010", 10);
	ckpt = one_in(at.from, "step-00000010");
	copy_all(&ckpt, at.to);
	assert_int_equal(copy_all(&ckpt, at.to), 0);
	put_text(at.to, "step-00000010/meta.json", "{\"step\": 11, \"state_bytes\": 522}");
	assert_int_equal(checkpoint_copy(&ckpt, CKPT_FOLDER(at.to), NULL, NULL, &err), -1);
	assert_contains(err->message, "another checkpoint");
}

static void links_and_special_files_are_refused(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *inside = fs_join(at.from, "step-00000010/secret");

	make_files(at.from, "step-00000010", 10);
	ckpt = one_in(at.from, "step-00000010");
	assert_int_equal(symlink("/etc/passwd", inside), 0);
	assert_int_equal(checkpoint_copy(&ckpt, CKPT_FOLDER(at.to), NULL, NULL, &err), -1);
	assert_contains(err->message, "is a link");
	err_freep(&err);
	unlink(inside);
	assert_int_equal(mkfifo(inside, 0600), 0);
	assert_int_equal(checkpoint_copy(&ckpt, CKPT_FOLDER(at.to), NULL, NULL, &err), -1);
	assert_contains(err->message, "neither a file nor a folder");
	assert_int_equal(entries_in(at.to), -1);
}

struct swap {
	char *folder, *away;
};

static bool swap_for_link(void *arg)
{
	const struct swap *swap = arg;

	assert_int_equal(rename(swap->folder, swap->away), 0);
	assert_int_equal(symlink(swap->away, swap->folder), 0);
	return true;
}

static void a_folder_that_becomes_a_link_meanwhile_is_not_followed(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = fs_join(at.from, "step_10/optim");
	AUTO(auto_free) char *away = fs_join(*state, "away");
	struct swap swap = { folder, away };
	struct during during = { .at = 1, .now = swap_for_link, .arg = &swap };

	make_nxd(at.from, "step_10", 10);
	ckpt = one_in(at.from, "step_10");
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), -1);
	assert_newest(at.to, "auto", NULL);
}

static bool lay_link(void *arg)
{
	const struct swap *swap = arg;

	assert_int_equal(symlink(swap->away, swap->folder), 0);
	return true;
}

static void a_link_laid_into_the_hidden_folder_is_not_written_through(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *trap = fs_join(*state, "trap");
	AUTO(sb_release) struct sb name = SB_INIT;
	AUTO(auto_free) char *link = NULL;
	struct swap swap = { .away = trap };
	struct during during = { .at = 1, .now = lay_link, .arg = &swap };
	char hex[SHA256_HEX];

	make_nxd(at.from, "step_10", 10);
	ckpt = one_in(at.from, "step_10");
	hash_sha256_hex("step_10", 7, hex);
	sb_addf(&name, FS_TEMP_PREFIX "copy-%.24s/model", hex);
	put_text(*state, "trap/there", "x");
	swap.folder = link = fs_join(at.to, name.text);
	assert_int_equal(copy_while(&ckpt, at.to, &during, &err), -1);
	assert_int_equal(entries_in(trap), 1);
}

static void times_and_modes_are_as_they_should_be(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(auto_free) char *from = fs_join(at.from, "step-00000010/state.npz");
	AUTO(auto_free) char *to = fs_join(at.to, "step-00000010/state.npz");
	struct utimbuf old = { 1000000000, 1000000000 };
	struct stat st;

	make_files(at.from, "step-00000010", 10);
	utime(from, &old);
	ckpt = one_in(at.from, "step-00000010");
	copy_all(&ckpt, at.to);
	assert_int_equal(stat(to, &st), 0);
	assert_int_equal(st.st_mtime, 1000000000);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_root_that_cannot_be_made_is_an_error_that_names_it(void **state)
{
	AUTO(place_release) struct place at = place_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *below = fs_join(*state, "file/below");

	put_text(*state, "file", "in the way");
	make_files(at.from, "step-00000010", 10);
	ckpt = one_in(at.from, "step-00000010");
	assert_int_equal(checkpoint_copy(&ckpt, CKPT_FOLDER(below), NULL, NULL, &err), -1);
	assert_contains(err->message, "file'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(each_kind_arrives_whole_and_complete),
		test_in_scratch(a_single_file_arrives_too),
		test_in_scratch(before_the_end_nothing_is_to_be_seen),
		test_in_scratch(an_interrupted_copy_is_gone_on_with),
		test_in_scratch(what_has_changed_at_the_source_is_copied_again),
		test_in_scratch(what_another_left_in_the_hidden_folder_does_not_come_along),
		test_in_scratch(the_same_one_there_already_is_done_and_another_is_an_error),
		test_in_scratch(links_and_special_files_are_refused),
		test_in_scratch(a_folder_that_becomes_a_link_meanwhile_is_not_followed),
		test_in_scratch(a_link_laid_into_the_hidden_folder_is_not_written_through),
		test_in_scratch(times_and_modes_are_as_they_should_be),
		test_in_scratch(a_root_that_cannot_be_made_is_an_error_that_names_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
