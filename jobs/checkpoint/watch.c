/* Watches a root until its checkpoints have settled. See checkpoint.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/checkpoint.h"

/* Number of newest taken checkpoints that are looked at again, if these are a node's own parts. */
#define PARTS_AGAIN 3
/* Minimum time for proofs in one look. */
#define PROVE_MS 50

/* State of one name. */
struct watched {
	struct ckpt ckpt; /* as of the last look; only the name until it was seen */
	struct mono since;
	bool there;  /* was seen in the last look */
	bool proved; /* in its current state */
	bool sound;  /* fit for comparison with later ones */
	bool taken;
	struct mono later; /* is not offered before this time */
};

/* An entry in the root that looks like a checkpoint, under a name that no checkpoint has. */
struct unrecognised {
	char *name;
	char tag[SHA256_HEX];
	struct mono since; /* time of the last change */
	bool named;        /* has a name that another kind would accept */
	bool there;        /* was seen in the last look */
};

struct ckpt_watch {
	char *root;
	const struct ckpt_kind *kind;
	int64_t quiet_ms;
	int64_t positively_verified_ms; /* settle time if positively_verified */
	struct watched *items;          /* in no order */
	size_t count;
	struct unrecognised *unrecognised_list;
	size_t unrecognised_count;
	struct mono now;         /* time of the last look */
	char others[SHA256_HEX]; /* digest of all entries that are not candidates */
	uint64_t changes;
	bool looked;
	bool parts;
	bool newest; /* offer the newest first */
};

struct ckpt_watch *checkpoint_watch_new(const char *root, const struct ckpt_kind *kind,
					int64_t quiet_ms)
{
	struct ckpt_watch *watch = mem_zero(1, sizeof *watch);

	watch->root = mem_copy(root);
	watch->kind = kind;
	watch->quiet_ms = watch->positively_verified_ms = quiet_ms;
	return watch;
}

void checkpoint_watch_quiet(struct ckpt_watch *watch, int64_t quiet_ms)
{
	watch->quiet_ms = watch->positively_verified_ms = quiet_ms;
}

void checkpoint_watch_quiet_verified(struct ckpt_watch *watch, int64_t quiet_ms)
{
	if (quiet_ms < watch->positively_verified_ms)
		watch->positively_verified_ms = quiet_ms;
}

void checkpoint_watch_parts(struct ckpt_watch *watch)
{
	watch->parts = true;
}

void checkpoint_watch_newest(struct ckpt_watch *watch, bool first)
{
	watch->newest = first;
}

static void forget(struct ckpt_watch *watch, struct watched *item)
{
	checkpoint_release(&item->ckpt);
	*item = watch->items[--watch->count];
}

void checkpoint_watch_freep(struct ckpt_watch **watch)
{
	if (!*watch)
		return;
	while ((*watch)->count)
		forget(*watch, (*watch)->items);
	free((*watch)->items);
	for (size_t i = 0; i < (*watch)->unrecognised_count; i++)
		free((*watch)->unrecognised_list[i].name);
	free((*watch)->unrecognised_list);
	free((*watch)->root);
	free(*watch);
	*watch = NULL;
}

/* Returns the entry of this name, making it if need be. */
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

void checkpoint_watch_take(struct ckpt_watch *watch, const char *name)
{
	struct watched *item = item_of(watch, name);

	item->taken = true;
	item->sound = true; /* proved before it was taken, perhaps in an earlier life */
}

uint64_t checkpoint_watch_changes(const struct ckpt_watch *watch)
{
	return watch->changes;
}

/* True if the checkpoint is not looked at again. */
static bool is_done(const struct ckpt_watch *watch, const struct watched *item)
{
	int newer = 0;

	if (!item->taken || !watch->parts)
		return item->taken;
	for (size_t i = 0; i < watch->count; i++)
		newer += watch->items[i].taken && watch->items[i].ckpt.step > item->ckpt.step;
	return newer >= PARTS_AGAIN;
}

/* Looks at one candidate; `moving` grows if it has changed. */
static int inspect_candidate(struct ckpt_watch *watch, const struct root_entry *entry,
			     uint64_t *moving, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
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
	/* The pointer moves on to the next checkpoint, so it is left out. */
	if (watch->parts)
		checkpoint_tree_tag(&tree, "", fresh.tag);
	if (strcmp(fresh.tag, item->ckpt.tag) == 0) {
		checkpoint_release(&fresh);
		return 0;
	}
	checkpoint_release(&item->ckpt);
	item->ckpt = fresh;
	item->since = watch->now;
	item->proved = item->sound = item->taken = false;
	item->later.ms = 0;
	++*moving;
	return 0;
}

/* True for a file of tensors by its ending, or a folder with one in it, that is not being
 * written. */
