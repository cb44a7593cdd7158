/* Reports and logs that agents have brought to a workspace: whose end is the attempt's, and
 * what is asked again once it is over. */
#include "tests/unit/node/place.h"

#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define OF "runs/r1/train-1/"

struct desk {
	struct place *place;
	struct store *store;
	struct workspace_cache *cache;
};

static int desk_make(void **state)
{
	struct desk *desk = mem_zero(1, sizeof *desk);
	AUTO(err_freep) struct err *err = NULL;

	place_make((void **)&desk->place);
	must(store_open(desk->place->root, &desk->store, &err), &err);
	desk->cache = workspace_cache_new(desk->store);
	*state = desk;
	return 0;
}

static int desk_remove(void **state)
{
	struct desk *desk = *state;

	workspace_cache_freep(&desk->cache);
	store_freep(&desk->store);
	place_remove((void **)&desk->place);
	free(desk);
	return 0;
}

static void put(struct desk *desk, const char *name, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *key = mem_format(OF "%s", name);

	must(store_put(desk->store, key, text, strlen(text), &err), &err);
}

static struct reports look(struct desk *desk, int nodes)
{
	AUTO(err_freep) struct err *err = NULL;
	struct reports reports;

	workspace_cache_forget(desk->cache, OF);
	must(reports_read(desk->cache, OF, nodes, &reports, &err), &err);
	return reports;
}

static void nobody_has_said_anything(void **state)
{
	struct reports reports = look(*state, 2);

	assert_int_equal(reports.there, 0);
	assert_int_equal(reports.node, -1);
	assert_int_equal(reports.started.ms, 0);
	assert_false(reports.running);
}

static void all_must_have_ended_well(void **state)
{
	struct desk *desk = *state;
	struct reports reports;

	put(desk, "node-0/report.json", "{\"state\":\"ended\",\"exit\":0,\"started\":500}");
	put(desk, "node-1/report.json", "{\"state\":\"running\",\"started\":400}");
	reports = look(desk, 2);
	assert_int_equal(reports.there, 2);
	assert_int_equal(reports.final, 1);
	assert_int_equal(reports.node, -1);
	assert_int_equal(reports.started.ms, 400);
	assert_true(reports.running);
	put(desk, "node-1/report.json", "{\"state\":\"ended\",\"exit\":0}");
	reports = look(desk, 2);
	assert_int_equal(reports.node, 0);
	assert_int_equal(reports.exit, 0);
}

static void the_first_to_fail_by_itself_decides(void **state)
{
	struct desk *desk = *state;
	struct reports reports;

	put(desk, "node-0/report.json",
	    "{\"state\":\"ended\",\"exit\":143,\"stopped\":\"peer\",\"ended\":100}");
	reports = look(desk, 4);
	assert_int_equal(reports.node, 0);
	assert_int_equal(reports.exit, 143);
	put(desk, "node-1/report.json", "{\"state\":\"ended\",\"exit\":1,\"ended\":300}");
	put(desk, "node-2/report.json",
	    "{\"state\":\"failed\",\"exit\":70,\"ended\":200,\"error\":{\"message\":\"no room\"}}");
	reports = look(desk, 4);
	assert_int_equal(reports.node, 2);
	assert_int_equal(reports.exit, 70);
	assert_string_equal(reports.reason, "no room");
	/* The nodes' agreement comes before their clocks. */
	put(desk, "failed.json", "{\"v\":1,\"node\":1,\"exit\":1}");
	reports = look(desk, 4);
	assert_int_equal(reports.node, 1);
	assert_int_equal(reports.exit, 1);
	assert_string_equal(reports.reason, "");
}

static void a_drain_is_no_failure(void **state)
{
	struct desk *desk = *state;
	struct reports reports;

	put(desk, "node-0/report.json", "{\"state\":\"ended\",\"exit\":3,\"stopped\":\"drain\"}");
	reports = look(desk, 1);
	assert_int_equal(reports.node, 0);
	assert_int_equal(reports.exit, 3);
	put(desk, "node-0/report.json", "{\"state\":\"not_mine\",\"exit\":86}");
	reports = look(desk, 1);
	assert_string_equal(reports.reason, "another attempt holds the claim");
}

static void all_is_well_as_far_as_it_is_told(void **state)
{
	struct desk *desk = *state;

	assert_false(look(desk, 2).well);
	put(desk, "node-1/report.json", "{\"state\":\"ended\",\"exit\":0}");
	assert_false(look(desk, 2).well);
	put(desk, "node-0/report.json", "{\"state\":\"ended\",\"exit\":0}");
	assert_true(look(desk, 2).well);
	assert_true(look(desk, 3).well);
	put(desk, "node-2/report.json", "{\"state\":\"running\"}");
	assert_true(look(desk, 3).well);
	put(desk, "node-2/report.json", "{\"state\":\"ended\",\"exit\":0,\"stopped\":\"drain\"}");
	assert_false(look(desk, 3).well);
	put(desk, "node-2/report.json", "{\"state\":\"failed\"}");
	assert_false(look(desk, 3).well);
}

static void damage_is_an_error(void **state)
{
	struct desk *desk = *state;
	AUTO(err_freep) struct err *err = NULL;
	struct reports reports;

	put(desk, "node-0/report.json", "{\"state\":");
	assert_int_equal(reports_read(desk->cache, OF, 1, &reports, &err), -1);
	assert_non_null(strstr(err->message, "an agent's report"));
}

/* Bytes of a node's log behind `*offset`. */
static void read_on(struct desk *desk, int node, uint64_t *offset, const char *want)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;

	must(workspace_cache_logs(desk->cache, OF, node, offset, 1000, &text, &err), &err);
	assert_string_equal(text.text, want);
}

static void the_logs_of_several_nodes_are_read_in_turns(void **state)
{
	struct desk *desk = *state;
	uint64_t one = 0, two = 0;

	put(desk, "node-0/log/000000000000", "one\n");
	put(desk, "node-1/log/000000000000", "two\n");
	read_on(desk, 0, &one, "one\n");
	read_on(desk, 1, &two, "two\n");
	read_on(desk, 0, &one, "");
	/* The same object grows; what the store said a moment ago counts for a while. */
	put(desk, "node-0/log/000000000000", "one\nmore\n");
	read_on(desk, 0, &one, "");
	read_on(desk, 1, &two, "");
	workspace_cache_forget(desk->cache, OF);
	read_on(desk, 0, &one, "more\n");
	read_on(desk, 1, &two, "");
	assert_int_equal(one, 9);
	assert_int_equal(two, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_has_said_anything, desk_make, desk_remove),
		cmocka_unit_test_setup_teardown(all_must_have_ended_well, desk_make, desk_remove),
		cmocka_unit_test_setup_teardown(the_first_to_fail_by_itself_decides, desk_make,
						desk_remove),
		cmocka_unit_test_setup_teardown(a_drain_is_no_failure, desk_make, desk_remove),
		cmocka_unit_test_setup_teardown(all_is_well_as_far_as_it_is_told, desk_make,
						desk_remove),
		cmocka_unit_test_setup_teardown(damage_is_an_error, desk_make, desk_remove),
		cmocka_unit_test_setup_teardown(the_logs_of_several_nodes_are_read_in_turns,
						desk_make, desk_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
