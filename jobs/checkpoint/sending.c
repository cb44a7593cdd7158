/*
 * Files of a checkpoint on their way to a store. See remote.h.
 *
 * What has arrived is written down beside the checkpoint, a record a file behind each
 * other: size, time and path as they were when it was sent, and a NUL. A file of which
 * the store lists the same size and that has not changed since is not sent again, in
 * whatever process that was.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/remote.h"

#define SENT_NAME FS_TEMP_PREFIX "sent-"
#define SENT_MAX  ((size_t)256 << 20)

struct sending {
	struct ckpt_root to; /* its path is owned */
	char *name, *folder; /* owned: of the checkpoint; where it lies */
	const struct tree *tree;
	struct remote before; /* what lay there when we began */
	unsigned char *sent;  /* for each file of the tree: has it arrived earlier */
	int record_fd;
	size_t at;
	bool cleared; /* of what does not belong there */
};

/* One for each checkpoint and place that it is sent to. Yours to free. */
static char *record_path(const struct ckpt_root *to, const char *path)
{
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(auto_free) char *url = ckpt_root_url(to, fs_basename(path));
	char hex[SHA256_HEX];

	sha256_hex(url, strlen(url), hex);
	return mem_format("%s/" SENT_NAME "%.24s", folder, hex);
}

void sent_forget(const struct ckpt_root *to, const char *path)
{
	AUTO(auto_free) char *record = record_path(to, path);

	unlink(record);
}

void sending_freep(struct sending **sending)
{
	struct sending *s = *sending;

	if (!s)
		return;
	free((char *)s->to.path);
	free(s->name);
	free(s->folder);
	remote_release(&s->before);
	free(s->sent);
	auto_close(&s->record_fd);
	free(s);
	*sending = NULL;
}

static void note_record(struct sending *s, const char *record)
{
	char *rest;
	uint64_t size = strtoull(record, &rest, 10);
	int64_t mtime_ns = *rest == ' ' ? strtoll(rest + 1, &rest, 10) : 0;
	const struct tree_file *file = *rest == ' ' ? ckpt_tree_find(s->tree, rest + 1) : NULL;

	if (file && file->size == size && file->mtime_ns == mtime_ns)
		s->sent[file - s->tree->files] = 1;
}

/* What cannot be read has not been written: everything is sent. */
static void read_records(struct sending *s, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(SENT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	const char *at, *end, *nul;

	if (s->before.count == 0 || fs_read(path, SENT_MAX, &text, &ignored) < 0)
		return;
	end = text.text + text.len;
	for (at = text.text; (nul = memchr(at, '\0', (size_t)(end - at))); at = nul + 1)
		note_record(s, at);
	for (size_t i = 0; i < s->tree->count; i++) {
		const struct remote_file *there = remote_find(&s->before, s->tree->files[i].path);

		if (!there || there->size != s->tree->files[i].size)
			s->sent[i] = 0;
	}
}

int sending_start(const struct ckpt_root *to, const struct ckpt *ckpt, const struct tree *tree,
		  struct sending **ret, struct err **err)
{
	AUTO(sending_freep) struct sending *s = mem_zero(1, sizeof *s);
	AUTO(auto_free) char *record = record_path(to, ckpt->path);

	s->record_fd = -1;
	s->to = (struct ckpt_root){ .path = mem_copy(to->path), .store = to->store };
	s->name = mem_copy(ckpt->name);
	s->folder = fs_dirname(ckpt->path);
	s->tree = tree;
	s->sent = mem_zero(tree->count + 1, 1);
	if (remote_list(&s->to, s->name, tree->single, &s->before, err) < 0)
		return -1;
	read_records(s, record);
	/* Without it everything is sent anew after an interruption: no reason to fail. */
	s->record_fd = open(record, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	*ret = TAKE(s);
	return 0;
}

static void write_record(struct sending *s, const struct tree_file *file)
{
	AUTO(auto_free)
	char *record =
		mem_format("%" PRIu64 " %" PRId64 " %s", file->size, file->mtime_ns, file->path);

	if (s->record_fd >= 0)
		(void)!write(s->record_fd, record, strlen(record) + 1);
}

static bool is_as_listed(int fd, const struct tree_file *file)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == file->size &&
	       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec == file->mtime_ns;
}

static int send_file(struct sending *s, const struct tree_file *file, struct err **err)
{
	AUTO(auto_free) char *key = remote_key(&s->to, s->name, file->path);
	AUTO(auto_close) int fd = ckpt_tree_open(s->tree, file);
	AUTO(auto_free) char *opened = NULL;

	if (fd < 0)
		return fs_error(err, errno, "cannot copy '%s/%s'", s->tree->path, file->path);
	/* Of an earlier copy that was interrupted, perhaps of other bytes. */
	if (remote_find(&s->before, file->path) && store_delete(s->to.store, key, err) < 0)
		return -1;
	/* By the descriptor: no link leads elsewhere, whatever changes meanwhile. */
	opened = mem_format("/proc/self/fd/%d", fd);
	if (store_upload(s->to.store, opened, key, err) < 0)
		return err_wrap(err, "cannot copy '%s/%s'", s->tree->path, file->path);
	if (!is_as_listed(fd, file))
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': '%s' has changed meanwhile",
			       s->tree->path, file->path);
	write_record(s, file);
	return 0;
}

/* What an older checkpoint of that name had more. */
static int clear_others(struct sending *s, struct err **err)
{
	for (size_t i = 0; i < s->before.count; i++) {
		const char *path = s->before.items[i].path;
		AUTO(auto_free) char *key = remote_key(&s->to, s->name, path);

		if (!ckpt_tree_find(s->tree, path) && store_delete(s->to.store, key, err) < 0)
			return -1;
	}
	s->cleared = true;
	return 0;
}

static int check_all(struct sending *s, struct err **err)
{
	AUTO(remote_release) struct remote now = { 0 };
	AUTO(auto_free) char *url = ckpt_root_url(&s->to, s->name);
	AUTO(auto_free) char *why = NULL;

	if (remote_list(&s->to, s->name, s->tree->single, &now, err) < 0)
		return -1;
	why = remote_differs(&now, s->tree);
	return why ? err_set(err, EXIT_REFUSED, "cannot copy '%s' to '%s': %s", s->tree->path, url,
			     why)
		   : 0;
}

int sending_next(struct sending *s, uint64_t *ret_bytes, struct err **err)
{
	const struct tree_file *file = &s->tree->files[s->at];

	*ret_bytes = 0;
	if (!s->cleared && clear_others(s, err) < 0)
		return -1;
	if (s->at == s->tree->count)
		return check_all(s, err);
	if (!s->sent[s->at] && send_file(s, file, err) < 0)
		return -1;
	*ret_bytes = file->size;
	s->at++;
	return 1;
}
