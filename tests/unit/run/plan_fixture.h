/*
 * Plans of specs in a folder of a test's own. For one file of tests each.
 */
#ifndef TEST_RUN_PLAN_FIXTURE_H
#define TEST_RUN_PLAN_FIXTURE_H

#include "jobs/run/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "tests/unit/quoted.h"

static char dir[64];

static inline int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-plan-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static inline void put_text(const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

/* The plan of a spec of these lines; NULL with an error. */
static inline struct plan *plan_of(const char *lines, char *const *sets, struct err **err)
{
	AUTO(auto_free) char *file = fs_join(dir, "job/job.yaml");
	AUTO(auto_free) char *state = fs_join(dir, "state");
	AUTO(auto_free)
	char *text = mem_format("version: 1\nname: n\nsource: {path: ., include: [train.py]}\n%s",
				lines);
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct spec_changes changes = { NULL, sets };
	struct plan *plan = NULL;

	put_text("job/job.yaml", text);
	put_text("job/train.py", "train()\n");
	if (spec_load(file, &changes, NULL, &spec, &problems, err) < 0) {
		for (size_t i = 0; i < problems.count; i++) {
			AUTO(auto_free) char *words = problem_format(&problems.list[i]);

			print_error("%s\n", words);
		}
		fail_msg("%s", *err ? (*err)->message : "the spec has problems");
	}
	assert_int_equal(journal_open(state, JOURNAL_WRITE, &journal, err), 0);
	return plan_make(spec, journal, &plan, err) < 0 ? NULL : plan;
}

static inline struct plan *good_plan(const char *lines)
{
	struct err *err = NULL;
	struct plan *plan = plan_of(lines, NULL, &err);

	if (!plan)
		fail_msg("%s", err->message);
	return plan;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
