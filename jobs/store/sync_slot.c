/* The slots of a sync: lists of them, the queue in key order, and the manifest that is written from
 * its head. See sync_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/store/sync_internal.h"

void sync_slots_add(struct slots *slots, struct sync_slot *slot)
{
	slot->beside = NULL;
	if (slots->last)
		slots->last->beside = slot;
	else
		slots->first = slot;
	slots->last = slot;
	slots->count++;
}

struct sync_slot *sync_slots_take(struct slots *slots)
{
	struct sync_slot *slot = slots->first;

	if (!slot)
		return NULL;
	slots->first = slot->beside;
	if (!slots->first)
		slots->last = NULL;
	slots->count--;
	slot->beside = NULL;
	return slot;
}

struct sync_slot *sync_slot_new(struct sync *sync, const char *key, uint64_t size)
{
	size_t len = strlen(key) + 1;
	struct sync_slot *slot = mem_zero(1, sizeof *slot + len);

	slot->size = size;
	memcpy(slot->key, key, len);
	slot->next_of_all = sync->all;
	if (sync->all)
		sync->all->previous_of_all = slot;
	sync->all = slot;
	return slot;
}

void sync_slot_order(struct sync *sync, struct sync_slot *slot)
{
	slot->ordered = true;
	if (sync->last)
		sync->last->next = slot;
	else
		sync->first = slot;
	sync->last = slot;
	sync->ordered++;
}

static void slot_stop(struct sync *sync, struct sync_slot *slot)
{
	struct moving *moving = TAKE(slot->moving);

	if (!moving)
		return;
	if (sync->down)
		staged_write_drop(&moving->file);
	else
		auto_close(&moving->transfer.fd);
	free(moving);
}

static void slot_free(struct sync *sync, struct sync_slot *slot)
{
	slot_stop(sync, slot);
	if (slot->next_of_all)
		slot->next_of_all->previous_of_all = slot->previous_of_all;
	if (slot->previous_of_all)
		slot->previous_of_all->next_of_all = slot->next_of_all;
	else
		sync->all = slot->next_of_all;
	free(slot);
}

/* Adds finished slots at the head of the queue to the manifest. */
static void order_advance(struct sync *sync)
{
	while (sync->first && sync->first->finished) {
		struct sync_slot *slot = sync->first;

		if (slot->remember && sync->manifest) {
			struct manifest_row row = { .key = slot->key, .file = slot->file };

			memcpy(row.tag, slot->tag, sizeof row.tag);
			manifest_add(sync->manifest, &row);
		}
		sync->first = slot->next;
		if (!sync->first)
			sync->last = NULL;
		sync->ordered--;
		slot_free(sync, slot);
	}
}

void sync_slot_report(struct sync *sync, enum sync_fate fate, const char *key, uint64_t size,
		      const char *why)
{
	sync->sum->objects[fate]++;
	sync->sum->bytes[fate] += size;
	if (sync->options->on_object)
		sync->options->on_object(sync->options->arg, fate, key, size, why);
}

void sync_slot_start(struct sync *sync, struct sync_slot *slot)
{
	sync_slots_add(&sync->ready, slot);
}

void sync_slot_finish(struct sync *sync, struct sync_slot *slot, enum sync_fate fate,
		      const char *why)
{
	sync_slot_report(sync, fate, slot->key, slot->size, why);
	slot_stop(sync, slot);
	slot->finished = true;
	slot->group = NULL;
	if (slot->ordered)
		order_advance(sync);
	else
		slot_free(sync, slot);
}

void sync_slot_close(struct sync *sync)
{
	for (struct sync_slot *slot = sync->all, *next; slot; slot = next) {
		next = slot->next_of_all;
		slot_stop(sync, slot);
		free(slot);
	}
	sync->all = sync->first = sync->last = NULL;
}
