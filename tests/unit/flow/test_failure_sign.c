/*
 * Signatures. Two attempts that failed in the same way must have the same one, or the run is not
 * ended when it fails for the same cause again and again; two causes must have two, or a run is
 * ended that another attempt would have cured. And they are kept in journals: another version of
 * stoker must find the same ones.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/failure_internal.h"

static const char *sign(const char *evidence, size_t decisive)
{
	static struct failure_classification c;

	c = (struct failure_classification){
		.class = CLASS_UNKNOWN, .rule = "rule", .decisive_bytes = decisive, .signature = "x"
	};
	snprintf(c.evidence, sizeof c.evidence, "%s", evidence);
	failure_sign(&c);
	return c.signature;
}

/* FNV-1a, 64 bits, of the text as it is. */
static const char *sum_of(const char *text)
{
	static char signature[FAILURE_SIGNATURE_SIZE];
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	snprintf(signature, sizeof signature, "unknown/rule/%016llx", (unsigned long long)sum);
	return signature;
}

/* Vectors of FNV-1a, 64 bits, as its authors publish them (draft-eastlake-fnv, appendix C). */
static void the_text_is_hashed_by_fnv_1a(void **state)
{
	(void)state;
	assert_string_equal(sign("", 0), "unknown/rule/cbf29ce484222325");
	assert_string_equal(sign("a", 1), "unknown/rule/af63dc4c8601ec8c");
	assert_string_equal(sign("foobar", 6), "unknown/rule/85944171f73967e8");
}

/* A text and what is left of it: '#' stands for what differs from one attempt to the next. */
static const char *const normal[][2] = {
	/* numbers */
	{ "12", "#" },
	{ "x1", "x#" },
	{ "rank 3 of 64", "rank # of #" },
	{ "shape 17x4", "shape #x#" },
	{ "10:02:03.5", "#:#:#.#" },
	{ "v2 1e5", "v# #e#" },
	/* addresses, digests and processes: six hex digits or more, one of them decimal */
	{ "ab12cd", "#" },
	{ "AB12CD", "#" },
	{ "FA09AF", "#" },
	{ "12345a", "#" },
	{ "a2345f", "#" },
	{ "aaaaa9", "#" },
	{ "at 7f00a1b2c3d4, x", "at #, x" },
	{ "0x7f00a1", "#" },
	{ "0x1abc", "#" },
	{ "x=0x9fffff.", "x=#." },
	{ "ab12c", "ab#c" },
	{ "abcdef", "abcdef" },
	{ "12345g", "#g" },
	{ "12345G", "#G" },
	{ "12345z", "#z" },
	{ "12345Z", "#Z" },
	{ "ab12cdg", "ab#cdg" },
	{ "xab12cd", "xab#cd" },
	{ "Zab12cd", "Zab#cd" },
	{ "g0ab12cd", "g#ab#cd" },
	{ "0x7f", "#x#f" },
	{ "0x", "#x" },
	{ "1x345678", "#x#" },
	{ "0y345678", "#y#" },
	{ "a0x12345", "a#x#" },
	{ "_ab12cd_", "_#_" },
	{ "[ab12cd]", "[#]" },
	{ "`ab12cd{", "`#{" },
	{ "@ab12cd@", "@#@" },
	{ "1234 5", "# #" },
	{ "1234:5", "#:#" },
	{ "1234@5", "#@#" },
	{ "1234`5", "#`#" },
	/* the folders of a path */
	{ "'/run/a1/ckpt/step.pt'", "'#step.pt'" },
	{ "/step.pt", "#step.pt" },
	{ "a//b", "a//b" },
	{ "a//b/c", "a//b/c" },
	{ "/", "#" },
	{ "/a/", "#" },
	{ "//a/b", "#b" },
	{ "x://h/b", "x:#b" },
	{ "/a.b/c_d/e-f/g+h/x", "#x" },
	{ "/A/Z/z/x", "#x" },
	{ "/a b/c", "#a b/c" },
	{ "/a,b/c", "#a,b/c" },
	{ "a/b/c", "a/b/c" },
	{ "./b/c", "./b/c" },
	{ "_/b/c", "_/b/c" },
	{ "-/b/c", "-/b/c" },
	{ "+/b/c", "+/b/c" },
	{ "Z/b/c", "Z/b/c" },
	{ "A/b/c", "A/b/c" },
	{ "z/b/c", "z/b/c" },
	{ "@/b/c", "@#c" },
	{ "[/b/c", "[#c" },
	{ "`/b/c", "`#c" },
	{ "{/b/c", "{#c" },
	{ "a:/b/c", "a:#c" },
};

static void what_differs_by_itself_does_not_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof normal / sizeof normal[0]; i++) {
		const char *text = normal[i][0], *left = normal[i][1];

		if (strcmp(sign(text, strlen(text)), sum_of(left)) != 0)
			fail_msg("'%s' does not count as '%s'", text, left);
	}
}

/* A status is the cause itself, and not how far it had come. */
static void a_number_that_says_what_failed_counts(void **state)
{
	static const char *const words[] = { "[Errno ", "errno ",      "exit status ", "signal ",
					     "status=", "HTTP Error ", "status code ", "NCC_" };
	char text[64], left[64];

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		snprintf(text, sizeof text, "x %s10 y 7", words[i]);
		snprintf(left, sizeof left, "x %s10 y #", words[i]);
		assert_string_equal(sign(text, strlen(text)), sum_of(left));
		/* behind another word it is a number like others */
		snprintf(text, sizeof text, "%s: 10", words[i]);
		snprintf(left, sizeof left, "%s: #", words[i]);
		assert_string_equal(sign(text, strlen(text)), sum_of(left));
	}
}

/* The bytes behind the decisive ones are chance: the last lines of a log. */
static void only_the_decisive_bytes_count(void **state)
{
	static const struct {
		const char *text, *left;
		size_t decisive;
	} rows[] = {
		{ "cause\nstep 12 lost", "cause", 5 },
		{ "cause", "cause", 500 },
		{ "ab12cd", "ab#c", 5 },
		{ "ab12cdg", "#", 6 },
		{ "/a/b/c", "#b", 4 },
		{ "Errno 17", "Errno 1", 7 },
		{ "a12", "a#", 2 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(sign(rows[i].text, rows[i].decisive), sum_of(rows[i].left));
}

static void what_has_no_cause_of_its_own_has_no_signature(void **state)
{
	struct failure_classification c = { .class = CLASS_UNKNOWN, .evidence = "x" };
	static const char *const killed[] = { "sigkill", "killed" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		c.rule = killed[i];
		snprintf(c.signature, sizeof c.signature, "before");
		failure_sign(&c);
		assert_string_equal(c.signature, "");
	}
	c.rule = "success";
	c.class = CLASS_NONE;
	failure_sign(&c);
	assert_string_equal(c.signature, "");
	/* every class has a name in front, and a long rule is cut */
	c.rule = "a-rule-of-more-than-24-letters";
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		char begin[FAILURE_SIGNATURE_SIZE];

		c.class = (enum failure_class) class;
		failure_sign(&c);
		snprintf(begin, sizeof begin, "%s/a-rule-of-more-than-24-l/",
			 flow_class_names[class]);
		assert_memory_equal(c.signature, begin, strlen(begin));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_hashed_by_fnv_1a),
		cmocka_unit_test(what_differs_by_itself_does_not_count),
		cmocka_unit_test(a_number_that_says_what_failed_counts),
		cmocka_unit_test(only_the_decisive_bytes_count),
		cmocka_unit_test(what_has_no_cause_of_its_own_has_no_signature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
