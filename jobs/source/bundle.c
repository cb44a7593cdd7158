/* Packs the pinned files and puts the bundle into the workspace. See bundle.h and source.h. */
#include "jobs/source/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/source/digest_cache.h"
#include "jobs/source/git.h"

void bundle_digest(const struct source_pin *pin, char hex[SHA256_HEX])
{
	AUTO(sb_release) struct sb line = SB_INIT;
	struct sha256 *sha = hash_sha256_new();

	sb_adds(&line, "stoker source bundle 1\n");
	for (size_t i = 0; i < pin->count; i++) {
		const struct source_file *file = &pin->files[i];

		sb_addf(&line, "%06o %" PRIu64 " %s ", file->mode, file->size, file->sha256);
		sb_add(&line, file->path, strlen(file->path) + 1); /* no name holds a NUL */
		hash_sha256_add(sha, line.text, line.len);
		sb_clear(&line);
	}
	hash_sha256_end(sha, hex);
}

/* --- contents --- */

struct origin {
	int root;          /* the work tree; -1 if the files come from a commit */
	struct repo *repo; /* repository of the commit */
	const char *commit;
};

static int fail_changed(const char *path, struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%s' changed while packing", path);
	return err_hint(err, "start again when nothing writes to the source any more");
}

static int read_work_tree(const struct origin *origin, const struct archive_member *member,
			  struct archive_sink *sink, struct err **err)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;

	if (S_ISLNK(member->mode)) {
		char target[PATH_MAX];
		ssize_t len = readlinkat(origin->root, member->path, target, sizeof target);

		return len < 0 ? fail_changed(member->path, err)
			       : archive_sink_add(sink, target, (size_t)len, err);
	}
	fd = openat(origin->root, member->path,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return fail_changed(member->path, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fs_error(err, errno, "cannot read '%s'", member->path);
	if (!S_ISREG(st.st_mode))
		return fail_changed(member->path, err);
	return archive_sink_add_file(sink, fd, member->path, err);
}

static int push_blob(void *arg, const struct repo_blob *blob, struct err **err)
{
	return archive_sink_add(arg, blob->bytes, blob->len, err);
}

static int fill_member(void *arg, const struct archive_member *member, struct archive_sink *sink,
		       struct err **err)
{
	const struct origin *origin = arg;

	if (!origin->repo)
		return read_work_tree(origin, member, sink, err);
	return source_repo_commit_file(origin->repo, origin->commit, member->path, push_blob, sink,
				       err);
}

/* --- publishing --- */

char *source_bundle_key(const char *digest)
{
	return mem_format("sources/%s.tar.gz", digest);
}

static int pack_bundle(const struct source_pin *pin, struct origin *origin, struct store *workspace,
		       const char *key, struct err **err)
{
	AUTO(auto_free) struct archive_member *members = mem_zero(pin->count + 1, sizeof *members);
	AUTO(auto_close) int scratch = fs_scratch(err);
	AUTO(auto_free) char *path = NULL;

	for (size_t i = 0; i < pin->count; i++) {
		const struct source_file *file = &pin->files[i];

		members[i] =
			(struct archive_member){ file->path, file->mode, file->size, file->sha256 };
	}
	if (scratch < 0 || archive_pack(scratch, members, pin->count, fill_member, origin, err) < 0)
		return -1;
	path = mem_format("/proc/self/fd/%d", scratch);
	return store_upload(workspace, path, key, err) < 0 ? -1 : 0;
}

static int pack_from(const struct source_request *request, const struct source_pin *pin,
		     struct store *workspace, const char *key, struct err **err)
{
	AUTO(source_repo_freep) struct repo *repo = NULL;
	AUTO(auto_close) int root = open(request->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_free) char *resolved = realpath(request->root, NULL);
	struct origin origin = { root, NULL, pin->commit };
	int found = 1;

	if (root < 0 || !resolved)
		return fs_error(err, errno, "cannot open the source folder '%s'", request->root);
	if (source_is_commit(request))
		found = source_repo_open(resolved, false, &repo, err);
	if (found == 0)
		return err_set(err, EXIT_REFUSED, "'%s' is not a git work tree any more",
			       request->root);
	if (found < 0)
		return -1;
	origin.repo = repo;
	return pack_bundle(pin, &origin, workspace, key, err);
}

static int publish_patch(const struct source_pin *pin, struct store *workspace, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("sources/%s.patch", pin->digest);

	if (!pin->patch)
		return 0;
	return store_put_if_absent(workspace, key, pin->patch, strlen(pin->patch), err) < 0 ? -1
											    : 0;
}

int source_publish(const struct source_request *request, const struct source_pin *pin,
		   struct store *workspace, struct err **err)
{
	AUTO(auto_free) char *key = source_bundle_key(pin->digest);
	struct store_object object;
	char digest[SHA256_HEX];
	int there = store_stat(workspace, key, &object, err);

	if (there < 0 || publish_patch(pin, workspace, err) < 0)
		return -1;
	if (request->memory && pin->digests.len > 0)
		digest_cache_keep(request->memory, &pin->digests);
	if (there)
		return 0;
	bundle_digest(pin, digest);
	if (strcmp(digest, pin->digest) != 0)
		return err_set(err, EXIT_DEFECT,
			       "the digest of the source is not that of its files");
	return pack_from(request, pin, workspace, key, err);
}
