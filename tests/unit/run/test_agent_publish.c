/* The agent's folder in a workspace, as files and as one archive, and the trial of a state that
 * lies elsewhere: see jobs/run/plan/agent.h and preflight.h. */
#include "jobs/run/plan/agent.h"

#include <sys/stat.h>

#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/plan/preflight.h"
#include "tests/unit/checkpoint/trees.h"
#include "tests/unit/run/faulty_store.h"

static char dir[64], agent[80], work[80];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-agent-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(agent, sizeof agent, "%s/agent", dir);
	snprintf(work, sizeof work, "%s/work", dir);
	put_text(agent, "stoker-node", "program");
	put_text(agent, "start", "#!/bin/sh");
	put_text(agent, "lib/loader", "loader");
	put_text(agent, "lib/libx.so", "library");
	put_text(agent, ".hidden", "not a part of it");
	setenv("STOKER_AGENT", agent, 1);
	return 0;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	unsetenv("STOKER_AGENT");
	return fs_remove_tree(dir, &err);
}

static struct store *store_at(const char *url)
{
	struct store *store = NULL;
	struct err *err = NULL;

	store_open(url, &store, &err);
	assert_no_error(err);
	return store;
}

static const char *const files[] = { "stoker-node", "start", "lib/loader", "lib/libx.so" };

static char *publish(struct store *store)
{
	struct err *err = NULL;
	char *prefix = NULL;

	assert_int_equal(agent_publish(store, &prefix, &err), 0);
	assert_no_error(err);
	assert_memory_equal(prefix, "agents/", 7);
	assert_string_equal(prefix + 7 + strspn(prefix + 7, "0123456789abcdef"), "/");
	return prefix;
}

static void what_the_workspace_lacks_of_the_agent_is_sent(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	AUTO(auto_free) char *prefix = publish(store);
	AUTO(auto_free) char *again = NULL;
	AUTO(auto_free) char *changed = NULL;
	AUTO(auto_free) char *root = fs_join(work, prefix);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		AUTO(auto_free) char *path = fs_join(root, files[i]);
		AUTO(sb_release) struct sb want = get_bytes(agent, files[i]);
		AUTO(sb_release) struct sb got = get_bytes(root, files[i]);
		struct stat st;

		assert_string_equal(got.text, want.text);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_int_equal(chmod(path, 0600), 0);
	}
	{
		AUTO(auto_free) char *hidden = fs_join(root, ".hidden");

		assert_false(fs_exists(hidden));
	}
	/* what is there is not sent again, but can be run */
	drop(root, "start");
	put_text(root, "lib/loader", "as it was sent");
	again = publish(store);
	assert_string_equal(again, prefix);
	{
		AUTO(sb_release) struct sb got = get_bytes(root, "lib/loader");
		AUTO(auto_free) char *path = fs_join(root, "lib/libx.so");
		struct stat st;

		assert_string_equal(got.text, "as it was sent");
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
	}
	{
		AUTO(sb_release) struct sb got = get_bytes(root, "start");

		assert_string_equal(got.text, "#!/bin/sh");
	}
	/* another agent has another place */
	put_text(agent, "lib/loader", "another");
	changed = publish(store);
	assert_string_not_equal(changed, prefix);
}

static void assert_unpublished(int result, struct err **err, const char *words)
{
	assert_int_equal(result, -1);
	assert_contains((*err)->message, "cannot publish the node agent: ");
	assert_contains((*err)->message, words);
	err_freep(err);
}

static void an_agent_that_cannot_be_sent_is_an_error(void **state)
{
	struct faulty_store *store = faulty_new(work);
	AUTO(err_freep) struct err *err = NULL;
	char *prefix = NULL, *key = NULL;

	(void)state;
	faulty_lose(store, 0, 1);
	assert_unpublished(agent_publish(&store->base, &prefix, &err), &err, "the network is gone");
	faulty_lose(store, 0, 1);
	assert_int_equal(agent_publish_archive(&store->base, "agents/0/", &key, &err), -1);
	assert_contains(err->message, "the network is gone");
	err_freep(&err);
	faulty_free(&store->base);
	{
		AUTO(store_freep) struct store *disk = store_at(work);

		put_text(work, "agents", "in the way");
		assert_int_equal(agent_publish(disk, &prefix, &err), -1);
		assert_contains(err->message, "cannot ");
		err_freep(&err);
		setenv("STOKER_AGENT", "/proc/none", 1);
		assert_int_equal(agent_publish(disk, &prefix, &err), -1);
		err_freep(&err);
		assert_unpublished(agent_publish_archive(disk, "other/0/", &key, &err), &err,
				   "/proc/none");
	}
	assert_null(prefix);
	assert_null(key);
}

