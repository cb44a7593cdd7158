/* Adds up a compile cache: see cache_sum.h. */
#include "jobs/node/cache_sum.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/cache/manifest/compile_manifest.h"

/* Longest look at a cache; if it takes longer, the result is not known. */
#define CACHE_SCAN_MS 250
#define CACHE_DEPTH   6

/* Adds up names, sizes and times beneath a folder, without our own locks and claims. Returns false
 * if it took too long. */
static bool sum_folder(int fd, int depth, int64_t deadline_ms, uint64_t *sum)
{
	DIR *folder = fdopendir(fd);
	struct dirent *entry;
	bool whole = true;

	if (!folder) {
		close(fd);
		return true;
	}
	while (whole && (entry = readdir(folder))) {
		struct stat st;
		int inner;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    (depth == CACHE_DEPTH && strcmp(entry->d_name, LOCK_FOLDER) == 0) ||
		    fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*sum += (uint64_t)st.st_size * 31 + (uint64_t)st.st_mtim.tv_sec * 7 +
			(uint64_t)st.st_mtim.tv_nsec + 1;
		if (!S_ISDIR(st.st_mode) || depth == 0)
			continue;
		whole = clock_mono_now().ms < deadline_ms;
		inner = openat(dirfd(folder), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0)
			whole = sum_folder(inner, depth - 1, deadline_ms, sum) && whole;
	}
	closedir(folder);
	return whole;
}

uint64_t cache_sum(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t sum = 1;

	if (fd < 0 || !sum_folder(fd, CACHE_DEPTH, clock_mono_now().ms + CACHE_SCAN_MS, &sum))
		return 0;
	return sum;
}
