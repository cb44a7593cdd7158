/* The two listings of a sync, side by side in key order, and the decision about each key. See
 * sync_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/text/text.h"
#include "jobs/store/content_match.h"
#include "jobs/store/sync_internal.h"

/* Called for an entry of the directory that is not an object. */
static void on_other_entry(void *arg, int dir, const char *folder, const char *name)
{
	struct sync *sync = arg;

	if (staged_write_sweep(dir, name, sync->staged != NULL))
		return;
	if (!sync->down) {
		AUTO(auto_free) char *key = mem_format("%s%s", folder, name);

		sync_move_refuse(sync, key, 0, "is a link or not a regular file");
	}
}

int sync_join_open(struct sync *sync, struct err **err)
{
	const char *only = sync->options->only ? sync->options->only : "";

	sync->above = SB_INIT;
	if (store_dir_walk_open(sync->local, only, on_other_entry, sync, &sync->walk, err) < 0)
		return -1;
	return sync->backend->kind->list(sync->backend, only, err);
}

void sync_join_close(struct sync *sync)
{
	store_dir_walk_freep(&sync->walk);
	sb_release(&sync->above);
}

/* Reads a row of the local side if none is at hand and the listing has not ended. */
static int local_fill(struct sync *sync, struct err **err)
{
	int found;

	if (sync->local_at || sync->local_ended)
		return 1;
	found = store_dir_walk_next(sync->walk, &sync->local_row, err);
	if (found < 0)
		return -1;
	sync->local_at = found > 0;
	sync->local_ended = found == 0;
	return 1;
}

static int remote_fill(struct sync *sync, struct err **err)
{
	if (sync->remote_at || sync->remote_ended)
		return 1;
	switch (sync->backend->kind->next(sync->backend, &sync->remote_row, err)) {
	case TRANSFER_BACKEND_WAIT:
		return 0;
	case TRANSFER_BACKEND_ERROR:
		return -1;
	case TRANSFER_BACKEND_END:
		sync->remote_ended = true;
		return 1;
	case TRANSFER_BACKEND_ROW:
		break;
	}
	sync->remote_at = true;
	return 1;
}

/* True if another object of the remote side is where this key needs a folder. That object was
 * listed before: keys that begin with its key follow it, but those with a slash after it not at
 * once. */
static bool lies_below_object(struct sync *sync, const char *key)
{
	size_t common = 0, len = strlen(key);
	bool below = false;

	while (common < sync->above.len && key[common] == sync->above.text[common])
		common++;
	while (sync->above_count > 0 && sync->above_ends[sync->above_count - 1] > common)
		sync->above_count--;
	for (size_t i = 0; i < sync->above_count; i++)
		below |= key[sync->above_ends[i]] == '/';
	sb_clear(&sync->above);
	sb_adds(&sync->above, key);
	if (!below && len <= UINT16_MAX && sync->above_count < STK_LENGTH(sync->above_ends))
		sync->above_ends[sync->above_count++] = (uint16_t)len;
	return below;
}

/* True for a folder marker, which consoles and some programs make to show an empty folder. */
static bool is_folder_mark(const struct transfer_backend_row *row)
{
	size_t len = strlen(row->key);

	return row->size == 0 && len > 0 && row->key[len - 1] == '/';
}