/* The listing of tar: modes, sizes and names. */
static char *listing(const char *key)
{
	AUTO(auto_free)
	char *command = mem_format("tar --numeric-owner -tvzf '%s/%s' | awk '{print $1, $3, $NF}'",
				   work, key);
	FILE *tar = popen(command, "r");
	struct sb lines = SB_INIT;
	char line[256];

	assert_non_null(tar);
	while (fgets(line, sizeof line, tar))
		sb_adds(&lines, line);
	assert_int_equal(pclose(tar), 0);
	return sb_take(&lines);
}

static void an_archive_is_the_same_everywhere_and_made_once(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	AUTO(auto_free) char *prefix = publish(store);
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *again = NULL;
	AUTO(auto_free) char *anew = NULL;
	AUTO(auto_free) char *lines = NULL;
	AUTO(auto_free) char *start = mem_format("%.*s.", (int)strlen(prefix) - 1, prefix);
	AUTO(err_freep) struct err *err = NULL;
	char hex[SHA256_HEX];

	(void)state;
	put_text(work, "agents/0.short.tar.gz", "no archive of it");
	assert_int_equal(agent_publish_archive(store, prefix, &key, &err), 0);
	assert_memory_equal(key, start, strlen(start));
	assert_int_equal(strspn(key + strlen(start), "0123456789abcdef"), 64);
	assert_string_equal(key + strlen(start) + 64, ".tar.gz");
	{
		AUTO(sb_release) struct sb bytes = get_bytes(work, key);

		hash_sha256_hex(bytes.text, bytes.len, hex);
	}
	assert_memory_equal(key + strlen(start), hex, 64);
	lines = listing(key);
	assert_contains(lines, "-rw-r--r-- 7 lib/libx.so\n");
	assert_contains(lines, "-rwxr-xr-x 6 lib/loader\n");
	assert_contains(lines, "-rwxr-xr-x 9 start\n");
	assert_contains(lines, "-rwxr-xr-x 7 stoker-node\n");
	assert_null(strstr(lines, ".hidden"));
	/* one that is there is taken as it is, whatever the agent is now */
	put_text(agent, "start", "another");
	assert_int_equal(agent_publish_archive(store, prefix, &again, &err), 0);
	assert_string_equal(again, key);
	put_text(agent, "start", "#!/bin/sh");
	drop(work, key);
	assert_int_equal(agent_publish_archive(store, prefix, &anew, &err), 0);
	assert_string_equal(anew, key);
}

/* ---- the state ---- */

/* If the state is no folder, its conditions are tried; once for each bucket. */
static void a_state_elsewhere_is_tried_once(void **state)
{
	AUTO(auto_free) char *url = mem_format("dir:%s/state", dir);
	AUTO(auto_free) char *folder = fs_join(dir, "state");
	struct preflight probe = { 0 };
	struct journal *journal = NULL;
	struct faulty_store *store;
	struct dir_journal *objects;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &journal, &err), 0);
	assert_int_equal(preflight_state(&probe, journal, &err), 0);
	assert_int_equal(probe.count, 0); /* a folder keeps them */
	objects = journal->store;
	store_freep(&objects->store);
	store = faulty_new(folder);
	objects->store = &store->base;
	free(store->base.url);
	store->base.url = mem_copy("s3://bucket/state");
	store->code = EXIT_UNREACHABLE;
	faulty_lose(store, 0, 1);
	assert_int_equal(preflight_state(&probe, journal, &err), -1);
	assert_contains(err->message, "cannot try the conditions of writes on the state '");
	assert_int_equal(probe.count, 0);
	err_freep(&err);
	store->writes = 0;
	assert_int_equal(preflight_state(&probe, journal, &err), 0);
	assert_int_equal(probe.count, 1);
	assert_int_equal(store->writes, 4); /* each condition where it holds, and where not */
	assert_int_equal(preflight_state(&probe, journal, &err), 0);
	assert_int_equal(store->writes, 4);
	assert_int_equal(probe.count, 1);
	preflight_release(&probe);
	assert_int_equal(probe.count, 0);
	/* there is room for no more than a run has places */
	probe.count = PREFLIGHT_PLACES;
	assert_int_equal(preflight_state(&probe, journal, &err), 0);
	assert_int_equal(store->writes, 4);
	probe.count = 0;
	journal_freep(&journal);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(what_the_workspace_lacks_of_the_agent_is_sent),
		OF(an_agent_that_cannot_be_sent_is_an_error),
		OF(an_archive_is_the_same_everywhere_and_made_once),
		OF(a_state_elsewhere_is_tried_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
