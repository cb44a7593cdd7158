/* Pinning plain folders, choosing files, and publishing bundles. */
#include "tests/unit/source/fixture.h"

/* --- plain folders --- */

static void a_plain_folder_is_pinned_by_content(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	file(f, "train.py", "print(1)\n");
	file(f, "pkg/a.py", "a\n");
	file(f, "pkg/empty", "");
	sh(f, "mkdir nothing && mkdir -p .hidden && touch .hidden/x");
	pin = pin_request(&request);
	assert_string_equal(pin->kind, "dir");
	assert_string_equal(pin->commit, "");
	assert_false(pin->dirty);
	assert_files(pin, ".hidden/x pkg/a.py pkg/empty train.py ");
	request.rev = "v1";
	assert_refused(&request, EXIT_SPEC, "not a git work tree", "source.rev");
}

static void a_plain_folder_honours_its_gitignore_files(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	file(f, ".gitignore", "*.log\nvenv/\n");
	file(f, "pkg/.gitignore", "!keep.log\n/local\n");
	file(f, "pkg/keep.log", "x");
	file(f, "pkg/x.log", "x");
	file(f, "pkg/local", "x");
	file(f, "pkg/sub/local", "x");
	file(f, "venv/big", "x");
	file(f, "made/.gitignore", "*\n"); /* as virtual environments bring one */
	file(f, "made/bin/python", "x");
	file(f, "train.py", "x");
	assert_pins(&request, ".gitignore pkg/.gitignore pkg/keep.log pkg/sub/local train.py ");
}

static void the_same_files_are_the_same_bundle_with_and_without_git(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *in_git = NULL, *plain = NULL;

	repository(f);
	in_git = digest_of(&request);
	sh(f, "rm -rf .git");
	plain = digest_of(&request);
	assert_string_equal(in_git, plain);
}

static void a_folder_that_the_repository_around_it_excludes_is_a_plain_one(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *inner = fs_join(f->root, "build/project");
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	repository(f);
	file(f, "build/project/x.py", "x");
	request.root = inner;
	pin = pin_request(&request);
	assert_string_equal(pin->kind, "dir");
	assert_string_equal(pin->commit, "");
	assert_files(pin, "x.py ");
}

/* --- links, special files, choice --- */

static void links_are_kept_if_they_stay_inside(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	file(f, "pkg/a.py", "a\n");
	sh(f, "ln -s pkg/a.py link && ln -s ../pkg pkg/self && ln -s nowhere pkg/dangling");
	pin = pin_request(&request);
	assert_files(pin, "link pkg/a.py pkg/dangling pkg/self ");
	assert_int_equal(file_of(pin, "link")->mode, 0120000);
	assert_int_equal(file_of(pin, "link")->size, 8);
	sh(f, "ln -s ../../outside pkg/out");
	assert_refused(&request, EXIT_REFUSED, "'pkg/out' leads out", NULL);
	sh(f, "rm pkg/out && ln -s /etc/passwd abs");
	assert_refused(&request, EXIT_REFUSED, "'abs' leads out", NULL);
}

static void special_files_are_errors_only_if_included(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	char *include[] = { (char[]){ "*.py" }, NULL };

	file(f, "a.py", "a\n");
	sh(f, "mkfifo pipe");
	assert_refused(&request, EXIT_REFUSED, "'pipe'", NULL);
	request.include = include;
	assert_pins(&request, "a.py ");
	request.include = NULL;
	file(f, ".gitignore", "pipe\n");
	assert_pins(&request, ".gitignore a.py ");
}

static void names_must_be_utf8(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	file(f, "\xc3\xa9.py", "a\n");
	assert_pins(&request, "\xc3\xa9.py ");
	file(f, "\xe9.py", "a\n");
	assert_refused(&request, EXIT_REFUSED, "not UTF-8", NULL);
}

static void include_chooses_by_globs(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	static const struct {
		const char *patterns[3];
		const char *want;
	} rows[] = {
		{ { "train/**" }, "train/a.py train/sub/b.py " },
		{ { "train" }, "train/a.py train/sub/b.py " },
		{ { "./train/" }, "train/a.py train/sub/b.py " },
		{ { "*.py" }, "top.py " },
		{ { "**/*.py" }, "top.py train/a.py train/sub/b.py " },
		{ { "train/?.py", "data/[0-9]" }, "data/1 train/a.py " },
		{ { "**/sub", "top.py" }, "top.py train/sub/b.py " },
	};

	file(f, "train/a.py", "x");
	file(f, "train/sub/b.py", "x");
	file(f, "top.py", "x");
	file(f, "data/1", "x");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		request.include = (char *const *)(uintptr_t)rows[i].patterns;
		assert_pins(&request, rows[i].want);
	}
}

static void a_pattern_that_matches_nothing_is_named(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	char *include[] = { (char[]){ "*.py" }, (char[]){ "tran/**" }, NULL };
	char *out[] = { (char[]){ "../x" }, NULL };
	char *absolute[] = { (char[]){ "/etc/*" }, NULL };

	file(f, "a.py", "x");
	request.include = include;
	assert_refused(&request, EXIT_SPEC, "'tran/**' matches no file", "source.include");
	request.include = out;
	assert_refused(&request, EXIT_SPEC, "'../x'", "source.include");
	request.include = absolute;
	assert_refused(&request, EXIT_SPEC, "'/etc/*'", "source.include");
}

