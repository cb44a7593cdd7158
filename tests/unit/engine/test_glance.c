/* A glance at replies of JSON. */
#include "jobs/engine/glance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char reply[] =
	"{ \"nextToken\": null, \"jobs\" : [ {\"jobId\":\"a\",\"container\":{\"status\":\"not "
	"mine\",\"list\":[1,{\"x\":\"]}\"}]},\"status\":\"RUNNING\"} ,\n"
	"{\"status\":\"say \\\"}\\\\\",\"jobId\":\"b\\\\\"},{\"n\":-1.5e3,\"jobId\":null},{}],"
	"\"more\":1}";

static void members_of_each_object_are_found_and_only_its_own(void **state)
{
	struct glance object, id, status;
	struct glance_list list, again;

	(void)state;
	assert_true(glance_list(reply, strlen(reply), "jobs", &list));
	again = list;
	assert_true(glance_next(&list, "jobId", &object, &id));
	assert_true(glance_next(&again, "status", &object, &status));
	assert_true(glance_is(id, "a"));
	assert_true(glance_is(status, "RUNNING"));
	assert_true(object.text[0] == '{' && object.text[object.len - 1] == '}');
	assert_true(glance_next(&list, "jobId", &object, &id));
	assert_true(glance_next(&again, "status", &object, &status));
	assert_true(glance_is(id, "b\\\\"));
	assert_true(glance_is(status, "say \\\"}\\\\"));
	assert_true(glance_next(&list, "jobId", &object, &id));
	assert_true(glance_next(&again, "status", &object, &status));
	assert_true(glance_is(id, "null"));
	assert_null(status.text);
	assert_true(glance_next(&list, "jobId", &object, &id));
	assert_null(id.text);
	assert_int_equal(object.len, 2);
	assert_false(glance_next(&list, "jobId", &object, &id));
	assert_false(glance_list(reply, strlen(reply), "job", &list));
	assert_false(glance_list(reply, strlen(reply), "more", &list));
}

static void an_object_is_the_same_byte_for_byte_or_it_is_not(void **state)
{
	static const char one[] = "{\"a\":1}", longer[] = "{\"a\":1},{\"a\":22}";
	static const char text[] = "{\"jobs\":[ {\"a\":1} , {\"a\":2}]}";
	struct glance object, id;
	struct glance_list list;

	(void)state;
	assert_true(glance_list(text, strlen(text), "jobs", &list));
	assert_false(glance_same(&list, (struct glance){ longer, strlen(longer) }));
	assert_false(glance_same(&list, (struct glance){ 0 }));
	assert_true(glance_same(&list, (struct glance){ one, strlen(one) }));
	assert_false(glance_same(&list, (struct glance){ one, strlen(one) }));
	assert_true(glance_next(&list, "a", &object, &id));
	assert_true(glance_is(id, "2"));
	assert_false(glance_same(&list, (struct glance){ one, strlen(one) }));
}

/* Of what is cut off or spoilt nothing is read beyond its end: the sanitizer says so. */
static void whatever_the_text_is_nothing_is_read_beyond_it(void **state)
{
	uint64_t chance = 1;

	(void)state;
	for (size_t len = 0; len < sizeof reply; len++)
		for (int round = 0; round < 20; round++) {
			char *text = malloc(len + 1); /* 1: none may be empty */
			struct glance object, id;
			struct glance_list list;

			assert_non_null(text);
			memcpy(text, reply, len);
			text = realloc(text, len ? len : 1);
			assert_non_null(text);
			for (int i = 0; i < round && len > 0; i++) {
				static const char spoilt[] = "\"\\{}[],: a";

				chance = chance * UINT64_C(6364136223846793005) + 1;
				text[(chance >> 33) % len] = spoilt[(chance >> 20) % 10];
			}
			if (glance_list(text, len, "jobs", &list))
				while (glance_next(&list, "jobId", &object, &id)) {
					assert_true(object.text >= text &&
						    object.text + object.len <= text + len);
					(void)glance_same(&list, object);
				}
			free(text);
		}
}

static void nesting_is_bounded(void **state)
{
	char text[400] = "{\"jobs\":[{\"a\":";
	struct glance object, id;
	struct glance_list list;

	(void)state;
	memset(text + strlen(text), '[', 200);
	assert_false(glance_list(text, strlen(text), "jobs", &list) &&
		     glance_next(&list, "jobId", &object, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_of_each_object_are_found_and_only_its_own),
		cmocka_unit_test(an_object_is_the_same_byte_for_byte_or_it_is_not),
		cmocka_unit_test(whatever_the_text_is_nothing_is_read_beyond_it),
		cmocka_unit_test(nesting_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