static bool is_kept_like_one(const struct root_entry *entry, const struct checkpoint_tree *tree)
{
	if (entry->name[0] == '.' || checkpoint_name_temporary(entry->name))
		return false;
	if (!entry->folder)
		return checkpoint_name_of_state(entry->name);
	for (size_t i = 0; i < tree->count; i++)
		if (checkpoint_name_of_state(tree->files[i].path))
			return true;
	return false;
}

static void note_unrecognised(struct ckpt_watch *watch, const struct root_entry *entry,
			      const char *tag)
{
	struct unrecognised *one = NULL;
	int64_t step;

	for (size_t i = 0; i < watch->unrecognised_count && !one; i++)
		if (strcmp(watch->unrecognised_list[i].name, entry->name) == 0)
			one = &watch->unrecognised_list[i];
	if (!one) {
		watch->unrecognised_list =
			mem_grow(watch->unrecognised_list, watch->unrecognised_count + 1,
				 sizeof *watch->unrecognised_list);
		one = &watch->unrecognised_list[watch->unrecognised_count++];
		*one = (struct unrecognised){ .name = mem_copy(entry->name) };
		one->named = checkpoint_name_any(entry->name, entry->folder, &step);
	}
	one->there = true;
	if (strcmp(one->tag, tag) != 0)
		one->since = watch->now;
	memcpy(one->tag, tag, sizeof one->tag);
}

/* Looks at an entry that is not a candidate: it only counts as a sign of life and for a message. */
static int inspect_other(struct ckpt_watch *watch, const struct root_entry *entry,
			 struct sha256 *digest, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(watch->root, entry->name);
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	char tag[SHA256_HEX];
	int there = checkpoint_tree_read(path, &tree, err);

	if (there > 0) {
		checkpoint_tree_tag(&tree, entry->name, tag);
		hash_sha256_add(digest, tag, sizeof tag);
		if (is_kept_like_one(entry, &tree))
			note_unrecognised(watch, entry, tag);
	}
	return there < 0 ? -1 : 0;
}

static int list_root(struct ckpt_watch *watch, struct err **err)
{
	AUTO(root_list_release) struct root_list entries = { 0 };
	AUTO(hash_sha256_freep) struct sha256 *digest = hash_sha256_new();
	char others[SHA256_HEX];
	uint64_t moving = 0;

	if (root_read(watch->root, watch->kind, &entries, err) < 0)
		return -1;
	for (size_t i = 0; i < watch->count; i++)
		watch->items[i].there = false;
	for (size_t i = 0; i < watch->unrecognised_count; i++)
		watch->unrecognised_list[i].there = false;
	for (size_t i = 0; i < entries.count; i++) {
		const struct root_entry *entry = &entries.items[i];
		int done = entry->candidate ? inspect_candidate(watch, entry, &moving, err)
					    : inspect_other(watch, entry, digest, err);

		if (done < 0)
			return -1;
	}
	for (size_t i = watch->count; i-- > 0;)
		if (!watch->items[i].there && !watch->items[i].taken) {
			forget(watch, &watch->items[i]);
			moving++;
		}
	hash_sha256_end(TAKE(digest), others);
	if (watch->looked && strcmp(others, watch->others) != 0)
		moving++;
	memcpy(watch->others, others, sizeof others);
	watch->looked = true;
	watch->changes += moving > 0;
	return 0;
}

static bool is_quiet(const struct ckpt_watch *watch, const struct watched *item, int64_t ms)
{
	return item->there && !item->taken && watch->now.ms - item->since.ms >= ms;
}

static bool is_settled(const struct ckpt_watch *watch, const struct watched *item)
{
	bool positively_verified =
		item->proved && item->ckpt.complete && item->ckpt.positively_verified;

	return is_quiet(watch, item,
			positively_verified ? watch->positively_verified_ms : watch->quiet_ms);
}

/* Returns the candidate with the lowest step that waits for its proof. */
static struct watched *to_prove(const struct ckpt_watch *watch)
{
	struct watched *first = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		struct watched *item = &watch->items[i];

		if (is_quiet(watch, item, watch->positively_verified_ms) && !item->proved &&
		    (!first || item->ckpt.step < first->ckpt.step))
			first = item;
	}
	return first;
}

/* Returns the nearest sound relative of `name` below `step`, NULL if not found. */
static const struct watched *neighbour_below(const struct ckpt_watch *watch, const char *name,
					     int64_t step)
{
	const struct watched *best = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		const struct watched *item = &watch->items[i];

		if (item->there && item->sound && item->ckpt.step < step &&
		    (!best || item->ckpt.step > best->ckpt.step) &&
		    sibling_check_related(name, item->ckpt.name))
			best = item;
	}
	return best;
}

