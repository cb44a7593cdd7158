/* Manifests of tasks: see task_manifest.h. */
#include "jobs/node/tasks/task_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

#define READ_SIZE ((size_t)256 << 10)

/* Counts the newlines; a last line without one counts as well. */
int task_manifest_count(const char *path, int64_t *ret, struct err **err)
{
	AUTO(auto_close) int fd = fs_open_regular(path, err);
	AUTO(auto_free) char *bytes = mem_alloc(READ_SIZE);
	char last = '\n';
	ssize_t len;

	*ret = 0;
	if (fd < 0)
		return -1;
	while ((len = fs_read_full(fd, bytes, READ_SIZE, -1)) > 0) {
		for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + len - at)));
		     at++)
			++*ret;
		last = bytes[len - 1];
	}
	*ret += last != '\n';
	return len < 0 ? fs_error(err, errno, "cannot read '%s'", path) : 0;
}

struct cut {
	int to;
	int64_t line, from, until; /* the line that is read; the first one, and the first behind */
};

/* Writes the part of the bytes that belongs to the shard. Returns 0, or an errno. */
static int cut_bytes(struct cut *cut, const char *bytes, size_t len)
{
	const char *stop = bytes + len, *begin = NULL;

	while (bytes < stop && cut->line < cut->until) {
		const char *end = memchr(bytes, '\n', (size_t)(stop - bytes));

		if (cut->line >= cut->from && !begin)
			begin = bytes;
		cut->line += end != NULL;
		bytes = end ? end + 1 : stop;
	}
	return begin ? fs_write_full(cut->to, begin, (size_t)(bytes - begin)) : 0;
}

int task_manifest_cut(const char *path, int64_t lines, int64_t shard, int64_t shards,
		      const char *to, struct err **err)
{
	AUTO(auto_close) int fd = fs_open_regular(path, err);
	AUTO(auto_free) char *bytes = mem_alloc(READ_SIZE);
	int64_t each = lines / shards, more = lines % shards;
	struct cut cut = { .from = each * shard + (shard < more ? shard : more) };
	AUTO(auto_close) int out = -1;
	int failed = 0;
	ssize_t len = 0;

	cut.until = cut.from + each + (shard < more);
	if (fd < 0)
		return -1;
	unlink(to);
	cut.to = out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return fs_error(err, errno, "cannot write '%s'", to);
	while (!failed && cut.line < cut.until &&
	       (len = fs_read_full(fd, bytes, READ_SIZE, -1)) > 0)
		failed = cut_bytes(&cut, bytes, (size_t)len);
	if (failed)
		return fs_error(err, failed, "cannot write '%s'", to);
	return len < 0 ? fs_error(err, errno, "cannot read '%s'", path) : 0;
}

json_t *task_manifest_urls(const char *path, size_t most)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_close) int fd = fs_open_regular(path, &ignored);
	AUTO(auto_free) char *bytes = mem_alloc(READ_SIZE);
	ssize_t len = fd < 0 ? 0 : fs_read_full(fd, bytes, READ_SIZE, -1);
	const char *at = bytes, *stop = bytes + (len > 0 ? len : 0), *end;
	json_t *urls = json_array();

	while (json_array_size(urls) < most && at < stop &&
	       (end = memchr(at, '\n', (size_t)(stop - at)))) {
		json_auto_t *row = NULL;
		const char *url = NULL;

		err_freep(&ignored);
		if (js_parse(at, (size_t)(end - at), "a line", &row, &ignored) == 0)
			url = js_str(row, "url");
		if (url)
			json_array_append_new(urls, js_text(url, strlen(url)));
		at = end + 1;
	}
	return urls;
}
