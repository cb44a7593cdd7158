/* Watching a root until its checkpoints have settled. See checkpoint.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/proof.h"

/* So many of those taken are looked at again, of a node's own part. */
#define PARTS_AGAIN 3

/* What is remembered of one name. */
struct watched {
	struct ckpt ckpt; /* as of the last look; only its name until it was seen */
	struct mono since;
	bool there;  /* in the last look */
	bool proved; /* as it is now */
	bool sound;  /* good as a neighbour */
	bool taken;
};

struct ckpt_watch {
	char *root;
	const struct ckpt_kind *kind;
	int64_t settle_ms;
	struct watched *items; /* no order */
	size_t count;
	struct mono now;         /* of the last look */
	char others[SHA256_HEX]; /* digest of everything that is no candidate */
	uint64_t changes;
	bool looked;
	bool parts;
	bool newest; /* first, not last */
};

struct ckpt_watch *ckpt_watch_new(const char *root, const struct ckpt_kind *kind, int64_t settle_ms)
{
	struct ckpt_watch *watch = mem_zero(1, sizeof *watch);

	watch->root = mem_copy(root);
	watch->kind = kind;
	watch->settle_ms = settle_ms;
	return watch;
}

void ckpt_watch_parts(struct ckpt_watch *watch)
{
	watch->parts = true;
}

void ckpt_watch_newest(struct ckpt_watch *watch, bool first)
{
	watch->newest = first;
}

static void forget(struct ckpt_watch *watch, struct watched *item)
{
	ckpt_release(&item->ckpt);
	*item = watch->items[--watch->count];
}

void ckpt_watch_freep(struct ckpt_watch **watch)
{
	if (!*watch)
		return;
	while ((*watch)->count)
		forget(*watch, (*watch)->items);
	free((*watch)->items);
	free((*watch)->root);
	free(*watch);
	*watch = NULL;
}

/* The entry of this name, made if need be. */
static struct watched *item_of(struct ckpt_watch *watch, const char *name)
{
	struct watched *item;

	for (size_t i = 0; i < watch->count; i++)
		if (strcmp(watch->items[i].ckpt.name, name) == 0)
			return &watch->items[i];
	watch->items = mem_grow(watch->items, watch->count + 1, sizeof *watch->items);
	item = &watch->items[watch->count++];
	*item = (struct watched){ .ckpt.name = mem_copy(name) };
	return item;
}

void ckpt_watch_take(struct ckpt_watch *watch, const char *name)
{
	struct watched *item = item_of(watch, name);

	item->taken = true;
	item->sound = true; /* whoever took it had it proved, now or in an earlier life */
}

uint64_t ckpt_watch_changes(const struct ckpt_watch *watch)
{
	return watch->changes;
}

/* Done with it for good. */
static bool is_done(const struct ckpt_watch *watch, const struct watched *item)
{
	int newer = 0;

	if (!item->taken || !watch->parts)
		return item->taken;
	for (size_t i = 0; i < watch->count; i++)
		newer += watch->items[i].taken && watch->items[i].ckpt.step > item->ckpt.step;
	return newer >= PARTS_AGAIN;
}

/* Look at one candidate; `moving` grows if it is not what it was. */
static int look_at(struct ckpt_watch *watch, const struct root_entry *entry, uint64_t *moving,
		   struct err **err)
{
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	struct watched *item = item_of(watch, entry->name);
	struct ckpt fresh = { 0 };
	int there;

	item->there = true;
	if (is_done(watch, item)) {
		item->ckpt.step = entry->step;
		return 0;
	}
	there = candidate_read(watch->root, entry->name, watch->kind, &tree, &fresh, err);
	if (there <= 0) {
		item->there = false;
		return there;
	}
	/* Its pointer moves on to the next one. */
	if (watch->parts)
		ckpt_tree_tag(&tree, "", fresh.tag);
	if (strcmp(fresh.tag, item->ckpt.tag) == 0) {
		ckpt_release(&fresh);
		return 0;
	}
	ckpt_release(&item->ckpt);
	item->ckpt = fresh;
	item->since = watch->now;
	item->proved = item->sound = item->taken = false;
	++*moving;
	return 0;
}

/* What is no candidate counts only as a sign of life. */
static int look_aside(struct ckpt_watch *watch, const struct root_entry *entry,
		      struct sha256 *digest, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(watch->root, entry->name);
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	char tag[SHA256_HEX];
	int there = ckpt_tree_read(path, &tree, err);

	if (there > 0) {
		ckpt_tree_tag(&tree, entry->name, tag);
		sha256_add(digest, tag, sizeof tag);
	}
	return there < 0 ? -1 : 0;
}

