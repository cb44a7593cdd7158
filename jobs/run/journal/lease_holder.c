/* The holder of a lease, of either kind: who it is, and whether it is this process. See lease.h. */
#include <fcntl.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/lease_internal.h"

const char *lease_holder(const struct lease *lease)
{
	return lease->holder ? lease->holder : "";
}

int lease_pass_obstacle(const struct lease *lease, const char *root, const char *key, bool removes,
			struct err **err)
{
	AUTO(auto_free) char *of = mem_format("the lease of run %s", lease->run);
	AUTO(sb_release) struct sb what = SB_INIT, path = SB_INIT;

	if (!removes)
		return damage_refuse_obstacle(root, key, of, err);
	return damage_obstacle(root, key, &what, &path) ? fs_remove_tree(path.text, err) : 0;
}

int lease_busy(const struct lease *lease, struct err **err)
{
	err_set(err, EXIT_BUSY, "run %s is driven by %s", lease->run,
		*lease_holder(lease) ? lease_holder(lease) : "someone else");
	return err_hint(err, "'stoker events %s -f' follows it; only one process drives a run",
			lease->run);
}

/* Clock rates differ, and an effect takes its time: the holder stops before another process may
 * begin. */
static int64_t own_limit(const struct lease *lease)
{
	return lease->rules.valid_ms - lease->rules.valid_ms / 6;
}

bool lease_is_held(const struct lease *lease)
{
	return lease && lease->held;
}

bool lease_is_mine(const struct lease *lease)
{
	return lease->held &&
	       (!lease->store || clock_mono_now().ms - lease->since.ms < own_limit(lease));
}

struct lease_search {
	const char *state_dir;
	char *held;
};

static void note_held(void *arg, const char *run)
{
	struct lease_search *search = arg;
	AUTO(auto_free)
	char *path = mem_format("%s/runs/%s/" LEASE_LOCK, search->state_dir, run);
	AUTO(auto_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!search->held && fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 &&
	    lock.l_type != F_UNLCK)
		search->held = mem_copy(run);
}

char *lease_find_lock(const char *state_dir)
{
	struct lease_search search = { state_dir, NULL };

	damage_each_run(state_dir, LEASE_LOCK, note_held, &search);
	return search.held;
}
