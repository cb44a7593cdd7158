/* Transfers of a sync: started when there is room, made durable in groups, remembered in key
 * order. See sync_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/sync_internal.h"

/* Number of slots in the queue, of some 300 bytes each with their keys. */
#define ORDERED_MAX ((size_t)8192)

/* Files are made durable together once there are this many, or this many bytes, or the first has
 * waited this long; the wait grows with the time that a commit takes. Each file stays open until
 * then, and its folder perhaps until the next commit. */
#define LANDED_FILES  200
#define LANDED_BYTES  ((uint64_t)256 << 20)
#define LANDED_MS     300
#define LANDED_MS_MAX 3000
#define LANDED_TIMES  4 /* extra wait, as a multiple of the last commit's time */

#define CONNECTIONS 16
#define SPARE       8 /* transfers beyond the connections, so that none of those is ever idle */

static const char *const was_changed = "changed while it was copied";
const char *const sync_taken = "was written by another process meanwhile";
static const char *const was_removed = "was removed while it was copied";

static size_t limit_of(const struct sync *sync)
{
	int connections = sync->options->connections;

	return (size_t)(connections > 0 ? connections : CONNECTIONS) + SPARE;
}

bool sync_move_has_room(const struct sync *sync)
{
	return !sync->ready.first && sync->under_way < limit_of(sync) &&
	       sync->ordered < ORDERED_MAX;
}

bool sync_move_is_idle(const struct sync *sync)
{
	return sync->under_way == 0 && !sync->ready.first && !sync->landed.first;
}

void sync_move_same(struct sync *sync, const char *key, uint64_t size,
		    const struct manifest_row *remember)
{
	sync_slot_report(sync, SYNC_SAME, key, size, NULL);
	if (!remember || !sync->manifest)
		return;
	if (!sync->first) {
		manifest_add(sync->manifest, remember);
	} else {
		struct sync_slot *slot = sync_slot_new(sync, key, size);

		slot->file = remember->file;
		memcpy(slot->tag, remember->tag, sizeof slot->tag);
		slot->remember = slot->finished = true;
		sync_slot_order(sync, slot);
	}
}

void sync_move_refuse(struct sync *sync, const char *key, uint64_t size, const char *why)
{
	struct group *group = sync_stage_group(sync, key);

	if (group)
		group->lacking = true;
	sync_slot_report(sync, SYNC_REFUSED, key, size, why);
}

void sync_move_add(struct sync *sync, const char *key, uint64_t size,
		   const struct transfer_backend_row *remote, bool known, enum sync_stage stage)
{
	struct sync_slot *slot;

	sync->sum->to_move++;
	sync->sum->to_move_bytes += size;
	if (sync->options->dry_run) {
		sync_slot_report(sync, SYNC_MOVED, key, size, NULL);
		return;
	}
	slot = sync_slot_new(sync, key, size);
	slot->known = known;
	if (remote) {
		memcpy(slot->tag, remote->tag, sizeof slot->tag);
		slot->fresh = remote->fresh;
	}
	slot->group = sync_stage_group(sync, key);
	if (stage != SYNC_AT_ONCE) {
		sync_stage_hold(slot, stage);
		return;
	}
	if (slot->group)
		slot->group->pending++;
	sync_slot_order(sync, slot);
	sync_slot_start(sync, slot);
}

static void on_done(struct transfer *transfer, enum transfer_result result, struct err *err);

/* Starts or restarts the transfer of an open file. */
static int send_or_fetch(struct sync *sync, struct sync_slot *slot, struct err **err)
{
	struct transfer *transfer = &slot->moving->transfer;
	const struct transfer_backend_kind *kind = sync->backend->kind;

	transfer->key = slot->key;
	transfer->size = slot->size;
	transfer->done = on_done;
	transfer->owner = slot;
	transfer->sync = sync;
	transfer->exclusive = sync->options->exclusive && !slot->known;
	if ((sync->down ? kind->fetch : kind->send)(sync->backend, transfer, err) < 0)
		return -1;
	sync->under_way++;
	return 0;
}

static int start_down(struct sync *sync, struct sync_slot *slot, struct err **err)
{
	struct moving *moving = mem_zero(1, sizeof *moving);
	int begun = staged_write_begin(sync->staged, slot->key, slot->known, &moving->file, err);

	slot->moving = moving;
	if (begun < 0)
		return -1;
	if (begun == 0) {
		sync_stage_finish(sync, slot, SYNC_REFUSED, moving->file.why);
		return 0;
	}
	moving->file.if_taken = sync->options->exclusive ? sync_taken : NULL;
	moving->transfer.fd = moving->file.fd;
	memcpy(moving->transfer.tag, slot->tag, sizeof slot->tag);
	return send_or_fetch(sync, slot, err);
}

/* Records the current state of the file. */
static int stat_file(struct sync_slot *slot, struct err **err)
{
	struct moving *moving = slot->moving;
	struct utc now = clock_utc_now();

	if (fstat(moving->transfer.fd, &moving->st) < 0)
		return fs_error(err, errno, "cannot look at '%s'", slot->key);
	moving->settled = fs_is_settled(&moving->st, now);
	slot->size = (uint64_t)moving->st.st_size;
	return 0;
}

