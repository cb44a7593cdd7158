/* Logs of any bytes: whatever a program prints, it is judged, and in time. */
#include "tests/unit/flow/classify.h"

static void any_bytes_are_judged_without_harm(void **state)
{
	static char bytes[4096];
	static struct failure_line lines[64];
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct failure_log log = { .lines = lines };
		struct failure_evidence e = { .exit_known = true, .logs = &log, .log_count = 1 };
		struct failure_classification v;
		size_t at = 0;

		for (size_t i = 0; i < sizeof bytes; i++) {
			static const char likely[] =
				"Traceback (most recent call last)\n  :'*^[]\r";

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[i] = x & 64 ? (char)x : likely[(x >> 8) % (sizeof likely - 1)];
		}
		if (round % 2)
			memcpy(bytes, "Traceback (most recent call last)", 33);
		while (log.count < 64) {
			size_t len = (size_t)(x % 64);

			lines[log.count++] = (struct failure_line){ bytes + at, len };
			at += len;
			x = x * 6364136223846793005u + 1442695040888963407u;
		}
		e.exit = round % 160;
		failure_classify(&e, &v);
		assert_true(strlen(v.hint) < sizeof v.hint);
		assert_int_equal(v.class == CLASS_NONE, e.exit == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bytes_are_judged_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
