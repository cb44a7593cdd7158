/* Pinning git work trees and commits: real repositories, made by git itself. */
#include "tests/unit/source/fixture.h"

static void a_clean_work_tree_is_pinned_with_its_commit(void **state)
{
	struct fixture *f = *state;
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "noise.log", "x");
	file(f, "build/out", "x");
	pin = pin_request(&request);
	assert_string_equal(pin->kind, "git");
	assert_int_equal(strlen(pin->commit), 40);
	assert_false(pin->dirty);
	assert_null(pin->dirty_files);
	assert_null(pin->patch);
	assert_int_equal(strlen(pin->digest), 64);
	assert_files(pin, ".gitignore pkg/a.py pkg/b.py train.py ");
	assert_int_equal(file_of(pin, "train.py")->mode, 0100644);
	assert_int_equal(file_of(pin, "train.py")->size, 9);
	assert_string_equal(file_of(pin, "train.py")->sha256,
			    "cc42155088fca5730758db72b2a5bca33112a941dfaa2d43098ec422ce4ea213");
}

static void a_changed_file_is_dirty_and_refused_by_name(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "train.py", "print(2)\n");
	file(f, "pkg/new.py", "new\n");
	sh(f, "rm pkg/b.py");
	assert_refused(&request, EXIT_REFUSED,
		       "pkg/b.py (deleted), pkg/new.py (new), train.py (changed)",
		       "source.allow_dirty");
}

static void a_dirty_work_tree_may_be_allowed_and_its_patch_is_kept(void **state)
{
	struct fixture *f = *state;
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "train.py", "print(2)\n");
	file(f, "pkg/new.py", "new\n");
	file(f, "pkg/noise.log", "ignored\n");
	sh(f, "rm pkg/b.py");
	request.allow_dirty = true;
	pin = pin_request(&request);
	assert_true(pin->dirty);
	assert_files(pin, ".gitignore pkg/a.py pkg/new.py train.py ");
	assert_non_null(strstr(pin->patch, "-print(1)\n+print(2)\n"));
	assert_non_null(strstr(pin->patch, "+++ b/pkg/new.py"));
	assert_non_null(strstr(pin->patch, "--- a/pkg/b.py"));
	assert_null(strstr(pin->patch, "noise"));
	/* The change is a patch: git brings a fresh clone to what is pinned. */
	file(f, "../the.patch", pin->patch);
	sh(f, "git clone -q . ../clone && cd ../clone && git apply ../the.patch && "
	      "grep -q 2 train.py && test -e pkg/new.py && test ! -e pkg/b.py");
}

static void what_include_leaves_out_may_be_dirty(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	char *include[] = { (char[]){ "pkg/**" }, NULL };

	repository(f);
	file(f, "train.py", "print(2)\n");
	sh(f, "rm .gitignore");
	request.include = include;
	assert_pins(&request, "pkg/a.py pkg/b.py ");
	sh(f, "rm pkg/b.py");
	assert_refused(&request, EXIT_REFUSED, ": pkg/b.py (deleted)", NULL);
}

static void many_changes_are_counted(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	sh(f, "for i in 1 2 3 4 5 6 7 8; do echo > n$i; done");
	assert_refused(&request, EXIT_REFUSED, "n5 (new) and 3 more", NULL);
}

static void staged_changes_are_dirty_but_what_equals_the_commit_is_not(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "train.py", "print(2)\n");
	sh(f, "git add train.py");
	assert_refused(&request, EXIT_REFUSED, "train.py (changed)", NULL);
	file(f, "train.py", "print(1)\n"); /* still staged, but back */
	assert_pins(&request, ".gitignore pkg/a.py pkg/b.py train.py ");
	sh(f, "git reset -q && git rm -q --cached train.py");
	assert_pins(&request, ".gitignore pkg/a.py pkg/b.py train.py ");
	sh(f, "rm train.py");
	assert_refused(&request, EXIT_REFUSED, "train.py (deleted)", NULL);
	sh(f, "git reset -q --hard && echo new > new.py && git add new.py && rm new.py");
	assert_pins(&request, ".gitignore pkg/a.py pkg/b.py train.py ");
}

