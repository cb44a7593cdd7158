/*
 * A journal in SQLite in a folder of its own, made for each test and removed after it. Included by
 * one test of a program.
 */
#ifndef TEST_RUN_JOURNAL_FIXTURE_H
#define TEST_RUN_JOURNAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/journal.h"

static char dir[64];
static struct journal *journal;

static int set_up(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-run-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return journal_open(dir, JOURNAL_WRITE, &journal, &err);
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	journal_freep(&journal);
	return fs_remove_tree(dir, &err);
}

#endif
