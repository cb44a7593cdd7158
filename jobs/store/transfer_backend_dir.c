/* Transfer backend of a directory: files are copied, one each turn. See transfer_backend.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/store/store_dir.h"
#include "jobs/store/transfer_backend.h"

struct transfer_backend_dir {
	struct transfer_backend base; /* must be first: used as a transfer_backend */
	struct store_dir *store;
	struct dir_walk *walk;
	struct dir_row row;
	struct transfer *first, **last; /* queue of files to copy */
	struct utc begun;
};

/* Unlike the tag of the directory store, this one includes the ctime, which a program cannot
 * set. */
static void tag_of(const struct stat *st, char tag[STORE_TAG])
{
	size_t len;

	store_dir_tag(st, tag);
	len = strlen(tag);
	snprintf(tag + len, STORE_TAG - len, "-%" PRIx64 "%08" PRIx64, (uint64_t)st->st_ctim.tv_sec,
		 (uint64_t)st->st_ctim.tv_nsec);
}

static int dir_backend_list(struct transfer_backend *base, const char *prefix, struct err **err)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;

	backend->begun = clock_utc_now();
	return store_dir_walk_open(backend->store, prefix, NULL, NULL, &backend->walk, err);
}

static enum transfer_backend_next
dir_backend_next(struct transfer_backend *base, struct transfer_backend_row *ret, struct err **err)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;
	int found = store_dir_walk_next(backend->walk, &backend->row, err);

	if (found <= 0)
		return found < 0 ? TRANSFER_BACKEND_ERROR : TRANSFER_BACKEND_END;
	ret->key = backend->row.key;
	ret->size = (uint64_t)backend->row.st.st_size;
	ret->fresh = !fs_is_settled(&backend->row.st, backend->begun);
	ret->unsafe_name = NULL;
	tag_of(&backend->row.st, ret->tag);
	return TRANSFER_BACKEND_ROW;
}

static int dir_backend_fetch(struct transfer_backend *base, struct transfer *transfer,
			     struct err **err)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;

	(void)err;
	transfer->next = NULL;
	*backend->last = transfer;
	backend->last = &transfer->next;
	return 0;
}

static int dir_backend_open(struct transfer_backend *base)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;

	return openat(backend->row.folder, backend->row.name,
		      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum transfer_result copy_one(struct transfer_backend_dir *backend,
				     struct transfer *transfer, struct err **err)
{
	AUTO(auto_close) int from = -1;
	char tag[STORE_TAG];
	struct stat st;
	int found = store_dir_object_open(backend->store, transfer->key, &from, &st, err);
	int failed;

	if (found <= 0)
		return found < 0 ? TRANSFER_FAILED : TRANSFER_GONE;
	tag_of(&st, tag);
	if (transfer->tag[0] == '\0') {
		memcpy(transfer->tag, tag, sizeof tag);
		transfer->size = (uint64_t)st.st_size;
	}
	if (strcmp(tag, transfer->tag) != 0)
		return TRANSFER_CHANGED;
	failed = store_dir_copy_file(from, transfer->fd);
	if (failed) {
		fs_error(err, failed, "cannot copy '%s' of the store '%s'", transfer->key,
			 backend->store->root);
		return TRANSFER_FAILED;
	}
	if (fstat(from, &st) < 0)
		return TRANSFER_CHANGED;
	tag_of(&st, tag);
	return strcmp(tag, transfer->tag) == 0 ? TRANSFER_DONE : TRANSFER_CHANGED;
}

static void dir_backend_turn(struct transfer_backend *base, int64_t wait_ms)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;
	struct transfer *transfer = backend->first;
	enum transfer_result result;
	struct err *err = NULL;

	(void)wait_ms; /* a copy is made at once */
	if (!transfer)
		return;
	backend->first = transfer->next;
	if (!backend->first)
		backend->last = &backend->first;
	result = copy_one(backend, transfer, &err);
	transfer->done(transfer, result, err);
}

static void dir_backend_free(struct transfer_backend *base)
{
	struct transfer_backend_dir *backend = (struct transfer_backend_dir *)base;

	store_dir_walk_freep(&backend->walk);
	free(backend);
}

static const struct transfer_backend_kind dir_backend = {
	.list = dir_backend_list,
	.next = dir_backend_next,
	.fetch = dir_backend_fetch,
	.open = dir_backend_open,
	.turn = dir_backend_turn,
	.free = dir_backend_free,
};

int transfer_backend_dir_open(struct store *store, struct transfer_backend **ret, struct err **err)
{
	struct transfer_backend_dir *backend = mem_zero(1, sizeof *backend);

	(void)err;
	backend->base.kind = &dir_backend;
	backend->store = (struct store_dir *)store;
	backend->last = &backend->first;
	*ret = &backend->base;
	return 0;
}
