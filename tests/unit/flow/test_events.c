/* The tables behind events: what every row promises. */
#include "tests/unit/flow/story.h"

static void names_of_events_and_fields_are_unique(void **state)
{
	(void)state;
	for (int i = 0; i < EV_COUNT; i++) {
		assert_int_equal(event_kind_find(event_rows[i].name), i);
		assert_non_null(strchr(event_rows[i].name, '.'));
	}
	assert_int_equal(event_kind_find("no.such"), EV_COUNT);
	for (int i = 0; i < EVF_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(event_fields[i].name, event_fields[j].name);
}

static void no_field_hides_what_every_event_has(void **state)
{
	static const char *const common[] = { "v", "run", "seq", "at", "event" };

	(void)state;
	for (int i = 0; i < EVF_COUNT; i++)
		assert_int_equal(flow_name_find(common, 5, event_fields[i].name), -1);
}

static void what_is_required_is_allowed(void **state)
{
	(void)state;
	for (int i = 0; i < EV_COUNT; i++)
		assert_true((event_rows[i].required & ~event_rows[i].allowed) == 0);
}

static void every_field_belongs_to_an_event(void **state)
{
	field_set used = 0;

	(void)state;
	for (int i = 0; i < EV_COUNT; i++)
		used |= event_rows[i].allowed;
	for (int i = 0; i < EVF_COUNT; i++)
		if (!(used & FIELD_SET_OF(i)))
			fail_msg("no event has the field '%s'", event_fields[i].name);
}

static void sentences_name_only_fields_that_the_event_may_have(void **state)
{
	(void)state;
	for (int i = 0; i < EV_COUNT; i++) {
		const char *at = event_rows[i].sentence;

		while ((at = strchr(at, '{')) != NULL) {
			const char *end = strchr(at, '}');
			char name[64] = "";
			int id = 0;

			assert_non_null(end);
			snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
			while (id < EVF_COUNT && strcmp(event_fields[id].name, name) != 0)
				id++;
			if (id == EVF_COUNT || !(event_rows[i].allowed & FIELD_SET_OF(id)))
				fail_msg("'%s' says {%s}", event_rows[i].name, name);
			at = end;
		}
	}
}

static void fields_lie_apart_and_enums_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < EVF_COUNT; i++) {
		const struct event_field_row *row = &event_fields[i];

		assert_true(row->offset >= offsetof(struct event, present));
		assert_true(row->offset < sizeof(struct event));
		for (int j = 0; j < i; j++)
			assert_true(row->offset != event_fields[j].offset);
		assert_int_equal(row->type == EVT_ENUM, row->names != NULL);
		for (int n = 0; row->names && n < row->name_count; n++) {
			assert_non_null(row->names[n]);
			assert_int_equal(flow_name_find(row->names, row->name_count, row->names[n]),
					 n);
		}
	}
}

static void an_event_is_well_formed_with_what_it_needs_and_no_more(void **state)
{
	struct event ev = event_of(EV_ATTEMPT_MISSING);

	(void)state;
	assert_false(event_well_formed(&ev));
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, job, NULL);
	assert_false(event_well_formed(&ev));
	EVENT_SET_STR(&ev, job, "stk");
	assert_true(event_well_formed(&ev));
	EVENT_SET(&ev, epoch, 1);
	assert_false(event_well_formed(&ev));
}

static void rules_have_sentences(void **state)
{
	(void)state;
	for (int i = 0; i < flow_rule_count(); i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(flow_rule_name(i), flow_rule_name(j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_events_and_fields_are_unique),
		cmocka_unit_test(no_field_hides_what_every_event_has),
		cmocka_unit_test(what_is_required_is_allowed),
		cmocka_unit_test(every_field_belongs_to_an_event),
		cmocka_unit_test(sentences_name_only_fields_that_the_event_may_have),
		cmocka_unit_test(fields_lie_apart_and_enums_have_names),
		cmocka_unit_test(an_event_is_well_formed_with_what_it_needs_and_no_more),
		cmocka_unit_test(rules_have_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
