/* The far side of a sync, where it is a directory too: files are copied, one a turn. See
 * mover.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/store/mover.h"
#include "jobs/store/store_dir.h"

struct mover_dir {
	struct mover base; /* first: a mover is one of these */
	struct store_dir *store;
	struct dir_walk *walk;
	struct dir_row row;
	struct transfer *first, **last; /* yet to be copied */
	struct utc begun;
};

/* Unlike the tag of an object here, with the time of the last change, which nobody can set. */
static void tag_of(const struct stat *st, char tag[STORE_TAG])
{
	size_t len;

	dir_tag(st, tag);
	len = strlen(tag);
	snprintf(tag + len, STORE_TAG - len, "-%" PRIx64 "%08" PRIx64, (uint64_t)st->st_ctim.tv_sec,
		 (uint64_t)st->st_ctim.tv_nsec);
}

static int dir_mover_list(struct mover *base, const char *prefix, struct err **err)
{
	struct mover_dir *mover = (struct mover_dir *)base;

	mover->begun = utc_now();
	return dir_walk_open(mover->store, prefix, NULL, NULL, &mover->walk, err);
}

static enum mover_next dir_mover_next(struct mover *base, struct mover_row *ret, struct err **err)
{
	struct mover_dir *mover = (struct mover_dir *)base;
	int found = dir_walk_next(mover->walk, &mover->row, err);

	if (found <= 0)
		return found < 0 ? MOVER_ERROR : MOVER_END;
	ret->key = mover->row.key;
	ret->size = (uint64_t)mover->row.st.st_size;
	ret->fresh = !dir_is_settled(&mover->row.st, mover->begun);
	ret->unfit = NULL;
	tag_of(&mover->row.st, ret->tag);
	return MOVER_ROW;
}

static int dir_mover_fetch(struct mover *base, struct transfer *transfer, struct err **err)
{
	struct mover_dir *mover = (struct mover_dir *)base;

	(void)err;
	transfer->next = NULL;
	*mover->last = transfer;
	mover->last = &transfer->next;
	return 0;
}

static int dir_mover_open(struct mover *base)
{
	struct mover_dir *mover = (struct mover_dir *)base;

	return openat(mover->row.folder, mover->row.name,
		      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum transfer_result copy_one(struct mover_dir *mover, struct transfer *transfer,
				     struct err **err)
{
	AUTO(auto_close) int from = -1;
	char tag[STORE_TAG];
	struct stat st;
	int found = dir_object_open(mover->store, transfer->key, &from, &st, err);
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
	failed = dir_copy_file(from, transfer->fd);
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

static void dir_mover_turn(struct mover *base, int64_t wait_ms)
{
	struct mover_dir *mover = (struct mover_dir *)base;
	struct transfer *transfer = mover->first;
	enum transfer_result result;
	struct err *err = NULL;

	(void)wait_ms; /* nothing is waited for */
	if (!transfer)
		return;
	mover->first = transfer->next;
	if (!mover->first)
		mover->last = &mover->first;
	result = copy_one(mover, transfer, &err);
	transfer->done(transfer, result, err);
}

static void dir_mover_free(struct mover *base)
{
	struct mover_dir *mover = (struct mover_dir *)base;

	dir_walk_freep(&mover->walk);
	free(mover);
}

static const struct mover_kind dir_mover = {
	.list = dir_mover_list,
	.next = dir_mover_next,
	.fetch = dir_mover_fetch,
	.open = dir_mover_open,
	.turn = dir_mover_turn,
	.free = dir_mover_free,
};

int mover_dir_open(struct store *store, struct mover **ret, struct err **err)
{
	struct mover_dir *mover = mem_zero(1, sizeof *mover);

	(void)err;
	mover->base.kind = &dir_mover;
	mover->store = (struct store_dir *)store;
	mover->last = &mover->first;
	*ret = &mover->base;
	return 0;
}