static int start_up(struct sync *sync, struct sync_slot *slot, struct err **err)
{
	struct moving *moving = mem_zero(1, sizeof *moving);
	int found;

	slot->moving = moving;
	moving->transfer.fd = -1;
	found = store_dir_object_open(sync->local, slot->key, &moving->transfer.fd, &moving->st,
				      err);
	if (found < 0)
		return -1;
	if (found == 0) {
		sync_stage_finish(sync, slot, SYNC_FAILED, was_removed);
		return 0;
	}
	if (stat_file(slot, err) < 0)
		return -1;
	return send_or_fetch(sync, slot, err);
}

/* Starts the transfer once more, for whatever content is there now. Returns false if this was
 * tried already or is not possible. */
static bool retry_slot(struct sync *sync, struct sync_slot *slot)
{
	struct moving *moving = slot->moving;

	if (moving->retried || sync->err)
		return false;
	moving->retried = true;
	slot->fresh = true;
	moving->transfer.tag[0] = '\0';
	if (sync->down) {
		if (ftruncate(moving->transfer.fd, 0) < 0 ||
		    lseek(moving->transfer.fd, 0, SEEK_SET) < 0)
			return false;
	} else if (stat_file(slot, &sync->err) < 0) {
		return false;
	}
	return send_or_fetch(sync, slot, &sync->err) == 0;
}

static bool is_as_it_was(const struct moving *moving)
{
	struct fs_stamp before, now;
	struct stat st;

	if (fstat(moving->transfer.fd, &st) < 0)
		return false;
	before = fs_stamp_of(&moving->st);
	now = fs_stamp_of(&st);
	return memcmp(&before, &now, sizeof now) == 0;
}

static void slot_arrived(struct sync *sync, struct sync_slot *slot)
{
	struct moving *moving = slot->moving;

	memcpy(slot->tag, moving->transfer.tag, sizeof slot->tag);
	if (sync->down) {
		slot->size = moving->transfer.size;
		if (!sync->landed.first)
			sync->landed_since = clock_mono_now();
		sync_slots_add(&sync->landed, slot);
		sync->landed_bytes += slot->size;
		return;
	}
	slot->file = fs_stamp_of(&moving->st);
	slot->remember = moving->settled && slot->tag[0];
	sync_stage_finish(sync, slot, SYNC_MOVED, NULL);
}

static void on_done(struct transfer *transfer, enum transfer_result result, struct err *err)
{
	struct sync_slot *slot = transfer->owner;
	struct sync *sync = transfer->sync;

	sync->under_way--;
	/* If the file was written to meanwhile, the service refuses the upload because the
	 * content is not what was announced: that is a change, not an error. */
	if (!sync->down && result != TRANSFER_GONE && !is_as_it_was(slot->moving)) {
		result = TRANSFER_CHANGED;
		err_freep(&err);
	}
	switch (result) {
	case TRANSFER_DONE:
		slot_arrived(sync, slot);
		break;
	case TRANSFER_CHANGED:
		if (!retry_slot(sync, slot))
			sync_stage_finish(sync, slot, SYNC_FAILED, was_changed);
		break;
	case TRANSFER_TAKEN:
		sync_stage_finish(sync, slot, SYNC_REFUSED, sync_taken);
		break;
	case TRANSFER_GONE:
		sync_stage_finish(sync, slot, SYNC_FAILED, was_removed);
		break;
	case TRANSFER_FAILED:
		if (sync->err)
			err_free(err);
		else
			sync->err = err;
		break;
	}
}

static bool commit_is_due(const struct sync *sync)
{
	if (!sync->landed.first)
		return false;
	return sync->landed.count >= LANDED_FILES || sync->landed_bytes >= LANDED_BYTES ||
	       (sync->under_way == 0 && !sync->ready.first) ||
	       clock_mono_now().ms - sync->landed_since.ms >= LANDED_MS + sync->landed_wait_ms;
}

static int64_t next_wait(int64_t took_ms)
{
	return took_ms < LANDED_MS_MAX / LANDED_TIMES ? took_ms * LANDED_TIMES : LANDED_MS_MAX;
}

static int commit_landed(struct sync *sync, struct err **err)
{
	struct staged_write_file *files[LANDED_FILES];
	struct sync_slot *slots[LANDED_FILES];
	struct mono begun = clock_mono_now();
	size_t count = 0;

	while (count < LANDED_FILES && sync->landed.first) {
		slots[count] = sync_slots_take(&sync->landed);
		sync->landed_bytes -= slots[count]->size;
		files[count] = &slots[count]->moving->file;
		count++;
	}
	if (staged_write_commit(sync->staged, files, count, err) < 0)
		return -1;
	sync->landed_wait_ms = next_wait(clock_mono_now().ms - begun.ms);
	for (size_t i = 0; i < count; i++) {
		struct sync_slot *slot = slots[i];

		slot->file = fs_stamp_of(&files[i]->st);
		slot->remember = !files[i]->why && !slot->fresh && slot->tag[0];
		sync_stage_finish(sync, slot, files[i]->why ? SYNC_REFUSED : SYNC_MOVED,
				  files[i]->why);
	}
	if (sync->manifest)
		manifest_flush(sync->manifest);
	return 0;
}

int sync_move_go_on(struct sync *sync, bool all, struct err **err)
{
	while (!all && sync->ready.first && sync->under_way < limit_of(sync)) {
		struct sync_slot *slot = sync_slots_take(&sync->ready);

		if ((sync->down ? start_down : start_up)(sync, slot, err) < 0)
			return -1;
	}
	while (all ? sync->landed.first != NULL : commit_is_due(sync))
		if (commit_landed(sync, err) < 0)
			return -1;
	return 0;
}
