/* Promoted versions: the chain, its pointer, what is kept of it, and its verification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/model/model_fixture.h"

static void test_a_chain(void **state)
{
	struct fixture *f = *state;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	AUTO(auto_free) char *url = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(auto_free) char *path = NULL;
	struct err *err = NULL;

	must(model_head(f->model, true, &head, &err), err);
	assert_int_equal(head.generation, 0);
	promote_some(f, 3, 0);
	assert_chain(f, 3);
	must(model_head(f->model, true, &head, &err), err);
	assert_string_equal(js_str(head.body, "run"), "run-3");
	url = model_entry_url(f->model, &head);
	path = fs_join(url, "weights.bin");
	must(fs_read(path, 100, &text, &err), err);
	assert_string_equal(text.text, "weights of run-3");
}

static void test_a_promotion_repeated_is_one(void **state)
{
	struct fixture *f = *state;
	struct promotion p = { .run = "a", .nonce = "n1", .generation = 1 };

	assert_int_equal(promote(f, &p, NULL), MODEL_PROMOTED);
	assert_int_equal(promote(f, &p, NULL), MODEL_PROMOTED);
	assert_chain(f, 1);
	p.nonce = "n2"; /* of another machine */
	assert_int_equal(promote(f, &p, NULL), MODEL_OVERTAKEN);
	assert_chain(f, 1);
}

static void test_an_entry_beyond_the_pointer_moves_it_on(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *pointer = path_of(f, MODEL_POINTER);
	AUTO(sb_release) struct sb before = SB_INIT;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	struct err *err = NULL;

	promote_some(f, 1, 0);
	must(fs_read(pointer, 10000, &before, &err), err);
	promote_some(f, 0, 0);
	{
		struct promotion p = { .run = "b", .nonce = "nb", .generation = 2 };

		head_of(f->model, 1, p.before);
		assert_int_equal(promote(f, &p, NULL), MODEL_PROMOTED);
	}
	/* Leaves the model as if its process had died before it moved the pointer. */
	must(fs_write_atomic(pointer, before.text, before.len, 0600, &err), err);
	assert_whole(f->model);
	must(model_head(f->model, true, &head, &err), err);
	assert_int_equal(head.generation, 2);
	assert_chain(f, 2);
	/* And without a pointer. */
	assert_int_equal(unlink(pointer), 0);
	model_entry_release(&head);
	must(model_head(f->model, true, &head, &err), err);
	assert_chain(f, 2);
}

struct brief {
	struct model_entry head;
	struct model_seen seen;
};

static void brief_release(struct brief *brief)
{
	model_entry_release(&brief->head);
	model_seen_release(&brief->seen);
}

static struct brief look(const struct fixture *f)
{
	struct brief brief = { 0 };
	struct err *err = NULL;

	must(model_head_seen(f->model, &brief.head, &brief.seen, &err), err);
	return brief;
}

static void test_the_pointer_tells_what_the_model_was_given(void **state)
{
	struct fixture *f = *state;
	struct promotion p = { .run = "b", .nonce = "nb", .generation = 2, .list = "{}\n" };
	AUTO(auto_free) char *pointer = path_of(f, MODEL_POINTER);
	AUTO(auto_free) char *entry = path_of(f, "entries/2.json");
	AUTO(auto_free) char *list = NULL;
	AUTO(sb_release) struct sb before = SB_INIT;
	struct err *err = NULL;

	{
		AUTO(brief_release) struct brief none = look(f);

		assert_int_equal(none.head.generation, 0);
		assert_null(none.seen.url);
		must(model_entry_fill(f->model, &none.head, &err), err);
		assert_null(none.head.body);
	}
	promote_some(f, 1, 0);
	must(fs_read(pointer, 10000, &before, &err), err);
	head_of(f->model, 1, p.before);
	{
		AUTO(brief_release) struct brief without = look(f);

		assert_null(without.seen.url);
		assert_string_equal(js_str(without.head.body, "run"), "run-1");
	}
	assert_int_equal(promote(f, &p, NULL), MODEL_PROMOTED);
	{
		AUTO(brief_release) struct brief told = look(f);

		assert_null(told.head.body);
		assert_int_equal(told.head.generation, 2);
		list = mem_format("%s/versions/b/data/%s.jsonl", f->folder, told.seen.sha256);
		assert_string_equal(told.seen.url, list);
		assert_true(fs_exists(list));
		must(model_entry_fill(f->model, &told.head, &err), err);
		assert_string_equal(js_str(told.head.body, "run"), "b");
	}
	/* An entry beyond the pointer has the last word. */
	must(fs_write_atomic(pointer, before.text, before.len, 0600, &err), err);
	{
		AUTO(brief_release) struct brief beyond = look(f);

		assert_int_equal(beyond.head.generation, 2);
		assert_string_equal(beyond.seen.url, list);
		assert_non_null(beyond.head.body);
		/* The entry is gone before it is read. */
		json_decref(beyond.head.body);
		beyond.head.body = NULL;
		assert_int_equal(unlink(entry), 0);
		assert_int_equal(model_entry_fill(f->model, &beyond.head, &err), -1);
		assert_true(err->damage);
		err_freep(&err);
	}
}

