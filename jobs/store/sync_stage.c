/* Objects that wait for others: a marker waits for the objects beside it, some wait for all. See
 * sync_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/store/sync_internal.h"

static const char *const left_behind = "is not copied, because some of its objects were not";

static struct group *group_new(struct sync *sync, struct group *parent, const char *prefix,
			       size_t len)
{
	struct group *group = mem_zero(1, sizeof *group + len + 1);

	group->next = sync->groups;
	if (group->next)
		group->next->previous = group;
	sync->groups = group;
	group->parent = parent;
	group->len = len;
	memcpy(group->prefix, prefix, len);
	if (parent)
		parent->pending++;
	return group;
}

static void group_free(struct sync *sync, struct group *group)
{
	if (group->next)
		group->next->previous = group->previous;
	if (group->previous)
		group->previous->next = group->next;
	else
		sync->groups = group->next;
	free(group);
}

/* Starts the objects that waited for the rest of the group, or leaves them behind. */
static void release_held(struct sync *sync, struct group *group)
{
	bool stays = group->failed || (group->lacking && group->parent);
	struct sync_slot *slot = TAKE(group->held);

	group->released = true;
	for (struct sync_slot *next; slot; slot = next) {
		next = TAKE(slot->beside);
		if (stays)
			sync_stage_finish(sync, slot, SYNC_FAILED, left_behind);
		else
			sync_slot_start(sync, slot);
	}
}

/* Ends a group once everything found in it is finished; its parent may be finished then. */
static void end_groups(struct sync *sync, struct group *group)
{
	while (group && group->closed && group->pending == 0) {
		struct group *parent = group->parent;

		if (!group->released && group->held) {
			for (const struct sync_slot *slot = group->held; slot; slot = slot->beside)
				group->pending++;
			release_held(sync, group);
			/* Objects finished in release_held() have called end_groups() themselves.
			 */
			return;
		}
		if (parent) {
			parent->pending--;
			parent->failed |= group->failed;
			parent->lacking |= group->lacking;
		}
		if (sync->group == group) /* the root: no other is closed while it is innermost */
			sync->group = NULL;
		group_free(sync, group);
		group = parent;
	}
}

void sync_stage_pass(struct sync *sync, const char *key)
{
	while (sync->group && (!key || !text_starts(key, sync->group->prefix))) {
		struct group *group = sync->group;

		if (group->parent)
			sync->group = group->parent;
		group->closed = true;
		end_groups(sync, group);
		if (sync->group == group) /* the root waits for the rest */
			return;
	}
}

struct group *sync_stage_group(struct sync *sync, const char *key)
{
	const char *slash;

	if (!sync->options->stage)
		return NULL;
	if (!sync->group)
		sync->group = group_new(sync, NULL, "", 0);
	while ((slash = strchr(key + sync->group->len, '/')))
		sync->group = group_new(sync, sync->group, key, (size_t)(slash - key) + 1);
	return sync->group;
}

void sync_stage_hold(struct sync_slot *slot, enum sync_stage stage)
{
	struct group *group = slot->group;

	while (stage == SYNC_LAST && group->parent)
		group = group->parent;
	slot->group = group;
	slot->beside = group->held;
	group->held = slot;
}

void sync_stage_finish(struct sync *sync, struct sync_slot *slot, enum sync_fate fate,
		       const char *why)
{
	struct group *group = slot->group;

	sync_slot_finish(sync, slot, fate, why);
	if (!group)
		return;
	group->pending--;
	group->failed |= fate == SYNC_FAILED;
	group->lacking |= fate == SYNC_REFUSED;
	end_groups(sync, group);
}

void sync_stage_close(struct sync *sync)
{
	for (struct group *group = sync->groups, *next; group; group = next) {
		next = group->next;
		free(group);
	}
	sync->group = sync->groups = NULL;
}
