/*
 * `dcp`: torch.distributed.checkpoint (torch/distributed/checkpoint/filesystem.py):
 * __<rank>_<n>.distcp by every rank, then .metadata.tmp by one rank, which renames it to
 * .metadata. While a checkpoint is overwritten in place, the metadata file is absent; without
 * collectives each rank writes __<rank>.metadata instead.
 *
 * The metadata are a pickle, which is not unpickled: the names of the files stand in it as
 * plain text and are searched for as text.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

#define METADATA_MAX ((uint64_t)256 << 20)
#define WINDOW       ((size_t)1 << 20)
#define NAME_MAX_LEN 64

static bool named_dcp(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && checkpoint_name_any(name, true, ret_step);
}

static const char *ending_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot : "";
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_part(const char *path)
{
	uint32_t number[PATTERN_NUMBERS];
	const char *base = base_of(path);

	return strcmp(ending_of(base), ".distcp") == 0 || strcmp(base, ".metadata") == 0 ||
	       strcmp(base, ".metadata.tmp") == 0 ||
	       checkpoint_pattern_match("__%.metadata", base, number);
}

static bool looks_dcp(const struct checkpoint_check *check)
{
	for (size_t i = 0; i < check->tree->count; i++)
		if (is_part(check->tree->files[i].path))
			return true;
	return false;
}

/* Checks that each name "__<n>_<m>.distcp" in a piece of metadata is in the folder. */
static bool names_are_there(struct checkpoint_check *check, const char *folder, const char *text,
			    size_t len, uint64_t *named)
{
	static const char ending[] = ".distcp";
	const char *at = text, *stop = text + len;

	while ((at = memmem(at, (size_t)(stop - at), ending, sizeof ending - 1))) {
		const char *begin = at;
		AUTO(auto_free) char *path = NULL;

		at += sizeof ending - 1;
		while (begin > text && at - begin < NAME_MAX_LEN &&
		       strchr("0123456789_", begin[-1]) && begin[-1])
			begin--;
		if (at - begin < 12 || memcmp(begin, "__", 2) != 0)
			continue;
		path = mem_format("%s%.*s", folder, (int)(at - begin), begin);
		if (!checkpoint_tree_find(check->tree, path))
			return checkpoint_check_fail(
				check, "'%s' is missing, which the metadata name", path);
		++*named;
	}
	return true;
}

static bool metadata_holds(struct checkpoint_check *check, const char *folder,
			   const struct checkpoint_tree_file *file, uint64_t *named)
{
	AUTO(auto_close) int fd = checkpoint_tree_open(check->tree, file);
	AUTO(auto_free) char *window = mem_alloc(WINDOW);
	uint64_t at = 0;

	if (fd < 0)
		return checkpoint_check_fail(check, "'%s' cannot be read", file->path);
	if (file->size > METADATA_MAX)
		return checkpoint_check_fail(check, "'%s' is larger than is looked at", file->path);
	/* Windows overlap, so that no name is cut in two. */
	for (;;) {
		size_t len = file->size - at < WINDOW ? (size_t)(file->size - at) : WINDOW;

		if (checkpoint_read_at(fd, at, window, len) < 0)
			return checkpoint_check_fail(check, "'%s' cannot be read", file->path);
		if (!names_are_there(check, folder, window, len, named))
			return false;
		if (len < WINDOW)
			return true;
		at += WINDOW - NAME_MAX_LEN;
	}
}

/* Checks a folder ("" or with its slash) that holds a part. */
static bool folder_holds(struct checkpoint_check *check, const char *folder)
{
	AUTO(auto_free) char *pending = mem_format("%s.metadata.tmp", folder);
	AUTO(auto_free) char *whole = mem_format("%s.metadata", folder);
	AUTO(auto_free) char *ranks = mem_format("%s__%%.metadata", folder);
	AUTO(auto_free) char *shards = mem_format("%s__", folder);
	const struct checkpoint_tree_file *metadata = checkpoint_tree_find(check->tree, whole);
	uint32_t sides[PATTERN_NUMBERS];
	uint64_t named = 0;

	if (checkpoint_tree_find(check->tree, pending))
		return checkpoint_check_fail(check, "'%s' is still being written", pending);
	if (metadata)
		return metadata_holds(check, folder, metadata, &named) &&
		       (named || checkpoint_tree_first(check->tree, shards) ||
			checkpoint_check_fail(check, "'%s' has no shards beside it", whole));
	if (!checkpoint_check_grid(check, ranks, sides))
		return false;
	if (sides[0] == 0)
		return checkpoint_check_fail(check, "'%s' is missing, which is written last",
					     whole);
	for (uint32_t i = 0; i < sides[0]; i++) {
		AUTO(auto_free) char *path = mem_format("%s__%u.metadata", folder, i);
		const struct checkpoint_tree_file *file = checkpoint_tree_find(check->tree, path);

		if (file && !metadata_holds(check, folder, file, &named))
			return false;
	}
	return true;
}

bool checkpoint_check_dcp(struct checkpoint_check *check, size_t *ret_folders)
{
	AUTO(auto_free) char *last = NULL;

	*ret_folders = 0;
	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		AUTO(auto_free) char *folder = NULL;

		if (!is_part(path))
			continue;
		folder = mem_copy_n(path, (size_t)(base_of(path) - path));
		if (last && strcmp(last, folder) == 0)
			continue;
		if (!folder_holds(check, folder))
			return false;
		auto_free(&last);
		last = TAKE(folder);
		++*ret_folders;
	}
	return true;
}

static bool prove_dcp(struct checkpoint_check *check)
{
	size_t folders;

	if (!checkpoint_check_dcp(check, &folders))
		return false;
	return folders > 0 ||
	       checkpoint_check_fail(check, "'.metadata' is missing, which is written last");
}

const struct ckpt_kind kind_dcp = {
	.name = "dcp", .named = named_dcp, .looks = looks_dcp, .prove = prove_dcp
};
