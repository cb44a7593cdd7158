/* What the machine says about a bad end: memory that the kernel took back by force
 * and disks that are full, from real ones where this machine lets us make them. */
#include "tests/unit/node/agent_run.h"

#include <sys/mount.h>

#include "jobs/node/host_evidence.h"

#define V1_MEMORY "/sys/fs/cgroup/memory"
#define LIMIT     "209715200" /* bytes; an agent under sanitizers needs its share */

/* ---- reading what the kernel writes ---- */

static int64_t kills_of(const struct place *place, const char *cgroup, const char *mounts)
{
	AUTO(auto_free) char *cgroup_file = place_path(place, "cgroup");
	AUTO(auto_free) char *mounts_file = place_path(place, "mountinfo");

	write_file(cgroup_file, cgroup, 0600);
	write_file(mounts_file, mounts, 0600);
	return host_evidence_oom_kills_in(cgroup_file, mounts_file);
}

static void the_counter_of_our_own_group_is_found_in_either_hierarchy(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *v2 = place_path(place, "two/job/memory.events");
	AUTO(auto_free) char *v1 = place_path(place, "one/job/memory.oom_control");
	AUTO(auto_free)
	char *mount_v2 = mem_format("25 1 0:22 / %s/two rw,nosuid shared:4 - cgroup2 cgroup2 "
				    "rw,nsdelegate\n",
				    place->root);
	AUTO(auto_free)
	char *mount_v1 = mem_format("30 1 0:30 /docker/x %s/other rw - cgroup cgroup rw,cpu\n"
				    "31 1 0:31 /docker/x %s/one rw - cgroup cgroup "
				    "rw,cpuset,memory\n",
				    place->root, place->root);

	write_file(v2, "low 0\nhigh 3\nmax 9\noom 2\noom_kill 7\noom_group_kill 0\n", 0600);
	write_file(v1, "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", 0600);
	assert_int_equal(kills_of(place, "0::/job\n", mount_v2), 7);
	/* A container sees its part of the hierarchy mounted as if it were the whole. */
	assert_int_equal(
		kills_of(place, "4:cpuset,memory:/docker/x/job\n1:cpu:/\n0::/\n", mount_v1), 5);
	assert_int_equal(kills_of(place, "1:cpu:/job\n", mount_v1), -1);
	assert_int_equal(kills_of(place, "0::/gone\n", mount_v2), -1);
	assert_int_equal(kills_of(place, "garbage", "1 2 3"), -1);
}

static void the_mount_point_is_the_nearest_above_and_the_topmost_there(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "mountinfo");
	static const char *const cases[][2] = {
		{ "/data/x", "/data" },
		{ "/database/x", "/" },
		{ "/my disk/x", "/my disk" },
		{ "/data/deep/x", "/data/deep" },
		{ "/", "/" },
	};

	write_file(file,
		   "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /data rw master:1 - xfs /dev/b rw\n"
		   "3 1 8:3 / /my\\040disk rw - xfs /dev/c rw\n4 2 8:4 / /data/deep rw - xfs d rw\n"
		   "a line that is none\n",
		   0600);
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(auto_free) char *mount = host_evidence_mount_of(cases[i][0], file);

		assert_string_equal(mount, cases[i][1]);
	}
	assert_null(host_evidence_mount_of("/data", "/nowhere/mountinfo"));
}

/* ---- real memory ---- */

static bool write_text(const char *path, const char *text)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Our own group of memory before we move; yours to free. */
static char *own_group_file(void)
{
	AUTO(auto_fclose) FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096];

	while (file && fgets(line, sizeof line, file)) {
		char *at = strstr(line, ":memory:");

		line[strcspn(line, "\n")] = '\0';
		if (at)
			return mem_format(V1_MEMORY "%s/cgroup.procs", at + 8);
	}
	return NULL;
}

/* Run the order in a group of little memory; false if we may not make one. */
static bool run_in_little_memory(const struct place *place, json_t *order, int *ret_exit)
{
	AUTO(auto_free) char *group = mem_format(V1_MEMORY "/stk-test-%d", getpid());
	AUTO(auto_free) char *limit = fs_join(group, "memory.limit_in_bytes");
	AUTO(auto_free) char *procs = fs_join(group, "cgroup.procs");
	AUTO(auto_free) char *home = own_group_file();
	AUTO(auto_free) char *self = mem_format("%d", getpid());
	pid_t pid;

	if (!home || mkdir(group, 0700) < 0 || !write_text(limit, LIMIT) ||
	    !write_text(procs, self)) {
		rmdir(group);
		json_decref(order);
		return false;
	}
	order_write(place, order);
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(write_text(home, self));
	*ret_exit = end_of(pid);
	for (int i = 0; i < 500 && rmdir(group) < 0; i++)
		pause_ms(10);
	return true;
}

static void what_the_kernel_killed_for_memory_is_reported(void **state)
{
	json_auto_t *body = NULL;
	int end;

	/* tail keeps the last line, and this one has no end. */
	if (!run_in_little_memory(*state, order_for(*state, "tail /dev/zero; exit 3"), &end))
		skip();
	body = report(*state);
	assert_int_equal(end, 3);
	assert_true(json_is_true(json_object_get(body, "oom")));
	assert_null(json_object_get(body, "mount"));
}

static void a_kill_by_someone_else_is_no_want_of_memory(void **state)
{
	json_auto_t *body = NULL;
	int end = 0;

	if (!run_in_little_memory(*state, order_for(*state, "kill -9 $$"), &end))
		skip();
	body = report(*state);
	assert_int_equal(end, 128 + SIGKILL);
	assert_null(json_object_get(body, "oom"));
}

/* ---- a real disk ---- */

static void a_full_disk_is_named_by_its_mount_point(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *disk = place_path(place, "a disk");
	AUTO(auto_free) char *checkpoints = place_path(place, "a disk/deep/ckpt");
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(disk, &err), &err);
	if (mount("tmpfs", disk, "tmpfs", 0, "size=4m") < 0)
		skip(); /* only root may mount */
	for (int i = 0; i < 3; i++) {
		static const char *const scripts[] = {
			"exit 1", "head -c 8000000 /dev/zero > $STOKER_CHECKPOINT_DIR/x; exit 1",
			"exit 0"
		};
		json_t *order = order_for(place, scripts[i]);
		json_auto_t *body = NULL;
		const char *mount_point;

		js_put(order, "attempt", json_integer(i + 1));
		js_put_str(order, "checkpoint_dir", checkpoints);
		run(place, order);
		body = report(place);
		mount_point = js_str(body, "mount");
		if (i == 1)
			assert_string_equal(mount_point, disk);
		else
			assert_null(mount_point); /* there is room, or no harm was done */
	}
	umount2(disk, MNT_DETACH);
}

#define T(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_counter_of_our_own_group_is_found_in_either_hierarchy),
		T(the_mount_point_is_the_nearest_above_and_the_topmost_there),
		T(what_the_kernel_killed_for_memory_is_reported),
		T(a_kill_by_someone_else_is_no_want_of_memory),
		T(a_full_disk_is_named_by_its_mount_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
