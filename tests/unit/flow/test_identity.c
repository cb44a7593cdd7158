/* Names and texts that a flow makes: bounded copies, the job's name, and the nonce by which a claim
 * is known. */
#include "tests/unit/flow/story.h"

#include "jobs/flow/internal.h"

static struct flow flow;

static void begin(const char *run, int64_t seed)
{
	struct flow_policy policy = story_policy();

	snprintf(policy.run, sizeof policy.run, "%s", run);
	flow_init(&flow, &policy);
	flow.seed = seed;
}

/* Copies into `size` bytes; the byte behind them is not touched. */
static const char *copied(size_t size, const char *text)
{
	static char to[32];

	memset(to, '#', sizeof to);
	flow_copy(to, size, text);
	assert_int_equal(to[size], '#');
	return to;
}

static void a_text_is_cut_between_characters(void **state)
{
	(void)state;
	assert_string_equal(copied(5, "abcd"), "abcd");
	assert_string_equal(copied(5, "abcde"), "abcd");
	assert_string_equal(copied(5, "abcdef"), "abcd");
	/* ü is two bytes: it is whole or absent. */
	assert_string_equal(copied(5, "abüe"), "abü");
	assert_string_equal(copied(5, "abcüe"), "abc");
	/* Bytes from the middle of a character are no beginning of one. */
	assert_string_equal(copied(3, "\x80\x80\x80\x80"), "");
	assert_string_equal(copied(3, "a\x81\x81\x81"), "");
	assert_string_equal(copied(1, "abc"), "");
}

static void a_text_may_be_copied_over_itself(void **state)
{
	char text[] = "abcdef";

	(void)state;
	flow_copy(text, sizeof text, text + 1);
	assert_string_equal(text, "bcdef");
	flow_copy(text + 1, sizeof text - 1, text);
	assert_string_equal(text, "bbcdef");
}

static void a_name_that_does_not_fit_changes_nothing(void **state)
{
	char to[5] = "old";

	(void)state;
	assert_false(flow_copy_whole(to, sizeof to, "12345"));
	assert_string_equal(to, "old");
	assert_true(flow_copy_whole(to, sizeof to, "1234"));
	assert_string_equal(to, "1234");
}

static void a_flow_begins_with_nothing_known(void **state)
{
	struct flow_policy policy = story_policy();

	(void)state;
	memset(policy.run, 'r', sizeof policy.run);
	flow_init(&flow, &policy);
	assert_int_equal(strlen(flow.policy.run), FLOW_ID_MAX - 1);
	assert_int_equal(flow.cache, CACHE_NONE);
	assert_int_equal(flow.checkpoint_step, -1);
	assert_true(flow.below == INT64_MAX);
}

static void a_job_is_named_by_run_phase_and_attempt(void **state)
{
	char name[2 * FLOW_ID_MAX], run[FLOW_ID_MAX];

	(void)state;
	begin("r1", 1);
	flow_job_name(&flow, PHASE_TRAIN, 12, name);
	assert_string_equal(name, "stk-r1-train-12");

	/* The longest name that fits: "stk-", "-train-" and one digit are twelve. */
	memset(run, 'r', sizeof run);
	run[FLOW_ID_MAX - 1 - 12] = '\0';
	begin(run, 1);
	memset(name, '#', sizeof name);
	flow_job_name(&flow, PHASE_TRAIN, 1, name);
	assert_int_equal(strlen(name), FLOW_ID_MAX - 1);
	assert_int_equal(name[FLOW_ID_MAX], '#');
	assert_string_equal(name + FLOW_ID_MAX - 8, "train-1");
	/* A name that is one longer does not fit: no name is better than another job's. */
	memset(name, '#', sizeof name);
	flow_job_name(&flow, PHASE_TRAIN, 10, name);
	assert_string_equal(name, "");
	assert_int_equal(name[FLOW_ID_MAX], '#');
}

/* The first number of splitmix64 from seed 0, as its authors publish it. */
static void numbers_are_those_of_splitmix64(void **state)
{
	const uint64_t first = UINT64_C(0xe220a8397b1dcdaf);

	(void)state;
	assert_true(flow_mix(0, first, first) == first);
	assert_true(flow_mix(0, first, first + 1) != first);
}

/* 128 bits, from the lowest, in digits of five. */
static void a_nonce_is_128_bits_in_base_32(void **state)
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	char nonce[2 * FLOW_ID_MAX], expected[27] = "";
	uint64_t high, low;

	(void)state;
	for (int64_t attempt = 1; attempt <= 8; attempt++) {
		begin("r1", 42);
		high = flow_mix(42, 2 * PHASE_TRAIN, (uint64_t)attempt);
		low = flow_mix(42, 2 * PHASE_TRAIN + 1, (uint64_t)attempt);
		for (int bit = 0; bit < 130; bit += 5) {
			unsigned digit = 0;

			for (int i = bit; i < bit + 5 && i < 128; i++)
				digit |= (unsigned)((i < 64 ? low >> i : high >> (i - 64)) & 1)
					 << (i - bit);
			expected[bit / 5] = digits[digit];
		}
		memset(nonce, '#', sizeof nonce);
		flow_nonce(&flow, PHASE_TRAIN, attempt, nonce);
		assert_string_equal(nonce, expected);
		assert_int_equal(nonce[27], '#');
	}
}

/* The claim on a graph key is nobody's attempt, and the same for all drivers of a run. */
static void the_nonce_of_a_key_is_of_an_attempt_that_is_never_made(void **state)
{
	char key[FLOW_ID_MAX], none[FLOW_ID_MAX];

	(void)state;
	begin("r1", 42);
	flow_key_nonce(&flow, key);
	flow_nonce(&flow, PHASE_PRECOMPILE, 0, none);
	assert_string_equal(key, none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_cut_between_characters),
		cmocka_unit_test(a_text_may_be_copied_over_itself),
		cmocka_unit_test(a_name_that_does_not_fit_changes_nothing),
		cmocka_unit_test(a_flow_begins_with_nothing_known),
		cmocka_unit_test(a_job_is_named_by_run_phase_and_attempt),
		cmocka_unit_test(numbers_are_those_of_splitmix64),
		cmocka_unit_test(a_nonce_is_128_bits_in_base_32),
		cmocka_unit_test(the_nonce_of_a_key_is_of_an_attempt_that_is_never_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