static void a_change_in_the_moment_of_the_commit_is_seen(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	/* The size and the time stamp are the same: only the content can tell. */
	for (int i = 0; i < 20; i++) {
		sh(f, "git reset -q --hard && echo 'print(1)' > train.py && "
		      "touch -d '2020-01-01 00:00:00' train.py && git update-index -q --refresh; "
		      "touch -r train.py .git/index");
		file(f, "train.py", "print(3)\n");
		sh(f, "touch -d '2020-01-01 00:00:00' train.py");
		assert_refused(&request, EXIT_REFUSED, "train.py (changed)", NULL);
	}
}

static void touching_a_file_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *before = NULL, *after = NULL;

	repository(f);
	before = digest_of(&request);
	sh(f, "touch -d '2001-02-03' train.py pkg/a.py && cp -a . ../moved && rm -rf .git * && "
	      "cp -r ../moved/. .");
	after = digest_of(&request);
	assert_string_equal(before, after);
}

static void a_comment_and_a_mode_change_the_digest(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *plain = NULL, *comment = NULL, *mode = NULL, *name = NULL;

	repository(f);
	plain = digest_of(&request);
	sh(f, "chmod +x train.py");
	assert_refused(&request, EXIT_REFUSED, "train.py (changed)", NULL);
	request.allow_dirty = true;
	mode = digest_of(&request);
	sh(f, "chmod -x train.py && echo '# why' >> train.py");
	comment = digest_of(&request);
	sh(f, "git checkout -q train.py && git mv train.py main.py");
	name = digest_of(&request);
	assert_string_not_equal(plain, mode);
	assert_string_not_equal(plain, comment);
	assert_string_not_equal(mode, comment);
	assert_string_not_equal(plain, name);
	sh(f, "git mv main.py train.py");
	free(name);
	name = digest_of(&request);
	assert_string_equal(plain, name);
}

static void the_executable_bit_does_not_count_where_git_ignores_it(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *before = NULL, *after = NULL;

	repository(f);
	sh(f, "git config core.fileMode false");
	before = digest_of(&request);
	sh(f, "chmod +x train.py");
	after = digest_of(&request);
	assert_string_equal(before, after);
}

static void a_subfolder_counts_alone_and_by_its_own_paths(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *sub = fs_join(f->root, "pkg");
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	repository(f);
	file(f, "train.py", "dirty outside\n");
	file(f, "pkg/x.log", "excluded from above\n");
	file(f, "pkg/build/y", "excluded from above\n");
	file(f, ".git/info/exclude", "/pkg/secret\n");
	file(f, "pkg/secret", "excluded\n");
	request.root = sub;
	pin = pin_request(&request);
	assert_files(pin, "a.py b.py ");
	assert_string_equal(pin->kind, "git");
	file(f, "pkg/a.py", "changed\n");
	file(f, "pkg/n/c.py", "new\n");
	assert_refused(&request, EXIT_REFUSED, ": a.py (changed), n/c.py (new)", NULL);
	request.allow_dirty = true;
	source_pin_freep(&pin);
	pin = pin_request(&request);
	assert_files(pin, "a.py b.py n/c.py ");
	assert_non_null(strstr(pin->patch, "+++ b/pkg/a.py"));
}

static void a_nested_gitignore_can_take_back(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "pkg/.gitignore", "!keep.log\n");
	file(f, "pkg/keep.log", "x");
	file(f, "pkg/other.log", "x");
	sh(f, "git add -A && git commit -q -m two && git rm -q --cached pkg/keep.log && "
	      "git commit -q -m three");
	request.allow_dirty = true; /* keep.log is untracked */
	assert_pins(&request, ".gitignore pkg/.gitignore pkg/a.py pkg/b.py pkg/keep.log train.py ");
}

static void tracked_files_in_ignored_folders_count(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "build/kept/x.c", "x");
	file(f, "build/other.c", "x");
	sh(f, "git add -f build/kept/x.c && git commit -q -m two");
	file(f, "build/kept/y.c", "untracked and ignored");
	assert_pins(&request, ".gitignore build/kept/x.c pkg/a.py pkg/b.py train.py ");
}

static void global_excludes_count(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "../.config/git/ignore", "*.swp\n");
	file(f, "train.py.swp", "x");
	assert_pins(&request, ".gitignore pkg/a.py pkg/b.py train.py ");
	file(f, "../mine", "*.orig\n");
	sh(f, "git config core.excludesFile ~/mine && touch x.orig");
	assert_refused(&request, EXIT_REFUSED, ": train.py.swp (new)", NULL);
}

