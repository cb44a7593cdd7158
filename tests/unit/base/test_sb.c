/* The promises of sb.h and of the allocator in auto.h. */
#include "jobs/base/sb.h"

#include "tests/unit/base/unit.h"

static void an_empty_builder_has_a_text(void **state)
{
	struct sb sb = SB_INIT;
	char *text;

	(void)state;
	assert_string_equal(sb.text, "");
	sb_add(&sb, "x", 0);
	sb_drop(&sb, 3);
	sb_clear(&sb);
	assert_string_equal(sb.text, "");
	text = sb_take(&sb);
	assert_string_equal(text, "");
	free(text);
	sb_release(&sb);
	sb_release(&sb);
}

static void pieces_follow_each_other(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT;

	(void)state;
	sb_adds(&sb, "ab");
	sb_addc(&sb, 'c');
	sb_addf(&sb, "-%d-%s", 7, "x");
	assert_string_equal(sb.text, "abc-7-x");
	assert_int_equal(sb.len, 7);
	sb_drop(&sb, 3);
	assert_string_equal(sb.text, "-7-x");
	sb_drop(&sb, 100);
	assert_int_equal(sb.len, 0);
	assert_string_equal(sb.text, "");
}

static void zero_bytes_are_kept(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT;

	(void)state;
	sb_add(&sb, "a\0b", 3);
	assert_int_equal(sb.len, 3);
	assert_memory_equal(sb.text, "a\0b", 4);
}

static void long_formats_are_whole(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT;

	(void)state;
	for (int width = 250; width < 262; width++) {
		sb_clear(&sb);
		sb_addf(&sb, "%*d|", width, 1);
		assert_int_equal(sb.len, width + 1);
		assert_string_equal(sb.text + width - 1, "1|");
	}
}

static void nothing_passes_the_maximum(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT_MAX(5);

	(void)state;
	sb_adds(&sb, "abc");
	assert_false(sb.truncated);
	sb_adds(&sb, "def");
	assert_string_equal(sb.text, "abcde");
	assert_true(sb.truncated);
	sb_addf(&sb, "%s", "more");
	sb_addc(&sb, '!');
	assert_string_equal(sb.text, "abcde");
	sb_drop(&sb, 5);
	assert_true(sb.truncated);
	sb_clear(&sb);
	assert_false(sb.truncated);
	sb_adds(&sb, "12345");
	assert_string_equal(sb.text, "12345");
	assert_false(sb.truncated);
}

static void taking_leaves_an_empty_builder_with_the_same_maximum(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT_MAX(4);
	AUTO(auto_free) char *text = NULL;

	(void)state;
	sb_adds(&sb, "abcdef");
	text = sb_take(&sb);
	assert_string_equal(text, "abcd");
	assert_string_equal(sb.text, "");
	sb_adds(&sb, "ghijkl");
	assert_string_equal(sb.text, "ghij");
}

static void growing_over_many_sizes_keeps_the_content(void **state)
{
	AUTO(sb_release) struct sb sb = SB_INIT;

	(void)state;
	for (int i = 0; i < 100000; i++)
		sb_addc(&sb, (char)('a' + i % 26));
	assert_int_equal(sb.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(sb.text[i], 'a' + i % 26);
}

static void memory_helpers_copy_and_format(void **state)
{
	AUTO(auto_free) char *copy = mem_copy("abc");
	AUTO(auto_free) char *part = mem_copy_n("abcdef", 2);
	AUTO(auto_free) char *none = mem_copy_n("", 0);
	AUTO(auto_free) char *text = mem_format("%s-%d", "x", 5);
	AUTO(auto_free) int *zeros = mem_zero(100, sizeof(int));
	char *owner = TAKE(copy);

	(void)state;
	assert_null(copy);
	assert_string_equal(owner, "abc");
	free(owner);
	assert_string_equal(part, "ab");
	assert_string_equal(none, "");
	assert_string_equal(text, "x-5");
	for (int i = 0; i < 100; i++)
		assert_int_equal(zeros[i], 0);
}

static int grow_too_far(const char *unused)
{
	(void)unused;
	close(2); /* the sanitizer's report is expected */
	free(mem_grow(NULL, SIZE_MAX / 2, 3));
	return 0;
}

static void a_size_that_overflows_ends_the_process(void **state)
{
	(void)state;
	assert_int_not_equal(in_child(grow_too_far, NULL), 0);
}

static void an_array_of_strings_is_freed_whole(void **state)
{
	char **strings = mem_zero(3, sizeof *strings);
	char **none = NULL;

	(void)state;
	strings[0] = mem_copy("a");
	strings[1] = mem_copy("b");
	auto_strv(&strings);
	assert_null(strings);
	auto_strv(&none);
}

static size_t wiped;

/* Replaces libc's function: freed memory cannot be looked at afterwards. */
void explicit_bzero(void *memory, size_t len)
{
	memset(memory, 0, len);
	wiped += len;
}

static void a_secret_is_wiped_wherever_it_was(void **state)
{
	struct sb secret = SB_INIT_SECRET;
	size_t given_back = 0, cap = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		sb_adds(&secret, "token");
		if (secret.cap != cap)
			given_back += cap;
		cap = secret.cap;
		assert_int_equal(wiped, given_back);
	}
	assert_int_equal(secret.len, 5000);
	assert_memory_equal(secret.text + 4995, "token", 6);
	assert_true(given_back > 0);
	sb_release(&secret);
	assert_int_equal(wiped, given_back + cap);
	assert_true(secret.secret);
	sb_adds(&secret, "next");
	free(sb_take(&secret)); /* it was the taker's to wipe */
	assert_true(secret.secret);
	assert_int_equal(wiped, given_back + cap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_builder_has_a_text),
		cmocka_unit_test(pieces_follow_each_other),
		cmocka_unit_test(zero_bytes_are_kept),
		cmocka_unit_test(long_formats_are_whole),
		cmocka_unit_test(nothing_passes_the_maximum),
		cmocka_unit_test(taking_leaves_an_empty_builder_with_the_same_maximum),
		cmocka_unit_test(growing_over_many_sizes_keeps_the_content),
		cmocka_unit_test(a_secret_is_wiped_wherever_it_was),
		cmocka_unit_test(memory_helpers_copy_and_format),
		cmocka_unit_test(a_size_that_overflows_ends_the_process),
		cmocka_unit_test(an_array_of_strings_is_freed_whole),
	};

	return cmocka_run_group_tests_name("base/sb", tests, NULL, NULL);
}
