/*
 * A run that has begun, with a plan that notifies, without a dispatcher: the loop turns when a test
 * says so. For one file of tests each.
 */
#ifndef TEST_RUN_NOTIFY_FIXTURE_H
#define TEST_RUN_NOTIFY_FIXTURE_H

#include "jobs/run/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/notify_queue.h"

static char dir[64];
static struct driver driver;
static struct driver_options options;

/* `scheme` is that of the journal's URL, `rules` (owned from here on) are the plan's. `on_event` is
 * called with each event. */
static void begin_run(const char *scheme, json_t *rules,
		      void (*on_event)(void *arg, const struct event *ev, json_t *row))
{
	AUTO(auto_free) char *spec = NULL;
	AUTO(auto_free) char *url = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = { .kind = EV_RUN_CREATED };

	snprintf(dir, sizeof dir, "/tmp/stoker-notify-XXXXXX");
	assert_non_null(mkdtemp(dir));
	url = mem_format("%s:%s/state", scheme, dir);
	spec = mem_format("%s/spec.yaml", dir);
	options = (struct driver_options){ .on_event = on_event };
	driver = (struct driver){ .run = "r1", .options = &options };
	driver.plan = json_pack("{s:s, s:s, s:o}", "name", "n", "spec_file", spec, "notify", rules);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	assert_int_equal(loop_new(&driver.loop, &err), 0);
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, driver.plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	assert_int_equal(driver_record(&driver, &ev, &err), 0);
}

static void end(void)
{
	AUTO(err_freep) struct err *err = NULL;

	notify_release(&driver);
	loop_freep(&driver.loop);
	lease_freep(&driver.lease);
	journal_freep(&driver.journal);
	json_decref(driver.plan);
	again_forget(&driver);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

static void quit(void *arg)
{
	loop_quit(arg);
}

/* The rule whose command is this script, run at the start. */
static json_t *rule_of(const char *script)
{
	return json_pack("{s:[s], s:[s,s,s]}", "when", "started", "command", "sh", "-c", script);
}

#endif