static void a_repository_without_a_commit_is_all_new(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	file(f, "train.py", "print(1)\n");
	sh(f, "git init -q .");
	assert_refused(&request, EXIT_REFUSED, "is committed yet: train.py (new)", NULL);
	request.allow_dirty = true;
	pin = pin_request(&request);
	assert_string_equal(pin->commit, "");
	assert_string_equal(pin->kind, "git");
	assert_non_null(strstr(pin->patch, "+print(1)"));
}

static void another_revision_comes_from_its_commit(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	AUTO(auto_free) char *before = NULL;
	AUTO(auto_free) char *sub = fs_join(f->root, "pkg");
	char *include[] = { (char[]){ "*.py" }, NULL };

	repository(f);
	before = digest_of(&request);
	file(f, "train.py", "print(2)\n");
	file(f, "two.py", "x\n");
	sh(f, "git tag v1 && git add -A && git commit -q -m two && echo dirty > train.py");
	request.rev = "v1";
	pin = pin_request(&request);
	assert_string_equal(pin->digest, before);
	assert_false(pin->dirty);
	request.rev = "main";
	request.include = include;
	assert_pins(&request, "train.py two.py ");
	request.root = sub;
	assert_pins(&request, "a.py b.py ");
	request.rev = "nosuch";
	assert_refused(&request, EXIT_SPEC, "nosuch", "source.rev");
}

static void a_bundle_of_another_revision_holds_its_files(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	AUTO(auto_free) char *key = NULL, *out = fs_join(f->scratch, "b.tar.gz");
	AUTO(auto_free) char *dest = fs_join(f->scratch, "out");
	AUTO(err_freep) struct err *err = NULL;

	repository(f);
	sh(f, "git tag v1 && echo later > train.py && git commit -qam two");
	request.rev = "v1";
	pin = pin_request(&request);
	sh(f, "git tag -d v1 >/dev/null"); /* the pin names the commit */
	must(source_publish(&request, pin, f->store, &err), err);
	key = source_bundle_key(pin->digest);
	assert_int_equal(store_download(f->store, key, out, &err), 1);
	must(archive_unpack(out, dest, &err), err);
	sh(f, "test \"$(cat ../out/train.py)\" = 'print(1)'");
}

static void a_checked_out_submodule_counts_with_its_own_files(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	char *include[] = { (char[]){ "*.py" }, NULL };

	repository(f);
	sh(f, "mkdir ../lib && cd ../lib && git init -q . && echo '*.tmp' > .gitignore && "
	      "echo lib > lib.py && git add -A && git commit -q -m lib && cd ../src && "
	      "git -c protocol.file.allow=always submodule -q add ../lib ext/lib && "
	      "git commit -q -m sub && touch ext/lib/x.tmp");
	assert_pins(&request, ".gitignore .gitmodules ext/lib/.gitignore ext/lib/lib.py pkg/a.py "
			      "pkg/b.py train.py ");
	file(f, "ext/lib/lib.py", "changed\n");
	assert_refused(&request, EXIT_REFUSED, ": ext/lib/lib.py (changed)", NULL);
	request.allow_dirty = true;
	pin = pin_request(&request);
	assert_non_null(strstr(pin->patch, "+++ b/ext/lib/lib.py"));
	request.allow_dirty = false;
	sh(f, "git -C ext/lib commit -qam other");
	assert_refused(&request, EXIT_REFUSED, ": ext/lib (at another commit)", NULL);
	sh(f, "git submodule -q deinit -f ext/lib");
	assert_refused(&request, EXIT_REFUSED, "'ext/lib' is not checked out", NULL);
	request.include = include;
	assert_pins(&request, "train.py ");
}

static void a_linked_work_tree_is_a_work_tree(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *other = fs_join(f->scratch, "other");
	AUTO(source_pin_freep) struct source_pin *pin = NULL;

	repository(f);
	file(f, ".git/info/exclude", "secret\n");
	sh(f, "git worktree add -q ../other && touch ../other/secret");
	request.root = other;
	pin = pin_request(&request);
	assert_string_equal(pin->kind, "git");
	assert_files(pin, ".gitignore pkg/a.py pkg/b.py train.py ");
}

static void a_sparse_checkout_is_clean(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	sh(f, "git sparse-checkout set --no-cone '/train.py' >/dev/null");
	assert_pins(&request, "train.py ");
}

static void a_repository_of_another_user_is_refused(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	if (geteuid() != 0)
		skip();
	repository(f);
	sh(f, "chown -R 12345 .");
	assert_refused(&request, EXIT_REFUSED, "belongs to another user", "source.path");
}

