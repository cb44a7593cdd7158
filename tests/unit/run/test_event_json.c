/* Events of earlier versions: jobs/run/journal/event_json.h. */
#include "jobs/run/journal/event_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../quoted.h"

static void instants_and_durations_of_earlier_versions_are_read(void **state)
{
	static const char *const forms[] = {
		"{'since':1795000000123,'hang':61000}",
		"{'since':'2026-11-18T11:06:40.123Z','hang':61.0}",
		"{'since':'2026-11-18T11:06:40.123Z','hang':60.9999999}",
	};
	static const char *const wrong[] = { "'since':'yesterday'", "'since':1.5", "'since':true",
					     "'hang':'61'" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(forms) + STK_LENGTH(wrong); i++) {
		bool good = i < STK_LENGTH(forms);
		AUTO(auto_free)
		char *text = good ? mem_copy(forms[i])
				  : mem_format("{%s}", wrong[i - STK_LENGTH(forms)]);
		json_auto_t *row = quoted_json(text);
		json_auto_t *ended = NULL;
		AUTO(err_freep) struct err *err = NULL;
		struct event ev;

		js_put(row, "seq", json_integer(1));
		js_put_str(row, "at", "2026-11-21T11:36:00.123Z");
		js_put_str(row, "phase", "train");
		js_put(row, "attempt", json_integer(1));
		js_put_str(row, "class", "timeout-hang");
		ended = json_copy(row);
		js_put_str(row, "event", "attempt.claimed");
		js_put_str(ended, "event", "attempt.ended");
		if (!good) {
			bool since = json_object_get(row, "since") != NULL;

			assert_int_equal(event_decode(since ? row : ended, &ev, &err), -1);
			continue;
		}
		assert_int_equal(event_decode(row, &ev, &err), 1);
		assert_int_equal(ev.since, 1795000000123);
		assert_int_equal(event_decode(ended, &ev, &err), 1);
		assert_int_equal(ev.hang, 61000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instants_and_durations_of_earlier_versions_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
