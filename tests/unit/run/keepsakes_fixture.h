/*
 * Folders and objects of a run in which something may have no other copy. For one file of tests
 * each.
 */
#ifndef TEST_RUN_KEEPSAKES_FIXTURE_H
#define TEST_RUN_KEEPSAKES_FIXTURE_H

#include "jobs/run/journal/keepsakes.h"

#include "jobs/store/order.h"
#include "tests/unit/checkpoint/trees.h"

static char dir[64], work[80], other[80], copies[80];

static inline int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-keepsakes-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(work, sizeof work, "%s/work", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	snprintf(copies, sizeof copies, "%s/copies", dir);
	return 0;
}

static inline int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static inline json_t *plan_of(const char *url)
{
	return json_pack("{s:{s:s, s:s*}}", "checkpoint", "kind", "hf", "url", url);
}

/* The first key of each, in their order. */
static char *keys_of(const json_t *kept)
{
	struct sb keys = SB_INIT;
	const json_t *one;
	size_t i;

	json_array_foreach (kept, i, one)
		sb_addf(&keys, "%s ",
			json_string_value(json_array_get(json_object_get(one, "keys"), 0)));
	return sb_take(&keys);
}

static inline json_t *in_folder(const json_t *plan, struct store *twin)
{
	json_t *kept = json_array();
	struct err *err = NULL;
	int result = keepsakes_in_folder(plan, work, "r", twin, kept, &err);

	assert_no_error(err);
	assert_int_equal(result, 0);
	return kept;
}

static inline void assert_in_folder(const json_t *plan, struct store *twin, const char *want)
{
	json_auto_t *kept = in_folder(plan, twin);
	AUTO(auto_free) char *keys = keys_of(kept);

	assert_string_equal(keys ? keys : "", want);
}

static inline struct store *store_at(const char *url)
{
	struct store *store = NULL;
	struct err *err = NULL;

	store_open(url, &store, &err);
	assert_no_error(err);
	return store;
}

static inline void mark(const struct ckpt_root *root, const struct ckpt *ckpt)
{
	const struct ckpt_owner owner = { "r", "n", root->attempt, NULL, 0 };
	struct err *err = NULL;

	checkpoint_mark(root, ckpt, &owner, (struct utc){ 1 }, &err);
	assert_no_error(err);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
