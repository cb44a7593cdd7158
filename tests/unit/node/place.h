/* A workspace in a temporary folder, orders in it, and what agents left there:
 * for tests that run the real stoker-node, in the node box and the engine box. */
#ifndef STK_TESTS_UNIT_NODE_PLACE_H
#define STK_TESTS_UNIT_NODE_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/js.h"
#include "jobs/store/order.h"
#include "jobs/store/store.h"

#define UNUSED __attribute__((unused))
#define NONCE  "n0nce"
#define PREFIX "runs/r1/train-1/"

struct place {
	char root[64];
};

static UNUSED void must(int result, struct err **err)
{
	if (result < 0) {
		AUTO(auto_free) char *text = *err ? err_format(*err) : NULL;

		fail_msg("%s", text ? text : "an error without words");
	}
}

static UNUSED int place_make(void **state)
{
	struct place *place = mem_zero(1, sizeof *place);

	snprintf(place->root, sizeof place->root, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(place->root));
	*state = place;
	return 0;
}

static UNUSED int place_remove(void **state)
{
	struct place *place = *state;
	AUTO(err_freep) struct err *err = NULL;

	must(fs_remove_tree(place->root, &err), &err);
	free(place);
	return 0;
}

static UNUSED char *place_path(const struct place *place, const char *name)
{
	return fs_join(place->root, name);
}

/* An order of run r1's training, attempt 1, for one node that runs this with
 * `sh -c`. Tests change it before they write it. */
static UNUSED json_t *order_for(const struct place *place, const char *script)
{
	json_t *order =
		json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:i, s:s, s:s, s:s, s:[s,s,s],"
			  " s:i, s:i}",
			  "v", 1, "run", "r1", "phase", "train", "attempt", 1, "job",
			  "stk-r1-train-1", "nonce", NONCE, "nodes", 1, "workspace", place->root,
			  "prefix", PREFIX, "run_prefix", "runs/r1/", "command", "sh", "-c", script,
			  "grace_ms", 500, "heartbeat_ms", 50);

	assert_non_null(order);
	return order;
}

/* Write it where its prefix says. Steals the order. */
static UNUSED void order_write(const struct place *place, json_t *order)
{
	AUTO(auto_free) char *folder = place_path(place, js_str(order, "prefix"));
	AUTO(auto_free) char *path = fs_join(folder, ORDER_FILE);
	AUTO(auto_free) char *text = js_line(order);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(folder, &err), &err);
	must(fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
	json_decref(order);
}

static UNUSED void write_file(const char *path, const char *text, mode_t mode)
{
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(folder, &err), &err);
	must(fs_write_atomic(path, text, strlen(text), mode, &err), &err);
	assert_int_equal(chmod(path, mode), 0);
}

/* The place as a workspace. */
static UNUSED struct store *open_store(const struct place *place)
{
	AUTO(err_freep) struct err *err = NULL;
	struct store *store;

	must(store_open(place->root, &store, &err), &err);
	return store;
}

/* The whole file, yours to free; NULL if there is none. */
static UNUSED char *read_file(const char *path, size_t *ret_len)
{
	struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	if (fs_read(path, SB_MAX_DEFAULT, &text, &err) < 0)
		return NULL;
	if (ret_len)
		*ret_len = text.len;
	return sb_take(&text);
}

/* report.json of a node, or NULL. A new reference. */
static UNUSED json_t *report_of(const struct place *place, const char *prefix, int node)
{
	AUTO(auto_free)
	char *path = mem_format("%s/%snode-%d/" REPORT_FILE, place->root, prefix, node);
	AUTO(err_freep) struct err *err = NULL;
	json_t *report = NULL;

	return js_load(path, REPORT_MAX, &report, &err) < 0 ? NULL : report;
}

static UNUSED void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* The number of looks at what is waited for, each 10 ms: a minute, and longer on a machine that is
 * busy with other things. */
#define LOOKS 6000

/* Wait until a node's report says this; false if it does not come. */
static UNUSED bool wait_for_state(const struct place *place, const char *prefix, int node,
				  const char *state)
{
	for (int i = 0; i < LOOKS; i++) {
		json_auto_t *report = report_of(place, prefix, node);
		const char *now = js_str(report, "state");

		if (now && strcmp(now, state) == 0)
			return true;
		pause_ms(10);
	}
	return false;
}

static UNUSED bool wait_for_file(const char *path)
{
	for (int i = 0; i < LOOKS && !fs_exists(path); i++)
		pause_ms(10);
	return fs_exists(path);
}

/* A path in the place as a process sees it in its arguments; how many living
 * processes have it there. Only our own test's processes can. */
static UNUSED int processes_with(const char *needle)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(proc))) {
		AUTO(auto_free) char *path = mem_format("/proc/%s/cmdline", entry->d_name);
		char text[4096];
		AUTO(auto_close) int fd = -1;
		ssize_t len;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof text);
		if (len > 0 && memmem(text, (size_t)len, needle, strlen(needle)))
			count++;
	}
	closedir(proc);
	return count;
}

#endif
