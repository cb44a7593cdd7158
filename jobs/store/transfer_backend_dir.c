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
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;

	mover->begun = clock_utc_now();
	return store_dir_walk_open(mover->store, prefix, NULL, NULL, &mover->walk, err);
}

static enum transfer_backend_next
dir_backend_next(struct transfer_backend *base, struct transfer_backend_row *ret, struct err **err)
{
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;
	int found = store_dir_walk_next(mover->walk, &mover->row, err);

	if (found <= 0)
		return found < 0 ? TRANSFER_BACKEND_ERROR : TRANSFER_BACKEND_END;
	ret->key = mover->row.key;
	ret->size = (uint64_t)mover->row.st.st_size;
	ret->fresh = !store_dir_is_settled(&mover->row.st, mover->begun);
	ret->unfit = NULL;
	tag_of(&mover->row.st, ret->tag);
	return TRANSFER_BACKEND_ROW;
}

static int dir_backend_fetch(struct transfer_backend *base, struct transfer *transfer,
			     struct err **err)
{
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;

	(void)err;
	transfer->next = NULL;
	*mover->last = transfer;
	mover->last = &transfer->next;
	return 0;
}

static int dir_backend_open(struct transfer_backend *base)
{
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;

	return openat(mover->row.folder, mover->row.name,
		      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum transfer_result copy_one(struct transfer_backend_dir *mover, struct transfer *transfer,
				     struct err **err)
{
	AUTO(auto_close) int from = -1;
	char tag[STORE_TAG];
	struct stat st;
	int found = store_dir_object_open(mover->store, transfer->key, &from, &st, err);
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
			 mover->store->root);
		return TRANSFER_FAILED;
	}
	if (fstat(from, &st) < 0)
		return TRANSFER_CHANGED;
	tag_of(&st, tag);
	return strcmp(tag, transfer->tag) == 0 ? TRANSFER_DONE : TRANSFER_CHANGED;
}

static void dir_backend_turn(struct transfer_backend *base, int64_t wait_ms)
{
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;
	struct transfer *transfer = mover->first;
	enum transfer_result result;
	struct err *err = NULL;

	(void)wait_ms; /* a copy is made at once */
	if (!transfer)
		return;
	mover->first = transfer->next;
	if (!mover->first)
		mover->last = &mover->first;
	result = copy_one(mover, transfer, &err);
	transfer->done(transfer, result, err);
}

static void dir_backend_free(struct transfer_backend *base)
{
	struct transfer_backend_dir *mover = (struct transfer_backend_dir *)base;

	store_dir_walk_freep(&mover->walk);
	free(mover);
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
	struct transfer_backend_dir *mover = mem_zero(1, sizeof *mover);

	(void)err;
	mover->base.kind = &dir_backend;
	mover->store = (struct store_dir *)store;
	mover->last = &mover->first;
	*ret = &mover->base;
	return 0;
}