static int prove(struct ckpt_watch *watch, struct watched *item, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(checkpoint_tree_release) struct checkpoint_tree local = TREE_INIT;
	AUTO(checkpoint_tree_release) struct checkpoint_tree remote = TREE_INIT;
	struct checkpoint_tree *const trees[SIBLINGS] = { &local, &remote };
	const struct checkpoint_tree *older[SIBLINGS] = { &local, &remote };
	int64_t step = item->ckpt.step;
	char tag[SHA256_HEX];
	size_t count = 0;
	struct ckpt fresh = { 0 };
	int there = candidate_read(watch->root, item->ckpt.name, watch->kind, &tree, &fresh, err);

	if (there > 0 && watch->parts)
		checkpoint_tree_tag(&tree, "", fresh.tag);
	memcpy(tag, fresh.tag, sizeof tag);
	checkpoint_release(&fresh);
	/* If it changed again, the next look will see that. */
	if (there <= 0 || strcmp(tag, item->ckpt.tag) != 0)
		return there < 0 ? -1 : 0;
	while (count < SIBLINGS) {
		const struct watched *below = neighbour_below(watch, item->ckpt.name, step);
		AUTO(auto_free) char *path = NULL;

		if (!below)
			break;
		step = below->ckpt.step;
		path = fs_join(watch->root, below->ckpt.name);
		there = checkpoint_tree_read(path, trees[count], err);
		if (there < 0)
			return -1;
		count += there > 0;
	}
	if (watch->parts) {
		candidate_prove_part(&tree, &item->ckpt, older, count);
		item->sound = item->ckpt.complete;
	} else {
		item->sound = candidate_prove(watch->root, &tree, &item->ckpt, older, count);
	}
	item->proved = true;
	return 0;
}

int checkpoint_watch_scan(struct ckpt_watch *watch, struct mono now, struct err **err)
{
	struct mono begun = clock_mono_now();
	struct watched *next;
	int64_t listed_ms;

	watch->now = now;
	if (list_root(watch, err) < 0)
		return -1;
	listed_ms = clock_mono_now().ms - begun.ms;
	/* Proofs take about as long as the listing, so that even many checkpoints need only a
	 * few listings. */
	while ((next = to_prove(watch))) {
		if (prove(watch, next, err) < 0)
			return -1;
		if (!next->proved || clock_mono_now().ms - begun.ms >= 2 * listed_ms + PROVE_MS)
			return 0;
	}
	return 0;
}

bool checkpoint_watch_busy(const struct ckpt_watch *watch)
{
	return to_prove(watch) != NULL;
}

const struct ckpt *checkpoint_watch_next(struct ckpt_watch *watch)
{
	const struct watched *first = NULL;

	for (size_t i = 0; i < watch->count; i++) {
		const struct watched *item = &watch->items[i];

		if (is_settled(watch, item) && item->proved && item->ckpt.complete &&
		    watch->now.ms >= item->later.ms &&
		    (!first || (item->ckpt.step < first->ckpt.step) != watch->newest))
			first = item;
	}
	return first ? &first->ckpt : NULL;
}

const struct ckpt *checkpoint_watch_partial(struct ckpt_watch *watch, size_t n)
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

void checkpoint_watch_later(struct ckpt_watch *watch, const char *name, int64_t ms)
{
	item_of(watch, name)->later.ms = watch->now.ms + ms;
}

void checkpoint_watch_again(struct ckpt_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		watch->items[i].later.ms = 0;
}

/* True if a later one is there, whole or begun: the script has gone on. */
static bool has_newer(const struct ckpt_watch *watch, int64_t step)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->items[i].there && watch->items[i].ckpt.step > step)
			return true;
	return false;
}

bool checkpoint_watch_passed(const struct ckpt_watch *watch, const struct ckpt *partial,
			     int64_t unchanged_ms)
{
	for (size_t i = 0; i < watch->count; i++)
		if (&watch->items[i].ckpt == partial)
			return has_newer(watch, partial->step) ||
			       watch->now.ms - watch->items[i].since.ms >= unchanged_ms;
	return false;
}

bool checkpoint_watch_unrecognised(const struct ckpt_watch *watch, size_t n,
				   struct ckpt_unrecognised *ret)
{
	/* If checkpoints of this kind are found, the script saves the rest for another purpose. */
	for (size_t i = 0; i < watch->count; i++)
		if (watch->items[i].taken || watch->items[i].ckpt.complete)
			return false;
	for (size_t i = 0; i < watch->unrecognised_count; i++) {
		const struct unrecognised *one = &watch->unrecognised_list[i];

		if (!one->there || watch->now.ms - one->since.ms < watch->quiet_ms || n-- > 0)
			continue;
		*ret = (struct ckpt_unrecognised){ one->name, one->tag, one->named };
		return true;
	}
	return false;
}