static void hooks_and_filters_of_a_repository_do_not_run(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	sh(f, "echo '*.py filter=evil diff=evil' > .gitattributes && git add -A && "
	      "git commit -q -m attributes && "
	      "git config filter.evil.clean 'touch ../evil; cat' && "
	      "git config filter.evil.smudge 'touch ../evil; cat' && "
	      "git config filter.evil.process 'touch ../evil' && "
	      "git config diff.evil.textconv 'touch ../evil; cat' && "
	      "git config core.fsmonitor 'touch ../evil' && "
	      "touch train.py && echo more >> pkg/a.py");
	request.allow_dirty = true;
	assert_pins(&request, ".gitattributes .gitignore pkg/a.py pkg/b.py train.py ");
	sh(f, "test ! -e ../evil");
}

static void pinning_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);

	repository(f);
	file(f, "train.py", "print(2)\n");
	sh(f, "find . -printf '%p %T@ %C@ %i %s\\n' | sort > ../before");
	request.allow_dirty = true;
	assert_pins(&request, ".gitignore pkg/a.py pkg/b.py train.py ");
	sh(f, "find . -printf '%p %T@ %C@ %i %s\\n' | sort | cmp - ../before");
}

/* Remembering must not hide what git would show. */
static void what_is_remembered_hides_no_difference(void **state)
{
	struct fixture *f = *state;
	struct source_request request = request_of(f);
	AUTO(auto_free) char *memory = fs_join(f->scratch, "memory/digests");
	AUTO(source_pin_freep) struct source_pin *first = NULL, *again = NULL;
	AUTO(err_freep) struct err *err = NULL;

	repository(f);
	file(f, "more.py", "more\n");
	sh(f, "git add -A && git commit -qm second");
	sh(f, "sleep 2.2"); /* what has just been written is not remembered */
	request.memory = memory;
	first = pin_request(&request);
	assert_true(first->digests.len > 0);
	must(source_publish(&request, first, f->store, &err), err);
	again = pin_request(&request);
	assert_int_equal(again->digests.len, 0); /* nothing had to be read or compared */
	assert_string_equal(again->digest, first->digest);
	/* the commit changes and the index does not */
	sh(f, "git reset -q --soft HEAD~1");
	assert_refused(&request, EXIT_REFUSED, "more.py (new)", NULL);
	sh(f, "git reset -q --soft ORIG_HEAD");
	assert_pins(&request, ".gitignore more.py pkg/a.py pkg/b.py train.py ");
	/* the index changes and the commit does not */
	sh(f, "git rm -q --cached more.py && printf more.py >>.git/info/exclude");
	assert_refused(&request, EXIT_REFUSED, "more.py", NULL);
	sh(f, "git reset -q && : >.git/info/exclude");
	/* the content changes, its size and its time of writing do not */
	sh(f,
	   "touch -r more.py ../stamp && printf 'MORE\\n' >more.py && touch -r ../stamp more.py");
	assert_refused(&request, EXIT_REFUSED, "more.py (changed)", NULL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_clean_work_tree_is_pinned_with_its_commit),
		T(a_changed_file_is_dirty_and_refused_by_name),
		T(a_dirty_work_tree_may_be_allowed_and_its_patch_is_kept),
		T(what_include_leaves_out_may_be_dirty),
		T(many_changes_are_counted),
		T(staged_changes_are_dirty_but_what_equals_the_commit_is_not),
		T(a_change_in_the_moment_of_the_commit_is_seen),
		T(touching_a_file_changes_nothing),
		T(a_comment_and_a_mode_change_the_digest),
		T(the_executable_bit_does_not_count_where_git_ignores_it),
		T(a_subfolder_counts_alone_and_by_its_own_paths),
		T(a_nested_gitignore_can_take_back),
		T(tracked_files_in_ignored_folders_count),
		T(global_excludes_count),
		T(a_repository_without_a_commit_is_all_new),
		T(another_revision_comes_from_its_commit),
		T(a_bundle_of_another_revision_holds_its_files),
		T(a_checked_out_submodule_counts_with_its_own_files),
		T(a_linked_work_tree_is_a_work_tree),
		T(a_sparse_checkout_is_clean),
		T(a_repository_of_another_user_is_refused),
		T(hooks_and_filters_of_a_repository_do_not_run),
		T(what_is_remembered_hides_no_difference),
		T(pinning_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
