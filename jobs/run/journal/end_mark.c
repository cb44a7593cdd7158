/* The end mark of a run's journal: see end_mark.h. */
#include "jobs/run/journal/end_mark.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"

#define MARK_FORM "%012lld %.16s\n"
#define MARK_MAX  64

static char *end_mark_path(const char *state_dir, const char *run)
{
	return mem_format("%s/runs/%s/journal.end", state_dir, run);
}

/* Writes the number and its check sum as the text of the mark. */
static size_t form(const char *run, int64_t seq, char ret[MARK_MAX])
{
	AUTO(auto_free) char *text = mem_format("%s %lld", run, (long long)seq);
	char sum[SHA256_HEX];

	hash_sha256_hex(text, strlen(text), sum);
	return (size_t)snprintf(ret, MARK_MAX, MARK_FORM, (long long)seq, sum);
}

int64_t end_mark_read(const char *state_dir, const char *run)
{
	AUTO(auto_free) char *path = end_mark_path(state_dir, run);
	/* Opening a pipe would wait for its other end. */
	AUTO(auto_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	char text[MARK_MAX] = "", want[MARK_MAX];
	long long seq;

	if (fd < 0 || fs_read_full(fd, text, sizeof text - 1, 0) <= 0)
		return 0;
	seq = strtoll(text, NULL, 10);
	form(run, seq, want);
	return strcmp(text, want) == 0 ? seq : 0;
}

void end_mark_write(const char *state_dir, const char *run, int64_t seq)
{
	AUTO(auto_free) char *path = end_mark_path(state_dir, run);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		      0600);
	char text[MARK_MAX];
	size_t len = form(run, seq, text);

	if (fd >= 0)
		(void)!pwrite(fd, text, len, 0);
}

int end_mark_remove(const char *state_dir, const char *run, struct err **err)
{
	AUTO(auto_free) char *path = end_mark_path(state_dir, run);

	return fs_remove_tree(path, err);
}
