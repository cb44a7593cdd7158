/* Names of folders; what of names and bytes has reached the disk, and a loss of power: see
 * tree_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/world/tree_internal.h"

/* The kernel writes by itself what was changed so long ago: /proc/sys/vm/dirty_expire_centisecs. */
#define WRITE_BACK_NS (30 * WORLD_S)

static void *get(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* ---- names ---- */

/* FNV-1a with the folder, mixed once more: neither sorted nor in the order of creation. */
uint64_t name_hash(const struct inode *folder, const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ folder->number;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	hash ^= hash >> 32;
	hash &= INT64_MAX; /* it is the offset of a folder, too */
	return hash > 2 ? hash : 3;
}

size_t names_after(const struct names *names, uint64_t hash)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (names->list[middle].hash > hash)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct name *find(const struct names *names, uint64_t hash, const char *text)
{
	size_t at = names_after(names, hash - 1);

	if (at == names->count || names->list[at].hash != hash)
		return NULL;
	if (strcmp(names->list[at].text, text) != 0)
		abort(); /* two names with one hash of 63 bits */
	return &names->list[at];
}

struct inode *names_find(const struct inode *folder, const char *text)
{
	struct name *name = find(&folder->names, name_hash(folder, text), text);

	return name ? name->inode : NULL;
}

void names_add(struct names *names, uint64_t hash, const char *text, struct inode *inode)
{
	size_t at = names_after(names, hash);

	if (names->count == names->room) {
		names->room = names->room ? 2 * names->room : 8;
		names->list = get(realloc(names->list, names->room * sizeof *names->list));
	}
	memmove(names->list + at + 1, names->list + at, (names->count - at) * sizeof *names->list);
	names->list[at] = (struct name){ hash, get(strdup(text)), inode };
	names->count++;
}

static void drop_link(struct inode *folder, struct inode *inode)
{
	inode->links--;
	if (S_ISDIR(inode->mode)) {
		folder->folders--;
		if (inode->links == 0)
			inode->parent = NULL;
	}
}

static void add_link(struct inode *folder, struct inode *inode)
{
	inode->links++;
	if (S_ISDIR(inode->mode)) {
		folder->folders++;
		inode->parent = folder;
	}
}

void names_set(struct inode *folder, const char *text, struct inode *inode)
{
	uint64_t hash = name_hash(folder, text);
	struct name *name = find(&folder->names, hash, text);
	struct inode *before = name ? name->inode : NULL;

	if (inode)
		add_link(folder, inode);
	if (name && inode) {
		name->inode = inode;
	} else if (name) {
		size_t at = (size_t)(name - folder->names.list);

		free(name->text);
		folder->names.count--;
		memmove(name, name + 1, (folder->names.count - at) * sizeof *name);
	} else if (inode) {
		names_add(&folder->names, hash, text, inode);
	}
	folder->changes++;
	if (before) {
		drop_link(folder, before);
		inode_settle(before);
	}
}

/* ---- changes that are not on the disk ---- */

static bool keeps_undoes(const struct disk *disk)
{
	return disk->kind == DISK_LOCAL;
}

static struct undo_part part_of(struct inode *folder, const char *text)
{
	struct undo_part part = { folder, names_find(folder, text), get(strdup(text)) };

	folder->undoes++;
	if (part.before)
		part.before->undoes++;
	return part;
}

static void release_undo(struct undo *undo)
{
	for (int i = 0; i < undo->count; i++) {
		struct undo_part *part = &undo->parts[i];

		free(part->text);
		if (part->before) {
			part->before->undoes--;
			inode_settle(part->before);
		}
		part->folder->undoes--;
		inode_settle(part->folder);
	}
}

/* Those that are marked are on the disk now. */
static void release_marked(struct disk *disk)
{
	size_t left = 0;

	for (size_t i = 0; i < disk->undo_count; i++)
		if (disk->undos[i].lost)
			release_undo(&disk->undos[i]);
		else
			disk->undos[left++] = disk->undos[i];
	disk->undo_count = left;
}

static struct undo *add_undo(struct disk *disk, int count)
{
	size_t old = 0;

	while (old < disk->undo_count && disk->undos[old].at_ns + WRITE_BACK_NS < now_ns)
		disk->undos[old++].lost = true;
	if (old > 0)
		release_marked(disk);
	if (disk->undo_count == disk->undo_room) {
		disk->undo_room = disk->undo_room ? 2 * disk->undo_room : 16;
		disk->undos = get(realloc(disk->undos, disk->undo_room * sizeof *disk->undos));
	}
	disk->undos[disk->undo_count] = (struct undo){ .at_ns = now_ns, .count = count };
	return &disk->undos[disk->undo_count++];
}

void change_one(struct inode *folder, const char *text, struct inode *inode)
{
	if (keeps_undoes(folder->disk)) {
		struct undo *undo = add_undo(folder->disk, 1);

		undo->parts[0] = part_of(folder, text);
	}
	names_set(folder, text, inode);
}

/* Whether a folder changes its place: then which folder lies in which is on the disk at once, for a
 * part of such changes may be a ring. */
static bool moves_folder(const struct inode *folder, const struct inode *inode,
			 const struct inode *folder2, const struct inode *inode2)
{
	return folder != folder2 &&
	       ((inode && S_ISDIR(inode->mode)) || (inode2 && S_ISDIR(inode2->mode)));
}

void change_two(struct inode *folder, const char *text, struct inode *inode, struct inode *folder2,
		const char *text2, struct inode *inode2)
{
	struct disk *disk = folder->disk;

	if (keeps_undoes(disk)) {
		struct undo *undo = add_undo(disk, 2);

		undo->parts[0] = part_of(folder, text);
		undo->parts[1] = part_of(folder2, text2);
	}
	/* The new name first, lest an inode have none for a moment. */
	names_set(folder2, text2, inode2);
	names_set(folder, text, inode);
	if (inode2 && S_ISDIR(inode2->mode))
		inode2->parent = folder2;
	if (inode && S_ISDIR(inode->mode))
		inode->parent = folder;
	if (moves_folder(folder, inode, folder2, inode2)) {
		for (size_t i = 0; i < disk->undo_count; i++)
			disk->undos[i].lost = true;
		release_marked(disk);
	}
}

static bool share_a_name(const struct undo *a, const struct undo *b)
{
	for (int i = 0; i < a->count; i++)
		for (int j = 0; j < b->count; j++)
			if (a->parts[i].folder == b->parts[j].folder &&
			    strcmp(a->parts[i].text, b->parts[j].text) == 0)
				return true;
	return false;
}

/* Names of one folder last, with all earlier changes of the same names. */
static void sync_names(struct inode *folder)
{
	struct disk *disk = folder->disk;
	bool any = false;

	for (size_t i = disk->undo_count; i-- > 0;) {
		struct undo *undo = &disk->undos[i];

		for (int part = 0; part < undo->count; part++)
			undo->lost = undo->lost || undo->parts[part].folder == folder;
		for (size_t later = i + 1; any && later < disk->undo_count && !undo->lost; later++)
			undo->lost =
				disk->undos[later].lost && share_a_name(undo, &disk->undos[later]);
		any = any || undo->lost;
	}
	if (any)
		release_marked(disk);
}

/* ---- bytes ---- */

static void keep_inode(struct inode *inode)
{
	content_copy(&inode->kept, &inode->now);
	inode->kept_times = inode->times;
	inode->kept_mode = inode->mode;
	inode->dirty_since_ns = WORLD_NEVER;
}

void sync_before_write(struct inode *inode)
{
	if (inode->disk->kind == DISK_MEMORY || inode->made)
		return;
	if (inode->dirty_since_ns != WORLD_NEVER && inode->dirty_since_ns + WRITE_BACK_NS < now_ns)
		keep_inode(inode);
	if (inode->dirty_since_ns == WORLD_NEVER)
		inode->dirty_since_ns = now_ns;
}

int64_t sync_dirty(const struct inode *inode)
{
	int64_t bytes = 0;

	if (inode->dirty_since_ns == WORLD_NEVER)
		return 0;
	for (size_t i = 0; i < inode->now.count; i++)
		if (i >= inode->kept.count || inode->kept.blocks[i] != inode->now.blocks[i])
			bytes += BLOCK_BYTES;
	return bytes;
}

int64_t sync_inode(struct inode *inode)
{
	int64_t bytes = sync_dirty(inode);

	if (inode->disk->kind == DISK_MEMORY || inode->made)
		return 0;
	if (S_ISDIR(inode->mode))
		sync_names(inode);
	if (inode->dirty_since_ns != WORLD_NEVER)
		keep_inode(inode);
	return bytes;
}

int64_t sync_disk(struct disk *disk)
{
	int64_t bytes = 0;

	for (struct inode *inode = disk->inodes; inode; inode = inode->next)
		if (inode->dirty_since_ns != WORLD_NEVER) {
			bytes += sync_dirty(inode);
			keep_inode(inode);
		}
	for (size_t i = 0; i < disk->undo_count; i++)
		disk->undos[i].lost = true;
	release_marked(disk);
	return bytes;
}

/* ---- loss of power ---- */

/* A change is lost if an earlier one of the same name is, or by chance. */
static void draw_lost(struct disk *disk)
{
	for (size_t i = 0; i < disk->undo_count; i++) {
		struct undo *undo = &disk->undos[i];
		bool old = undo->at_ns + WRITE_BACK_NS < now_ns;

		undo->lost = !old && chance_one_in(2);
		for (size_t earlier = 0; earlier < i && !undo->lost; earlier++)
			undo->lost = disk->undos[earlier].lost &&
				     share_a_name(undo, &disk->undos[earlier]);
	}
}

static void take_back_names(struct disk *disk)
{
	draw_lost(disk);
	for (size_t i = disk->undo_count; i-- > 0;)
		if (disk->undos[i].lost)
			for (int part = 0; part < disk->undos[i].count; part++) {
				struct undo_part *undo = &disk->undos[i].parts[part];

				names_set(undo->folder, undo->text, undo->before);
			}
	for (size_t i = 0; i < disk->undo_count; i++)
		disk->undos[i].lost = true;
	release_marked(disk);
}

/* An inode that is there again although its number was given away gets another one. */
static void revive(struct inode *inode)
{
	struct inode *fresh;

	if (!inode->is_free || inode->links == 0)
		return;
	fresh = inode_new(inode->disk, S_IFREG, NULL);
	inode->number = fresh->number;
	inode->is_free = false;
	disk_give_room(inode->disk, -inode_blocks(inode));
	fresh->is_free = true;
	inode_settle(fresh);
}

/* The end of the file: the old one, the new one, or a whole block between them. */
static int64_t draw_size(int64_t kept, int64_t now)
{
	int64_t low = kept < now ? kept : now, high = kept < now ? now : kept;
	int64_t blocks = (high - low) / BLOCK_BYTES;

	if (chance_one_in(2))
		return chance_one_in(2) ? kept : now;
	low -= low % BLOCK_BYTES;
	low += BLOCK_BYTES * chance_below(blocks + 1);
	return low < (kept < now ? kept : now) ? kept : low;
}

static void lose_bytes(struct inode *inode)
{
	struct content mixed = { 0 };
	const struct content *kept = &inode->kept, *now = &inode->now;
	int64_t blocks = inode_blocks(inode);

	content_copy(&mixed, now->count > kept->count ? now : kept);
	for (size_t i = 0; i < mixed.count; i++) {
		const struct content *one = chance_one_in(2) ? kept : now;
		struct block *block = i < one->count ? one->blocks[i] : NULL;

		if (block)
			block->refs++;
		if (mixed.blocks[i] && --mixed.blocks[i]->refs == 0)
			free(mixed.blocks[i]);
		mixed.blocks[i] = block;
	}
	mixed.size = draw_size(kept->size, now->size);
	content_release(&inode->now);
	inode->now = mixed;
	disk_give_room(inode->disk, blocks - inode_blocks(inode));
	inode_cut(inode, mixed.size);
}

static void lose_inode(struct inode *inode)
{
	bool old = inode->dirty_since_ns != WORLD_NEVER &&
		   inode->dirty_since_ns + WRITE_BACK_NS < now_ns;

	if (inode->dirty_since_ns == WORLD_NEVER || old)
		return;
	if (S_ISREG(inode->mode))
		lose_bytes(inode);
	if (chance_one_in(2)) {
		inode->mode = inode->kept_mode;
		inode->times = inode->kept_times;
	}
}

void disk_lose_power(struct disk *disk)
{
	struct inode *next;

	if (disk->kind == DISK_MEMORY)
		return;
	take_back_names(disk);
	for (struct inode *inode = disk->inodes; inode; inode = next) {
		next = inode->next;
		revive(inode);
	}
	for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
		lose_inode(inode);
		if (inode->dirty_since_ns != WORLD_NEVER)
			keep_inode(inode);
	}
}