static bool is_there(const struct fixture *f, const char *key)
{
	AUTO(auto_free) char *path = path_of(f, key);

	return fs_exists(path);
}

static void test_keep(void **state)
{
	struct fixture *f = *state;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	struct err *err = NULL;

	promote_some(f, 4, 1); /* the promoted one and the one before stay whatever `keep` says */
	assert_false(is_there(f, "versions/run-1/model/1/step-7/weights.bin"));
	assert_false(is_there(f, "versions/run-2/model/1/step-7/deep/index.json"));
	assert_true(is_there(f, "versions/run-3/model/1/step-7/weights.bin"));
	assert_true(is_there(f, "versions/run-4/model/1/step-7/weights.bin"));
	assert_true(is_there(f, "entries/1.json"));
	assert_chain(f, 4);
	must(model_head(f->model, true, &head, &err), err);
	assert_true(model_entry_removes(&head, "run-1"));
	assert_false(model_entry_removes(&head, "run-3"));
	model_entry_release(&head);
	assert_int_equal(model_roll_back(f->model, 1, "test", &head, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	err_freep(&err);
}

static void test_rollback(void **state)
{
	struct fixture *f = *state;
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	struct err *err = NULL;

	assert_int_equal(model_roll_back(f->model, 0, "test", &entry, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	err_freep(&err);
	promote_some(f, 3, 0);
	assert_int_equal(model_roll_back(f->model, 0, "bad labels", &entry, &err), MODEL_PROMOTED);
	assert_int_equal(entry.generation, 4);
	assert_string_equal(js_str(entry.body, "run"), "run-2");
	assert_string_equal(js_str(entry.body, "reason"), "bad labels");
	assert_int_equal(js_int(entry.body, "of", 0), 2);
	model_entry_release(&entry);
	assert_int_equal(model_roll_back(f->model, 2, "again", &entry, &err), MODEL_SAME);
	model_entry_release(&entry);
	assert_int_equal(model_roll_back(f->model, 9, "test", &entry, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	err_freep(&err);
	assert_chain(f, 4);
}

static void flip_byte(const char *path, long at)
{
	FILE *file = fopen(path, "r+e");
	int byte;

	assert_non_null(file);
	fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
	byte = fgetc(file);
	fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
	fputc(byte ^ 1, file);
	fclose(file);
}

static void test_a_flipped_byte_is_named(void **state)
{
	static const char *const keys[] = { "current.json",
					    "entries/1.json",
					    "entries/2.json",
					    "entries/3.json",
					    "versions/run-2/model/1/step-7/weights.bin",
					    "versions/run-2/model/1/step-7/deep/index.json" };
	struct fixture *f = *state;

	promote_some(f, 3, 0);
	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		AUTO(auto_free) char *path = path_of(f, keys[i]);
		long size = (long)(i < 4 ? 60 : 1);

		for (long at = 0; at <= size; at += 5) {
			AUTO(auto_free) char *found = NULL;

			flip_byte(path, at);
			found = differences(f->model, NULL);
			assert_non_null(found);
			assert_string_equal(found, keys[i]);
			flip_byte(path, at);
		}
		assert_whole(f->model);
	}
}

static void test_the_head_that_was_kept_elsewhere(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *whole = NULL;
	AUTO(auto_free) char *cut = NULL;
	AUTO(auto_free) char *entry = path_of(f, "entries/2.json");
	AUTO(auto_free) char *pointer = path_of(f, MODEL_POINTER);
	char digest[SHA256_HEX];

	promote_some(f, 2, 0);
	head_of(f->model, 2, digest);
	whole = differences(f->model, digest);
	assert_null(whole);
	assert_int_equal(unlink(entry), 0);
	assert_int_equal(unlink(pointer), 0);
	cut = differences(f->model, digest);
	assert_string_equal(cut, "current.json entries/");
}

/* A reader meets what a person or a disk has made of the folder. */
static void assert_refused(struct fixture *f, const char *key, const char *text, const char *part)
{
	AUTO(auto_free) char *path = path_of(f, key);
	AUTO(sb_release) struct sb was = SB_INIT;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	struct err *err = NULL;

	must(fs_read(path, 100000, &was, &err), err);
	must(fs_write_atomic(path, text, strlen(text), 0600, &err), err);
	assert_int_equal(model_head(f->model, false, &head, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(err->hint);
	if (!strstr(err->message, part))
		fail_msg("'%s' lacks '%s'", err->message, part);
	err_freep(&err);
	must(fs_write_atomic(path, was.text, was.len, 0600, &err), err);
}

static void test_what_is_no_entry_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(auto_free) char *path = path_of(f, "entries/2.json");
	AUTO(auto_free) char *half = NULL;
	AUTO(auto_free) char *newer = model_seal(json_pack("{s:i}", "v", 2));
	AUTO(auto_free)
	char *other = model_seal(json_pack("{s:i, s:s, s:i, s:s}", "v", 1, "name", "other",
					   "generation", 2, "digest",
					   "0123456789012345678901234567890123456789012345678901234"
					   "567890123"));
	AUTO(auto_free)
	char *future = model_seal(json_pack("{s:i, s:s, s:i, s:s}", "v", 1, "name", "m5",
					    "generation", 7, "digest",
					    "012345678901234567890123456789012345678901234567890123"
					    "4567890123"));
	struct err *err = NULL;

	promote_some(f, 2, 0);
	must(fs_read(path, 100000, &text, &err), err);
	half = mem_copy_n(text.text, text.len / 2);
	assert_refused(f, "entries/2.json", half, "entries/2.json");
	assert_refused(f, "entries/2.json", "", "entries/2.json");
	assert_refused(f, "entries/2.json", newer, "format 2");
	assert_refused(f, "current.json", newer, "format 2");
	assert_refused(f, "current.json", "{}", "current.json");
	assert_refused(f, "current.json", other, "of the model 'other'");
	assert_refused(f, "current.json", future, "generation 7");
	assert_chain(f, 2);
}

static void test_a_source_that_changed_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *url = checkpoint(f, "a");
	const struct promotion p = { .run = "a", .nonce = "n", .generation = 1 };
	static const char *const others[][2] = { { "weights.bin", "Weights of a" },
						 { "weights.bin", "weights of a, longer" },
						 { "more.bin", "one more" } };

	for (size_t i = 0; i < STK_LENGTH(others); i++) {
		AUTO(model_entry_release) struct model_entry entry = { 0 };
		struct err *err = NULL;

		write_file(url, others[i][0], others[i][1]);
		assert_int_equal(promote_once(f->model, url, &p, &entry, &err), -1);
		assert_int_equal(err->code, EXIT_GATE);
		assert_non_null(strstr(err->message, others[i][0]));
		err_freep(&err);
	}
	assert_false(is_there(f, "entries/1.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_promotion_repeated_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_entry_beyond_the_pointer_moves_it_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_pointer_tells_what_the_model_was_given,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rollback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_flipped_byte_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_head_that_was_kept_elsewhere, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_entry_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_source_that_changed_is_refused, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