static void linked_paths_are_checked_and_not_packed(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	char *link[] = { (char[]){ "data/" }, (char[]){ "pkg/big.bin" }, NULL };
	char *missing[] = { (char[]){ "dataa" }, NULL };
	char *out[] = { (char[]){ "a/../../x" }, NULL };

	repository(f);
	file(f, "data/x", "x");
	file(f, "database", "x");
	file(f, "pkg/big.bin", "x");
	sh(f, "git add database && git commit -q -m two");
	request.link = link;
	assert_pins(&request, ".gitignore database pkg/a.py pkg/b.py train.py ");
	request.link = missing;
	assert_refused(&request, EXIT_SPEC, "dataa", "source.link");
	request.link = out;
	assert_refused(&request, EXIT_SPEC, "a/../../x", "source.link");
}

static void what_we_write_ourselves_is_no_part_of_the_source(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *inside = fs_join(request.root, "runs/state");
	AUTO(auto_free) char *beside = fs_join(f->scratch, "runs");
	AUTO(auto_free) char *alias = fs_join(f->scratch, "alias");
	AUTO(auto_free) char *behind_link = fs_join(alias, "cache");
	char *own[] = { inside, beside, behind_link, NULL };
	char *itself[] = { alias, NULL };

	file(f, "train.py", "x");
	file(f, "runs/state/journal.db", "x");
	file(f, "runs/state.txt", "x");
	file(f, "cache/entry", "x");
	assert_int_equal(symlink(request.root, alias), 0);
	request.own = own;
	assert_pins(&request, "runs/state.txt train.py ");
	request.own = itself;
	assert_refused(&request, EXIT_REFUSED, "both the source folder", NULL);
}

static void nothing_to_pack_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *missing = fs_join(f->scratch, "missing");

	assert_refused(&request, EXIT_REFUSED, "nothing to pack", "source.path");
	request.root = missing;
	assert_refused(&request, EXIT_SPEC, "missing", "source.path");
}

static void too_much_is_an_error_with_a_cure_and_fast(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	char *link[] = { (char[]){ "model.bin" }, NULL };

	file(f, "a.py", "x");
	sh(f, "truncate -s 1025M model.bin");
	assert_refused(&request, EXIT_REFUSED, "more than 1 GiB", "source.include");
	request.link = link;
	assert_pins(&request, "a.py ");
}

/* --- publishing --- */

static void a_bundle_is_published_once_and_holds_what_was_pinned(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	AUTO(auto_free) char *key = NULL, *patch = NULL, *out = fs_join(f->scratch, "b.tar.gz");
	AUTO(auto_free) char *dest = fs_join(f->scratch, "out");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	struct store_object first, second;

	repository(f);
	file(f, "run.sh", "#!/bin/sh\n");
	sh(f, "chmod +x run.sh && ln -s pkg/a.py link");
	request.allow_dirty = true;
	pin = pin_request(&request);
	must(source_publish(&request, pin, f->store, &err), err);
	key = source_bundle_key(pin->digest);
	patch = mem_format("sources/%s.patch", pin->digest);
	assert_int_equal(store_stat(f->store, key, &first, &err), 1);
	assert_int_equal(store_get(f->store, patch, 1 << 20, &text, NULL, &err), 1);
	assert_string_equal(text.text, pin->patch);
	must(source_publish(&request, pin, f->store, &err), err);
	assert_int_equal(store_stat(f->store, key, &second, &err), 1);
	assert_string_equal(first.tag, second.tag);

	assert_int_equal(store_download(f->store, key, out, &err), 1);
	must(archive_unpack(out, dest, &err), err);
	sh(f, "rm -rf .git && diff -r --no-dereference . ../out && test -x ../out/run.sh && "
	      "test -h ../out/link");
	/* The unpacked files are those that were pinned. */
	AUTO(auto_free) char *again = NULL;

	request.root = dest;
	again = digest_of(&request);
	assert_string_equal(again, pin->digest);
}

static void assert_changed(struct fixture *f, const struct source_pin *pin)
{
	struct source_request request = request_of(f);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *key = source_bundle_key(pin->digest);
	struct store_object object;

	assert_int_equal(source_publish(&request, pin, f->store, &err), -1);
	assert_non_null(strstr(err->message, "changed while packing"));
	assert_int_equal(store_stat(f->store, key, &object, &err), 0);
}

static void a_file_that_changes_after_pinning_is_detected(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	static const char *const changes[] = {
		"echo X > pkg/a.py",
		"echo longer > pkg/a.py",
		": > pkg/a.py",
		"rm pkg/a.py",
		"ln -sf b.py pkg/a.py",
		"rm -r pkg",
		"rm pkg/a.py && mkdir pkg/a.py",
		"ln -sfn pkg/b.py link",
	};

	for (size_t i = 0; i < STK_LENGTH(changes); i++) {
		sh(f, "rm -rf pkg link && mkdir pkg && echo a > pkg/a.py && echo b > pkg/b.py && "
		      "ln -s pkg/a.py link");
		source_pin_freep(&pin);
		pin = pin_request(&request);
		sh(f, changes[i]);
		assert_changed(f, pin);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_plain_folder_is_pinned_by_content),
		T(a_plain_folder_honours_its_gitignore_files),
		T(the_same_files_are_the_same_bundle_with_and_without_git),
		T(a_folder_that_the_repository_around_it_excludes_is_a_plain_one),
		T(links_are_kept_if_they_stay_inside),
		T(special_files_are_errors_only_if_included),
		T(names_must_be_utf8),
		T(include_chooses_by_globs),
		T(a_pattern_that_matches_nothing_is_named),
		T(linked_paths_are_checked_and_not_packed),
		T(what_we_write_ourselves_is_no_part_of_the_source),
		T(nothing_to_pack_is_an_error),
		T(too_much_is_an_error_with_a_cure_and_fast),
		T(a_bundle_is_published_once_and_holds_what_was_pinned),
		T(a_file_that_changes_after_pinning_is_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