static int local_open(struct sync *sync)
{
	return openat(sync->local_row.folder, sync->local_row.name,
		      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Compares a key that both sides have: returns 1 if the content is the same, 0 if not, -1 with an
 * error. `ret` is the row to remember; its key is NULL if there is nothing to remember. */
static int is_same(struct sync *sync, struct manifest_row *ret, struct err **err)
{
	const struct transfer_backend_row *remote = &sync->remote_row;
	const struct stat *st = &sync->local_row.st;
	const struct manifest_row *known =
		manifest_find(sync->manifest, remote->key, sync->options->only);
	AUTO(auto_close) int fd = -1;
	int same;

	*ret = (struct manifest_row){ 0 };
	if ((uint64_t)st->st_size != remote->size)
		return 0;
	if (known && manifest_holds(known, st, remote->size, remote->tag)) {
		*ret = *known;
		return 1;
	}
	fd = local_open(sync);
	if (fd < 0)
		return 0; /* the transfer that follows reports the error */
	same = content_match_file(sync->backend, remote, fd, err);
	if (same > 0 && !remote->fresh && remote->tag[0] && fs_is_settled(st, sync->begun)) {
		ret->key = remote->key;
		ret->file = fs_stamp_of(st);
		memcpy(ret->tag, remote->tag, sizeof ret->tag);
	}
	return same;
}

static enum sync_stage stage_of(const struct sync *sync, const char *key)
{
	return sync->options->stage ? sync->options->stage(sync->options->arg, key) : SYNC_AT_ONCE;
}

/* Decides about a key that both sides have, or only the source. */
static int decide_key(struct sync *sync, bool both, struct err **err)
{
	const char *key = sync->down ? sync->remote_row.key : sync->local_row.key;
	uint64_t size = sync->down ? sync->remote_row.size : (uint64_t)sync->local_row.st.st_size;
	enum sync_stage stage = stage_of(sync, key);
	struct manifest_row remember;
	int same = 0;

	if (stage == SYNC_NOT)
		return 1;
	if (both)
		same = is_same(sync, &remember, err);
	if (same < 0)
		return -1;
	if (same == 0)
		sync_move_add(sync, key, size, sync->down ? &sync->remote_row : NULL, both, stage);
	else
		sync_move_same(sync, key, size, remember.key ? &remember : NULL);
	return 1;
}

/* Handles the next object of the remote side, on the way down. */
static int step_down(struct sync *sync, struct err **err)
{
	const struct transfer_backend_row *remote = &sync->remote_row;
	int filled = remote_fill(sync, err), order = 1;
	const char *why;

	if (filled <= 0)
		return filled;
	if (sync->remote_ended) {
		sync->joined = true;
		return 1;
	}
	sync_stage_pass(sync, remote->key);
	sync->remote_at = false;
	if (is_folder_mark(remote))
		return 1;
	why = remote->unsafe_name;
	if (!why && lies_below_object(sync, remote->key))
		why = "lies below another object, which is a file here";
	if (why) {
		sync_move_refuse(sync, remote->key, remote->size, why);
		return 1;
	}
	for (;;) {
		if (local_fill(sync, err) < 0)
			return -1;
		if (sync->local_ended)
			break;
		order = strcmp(sync->local_row.key, remote->key);
		if (order >= 0)
			break;
		sync->local_at = false;
	}
	return decide_key(sync, order == 0, err);
}

/* Handles the next file of the directory, on the way up. */
static int step_up(struct sync *sync, struct err **err)
{
	const char *key, *why;
	int order = 1;

	if (local_fill(sync, err) < 0)
		return -1;
	if (sync->local_ended) {
		sync->joined = true;
		return 1;
	}
	key = sync->local_row.key;
	why = sync->backend->kind->unsafe_name(key);
	while (!why) {
		int filled = remote_fill(sync, err);

		if (filled <= 0)
			return filled;
		if (sync->remote_ended)
			break;
		order = strcmp(sync->remote_row.key, key);
		if (order >= 0)
			break;
		sync->remote_at = false;
	}
	sync_stage_pass(sync, key);
	sync->local_at = false;
	if (why) {
		sync_move_refuse(sync, key, (uint64_t)sync->local_row.st.st_size, why);
		return 1;
	}
	return decide_key(sync, order == 0, err);
}

int sync_join_step(struct sync *sync, struct err **err)
{
	int done = sync->down ? step_down(sync, err) : step_up(sync, err);

	if (sync->joined) {
		sync->sum->listed = true;
		sync_stage_pass(sync, NULL);
	}
	return done;
}
