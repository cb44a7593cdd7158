/* The lease of a driver on a run: see lease.h. */
#include "jobs/run/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "jobs/base/fs.h"

int lease_take(const char *state_dir, const char *run, int *ret_fd, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", state_dir, run);
	AUTO(auto_free) char *path = fs_join(folder, "driver.lock");
	AUTO(auto_close) int fd = -1;
	char text[300] = "", host[128] = "?";
	int len;

	if (fs_mkdirs(folder, err) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fs_error(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return fs_error(err, errno, "cannot lock '%s'", path);
		if (pread(fd, text, sizeof text - 1, 0) < 0)
			text[0] = '\0';
		text[strcspn(text, "\n")] = '\0';
		err_set(err, EXIT_BUSY, "run %s is driven by %s", run,
			text[0] ? text : "someone else");
		return err_hint(err, "'stoker events %s' follows it; only one process drives a run",
				run);
	}
	gethostname(host, sizeof host - 1);
	len = snprintf(text, sizeof text, "pid %ld on %s\n", (long)getpid(), host);
	/* Only for people: a full disk must not keep a run from being driven. */
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0)
		errno = 0;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