static int list_root(struct ckpt_watch *watch, struct err **err)
{
	AUTO(root_list_release) struct root_list entries = { 0 };
	AUTO(sha256_freep) struct sha256 *digest = sha256_new();
	char others[SHA256_HEX];
	uint64_t moving = 0;

	if (root_read(watch->root, watch->kind, &entries, err) < 0)
		return -1;
	for (size_t i = 0; i < watch->count; i++)
		watch->items[i].there = false;
	for (size_t i = 0; i < entries.count; i++) {
		const struct root_entry *entry = &entries.items[i];
		int done = entry->candidate ? look_at(watch, entry, &moving, err)
					    : look_aside(watch, entry, digest, err);

		if (done < 0)
			return -1;
	}
	for (size_t i = watch->count; i-- > 0;)
		if (!watch->items[i].there && !watch->items[i].taken) {
			forget(watch, &watch->items[i]);
			moving++;
		}
	sha256_end(TAKE(digest), others);
	if (watch->looked && strcmp(others, watch->others) != 0)
		moving++;
	memcpy(watch->others, others, sizeof others);
	watch->looked = true;
	watch->changes += moving > 0;
	return 0;
}

static bool is_settled(const struct ckpt_watch *watch, const struct watched *item)
{
	return item->there && !item->taken && watch->now.ms - item->since.ms >= watch->settle_ms;
}

/* The lowest step of those that wait for their proof. */
static struct watched *to_prove(const struct ckpt_watch *watch)
{
	struct watched *first = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		struct watched *item = &watch->items[i];

		if (is_settled(watch, item) && !item->proved &&
		    (!first || item->ckpt.step < first->ckpt.step))
			first = item;
	}
	return first;
}

/* The nearest sound relative of `name` below `step`, NULL if none. */
static const struct watched *neighbour_below(const struct ckpt_watch *watch, const char *name,
					     int64_t step)
{
	const struct watched *best = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		const struct watched *item = &watch->items[i];

		if (item->there && item->sound && item->ckpt.step < step &&
		    (!best || item->ckpt.step > best->ckpt.step) &&
		    neighbours_related(name, item->ckpt.name))
			best = item;
	}
	return best;
}

static int prove(struct ckpt_watch *watch, struct watched *item, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	AUTO(ckpt_tree_release) struct tree near = TREE_INIT;
	AUTO(ckpt_tree_release) struct tree far = TREE_INIT;
	struct tree *const trees[NEIGHBOURS] = { &near, &far };
	const struct tree *older[NEIGHBOURS] = { &near, &far };
	int64_t step = item->ckpt.step;
	char tag[SHA256_HEX];
	size_t count = 0;
	struct ckpt fresh = { 0 };
	int there = candidate_read(watch->root, item->ckpt.name, watch->kind, &tree, &fresh, err);

	if (there > 0 && watch->parts)
		ckpt_tree_tag(&tree, "", fresh.tag);
	memcpy(tag, fresh.tag, sizeof tag);
	ckpt_release(&fresh);
	/* It moves again: the next look will see that. */
	if (there <= 0 || strcmp(tag, item->ckpt.tag) != 0)
		return there < 0 ? -1 : 0;
	if (watch->parts) {
		item->sound = item->ckpt.complete = candidate_part_sound(&tree, &item->ckpt, NULL);
		item->proved = true;
		return 0;
	}
	while (count < NEIGHBOURS) {
		const struct watched *below = neighbour_below(watch, item->ckpt.name, step);
		AUTO(auto_free) char *path = NULL;

		if (!below)
			break;
		step = below->ckpt.step;
		path = fs_join(watch->root, below->ckpt.name);
		there = ckpt_tree_read(path, trees[count], err);
		if (there < 0)
			return -1;
		count += there > 0;
	}
	item->sound = candidate_prove(watch->root, &tree, &item->ckpt, older, count);
	item->proved = true;
	return 0;
}

int ckpt_watch_look(struct ckpt_watch *watch, struct mono now, struct err **err)
{
	struct watched *next;

	watch->now = now;
	if (list_root(watch, err) < 0)
		return -1;
	next = to_prove(watch);
	return next ? prove(watch, next, err) : 0;
}

bool ckpt_watch_busy(const struct ckpt_watch *watch)
{
	return to_prove(watch) != NULL;
}

const struct ckpt *ckpt_watch_next(struct ckpt_watch *watch)
{
	const struct watched *first = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		const struct watched *item = &watch->items[i];

		if (is_settled(watch, item) && item->proved && item->ckpt.complete &&
		    (!first || (item->ckpt.step < first->ckpt.step) != watch->newest))
			first = item;
	}
	return first ? &first->ckpt : NULL;
}

const struct ckpt *ckpt_watch_partial(struct ckpt_watch *watch, size_t n)
{
	int64_t below = INT64_MAX;

	for (;;) {
		const struct watched *best = NULL;

		for (size_t i = 0; i < watch->count; i++) {
			const struct watched *item = &watch->items[i];

			if (is_settled(watch, item) && item->proved && !item->ckpt.complete &&
			    item->ckpt.step < below && (!best || item->ckpt.step > best->ckpt.step))
				best = item;
		}
		if (!best || n-- == 0)
			return best ? &best->ckpt : NULL;
		below = best->ckpt.step;
	}
}
