/* Disks, inodes and their bytes, room and quotas: see tree_internal.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "tests/world/tree_internal.h"

#define FIRST_NUMBER 12 /* ext4 keeps those below */
#define ROOT_NUMBER  2
#define TICK_NS      (4 * WORLD_MS) /* stamps of files have the kernel's tick, of 250 Hz */
#define MAP_ROOM     ((size_t)16 << 20)

static void *get(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void *get_more(void *list, size_t *room, size_t size)
{
	*room = *room ? 2 * *room : 8;
	return get(realloc(list, *room * size));
}

/* ---- disks ---- */

struct disk *disk_new(enum disk_kind kind, const char *name)
{
	static unsigned count;
	struct disk *disk = get(calloc(1, sizeof *disk));

	disk->kind = kind;
	strncpy(disk->name, name, sizeof disk->name - 1);
	disk->device = kind == DISK_LOCAL ? makedev(259, ++count) : makedev(0, 40 + ++count);
	disk->bytes_free = disk->files_free = NEVER_LIMITED;
	disk->next_number = FIRST_NUMBER;
	disk->root = inode_new(disk, S_IFDIR | 0755, NULL);
	disk->root->links = 1;
	return disk;
}

void disk_limit(struct disk *disk, int64_t bytes_free, int64_t files_free, bool quota)
{
	disk->bytes_free = bytes_free < 0 ? NEVER_LIMITED : bytes_free;
	disk->files_free = files_free < 0 ? NEVER_LIMITED : files_free;
	disk->quota = quota;
}

void disk_refuse_folder_sync(struct disk *disk, bool refuse)
{
	disk->refuses_folder_sync = refuse;
}

int disk_full_error(const struct disk *disk)
{
	return disk->quota ? -EDQUOT : -ENOSPC;
}

bool disk_is_full(const struct disk *disk)
{
	return disk->bytes_free != NEVER_LIMITED && disk->bytes_free < BLOCK_BYTES;
}

void disk_give_room(struct disk *disk, int64_t blocks)
{
	if (disk->bytes_free != NEVER_LIMITED)
		disk->bytes_free += blocks * BLOCK_BYTES;
}

/* ext4 gives the lowest number that is free, so a file that was just made may have that of one just
 * removed; a disk in memory counts on. */
static uint64_t take_number(struct disk *disk)
{
	size_t at = 0;

	if (!disk->root)
		return ROOT_NUMBER;
	if (disk->kind == DISK_MEMORY)
		return disk->next_number++;
	while (at < disk->taken_len && disk->taken[at])
		at++;
	if (at == disk->taken_len) {
		size_t len = disk->taken_len ? 2 * disk->taken_len : 256;

		disk->taken = get(realloc(disk->taken, len));
		memset(disk->taken + at, 0, len - at);
		disk->taken_len = len;
	}
	disk->taken[at] = 1;
	return FIRST_NUMBER + at;
}

/* ---- content ---- */

static void block_unref(struct block *block)
{
	if (block && --block->refs == 0)
		free(block);
}

void content_release(struct content *content)
{
	for (size_t i = 0; i < content->count; i++)
		block_unref(content->blocks[i]);
	free(content->blocks);
	*content = (struct content){ 0 };
}

void content_copy(struct content *to, const struct content *from)
{
	content_release(to);
	to->size = from->size;
	to->count = to->room = from->count;
	if (to->count)
		to->blocks = get(malloc(to->count * sizeof(struct block *)));
	for (size_t i = 0; i < to->count; i++) {
		to->blocks[i] = from->blocks[i];
		if (to->blocks[i])
			to->blocks[i]->refs++;
	}
}

int64_t inode_blocks(const struct inode *inode)
{
	int64_t count = 0;

	for (size_t i = 0; i < inode->now.count; i++)
		count += inode->now.blocks[i] != NULL;
	return count;
}

/* ---- inodes ---- */

struct inode *inode_new(struct disk *disk, mode_t mode, struct machine *machine)
{
	struct inode *inode = get(calloc(1, sizeof *inode));
	int64_t now = machine ? inode_clock(disk, machine) : 0;

	inode->disk = disk;
	inode->number = take_number(disk);
	inode->mode = inode->kept_mode = mode;
	inode->times = (struct times){ now, now, now, now };
	inode->kept_times = inode->times;
	inode->dirty_since_ns = WORLD_NEVER;
	inode->next = disk->inodes;
	if (disk->inodes)
		disk->inodes->previous = inode;
	disk->inodes = inode;
	if (disk->root && disk->files_free != NEVER_LIMITED)
		disk->files_free--;
	return inode;
}

static void give_back(struct inode *inode)
{
	struct disk *disk = inode->disk;
	uint64_t at = inode->number - FIRST_NUMBER;

	inode->is_free = true;
	if (disk->kind != DISK_MEMORY && inode->number >= FIRST_NUMBER && at < disk->taken_len)
		disk->taken[at] = 0;
	if (disk->files_free != NEVER_LIMITED)
		disk->files_free++;
	disk_give_room(disk, inode_blocks(inode));
}

void inode_settle(struct inode *inode)
{
	if (inode->links > 0 || inode->opens > 0 || inode->made)
		return;
	if (!inode->is_free)
		give_back(inode);
	if (inode->undoes > 0)
		return;
	if (inode->previous)
		inode->previous->next = inode->next;
	else
		inode->disk->inodes = inode->next;
	if (inode->next)
		inode->next->previous = inode->previous;
	content_release(&inode->now);
	content_release(&inode->kept);
	free(inode->names.list);
	free(inode->target);
	free(inode);
}

void inode_open(struct inode *inode)
{
	inode->opens++;
}

void inode_close(struct inode *inode)
{
	inode->opens--;
	inode_settle(inode);
}

int64_t inode_clock(const struct disk *disk, const struct machine *machine)
{
	int64_t now =
		disk->has_wall ? disk->wall_ns + now_ns : machine_clock_ns(machine, CLOCK_REALTIME);

	return now - now % TICK_NS;
}

void inode_touch(struct inode *inode, const struct machine *machine, bool modified)
{
	int64_t now = inode_clock(inode->disk, machine);

	sync_before_write(inode);
	inode->times.change = now;
	if (modified)
		inode->times.modify = now;
	inode->changes++;
}

ssize_t inode_read(const struct inode *inode, int64_t at, void *buffer, size_t len)
{
	uint8_t *to = buffer;
	size_t done = 0;

	if (at >= inode->now.size)
		return 0;
	if ((int64_t)len > inode->now.size - at)
		len = (size_t)(inode->now.size - at);
	if (inode->flat) {
		memcpy(buffer, inode->flat + at, len);
		return (ssize_t)len;
	}
	while (done < len) {
		size_t index = (size_t)((at + (int64_t)done) / BLOCK_BYTES);
		size_t from = (size_t)((at + (int64_t)done) % BLOCK_BYTES);
		size_t part = BLOCK_BYTES - from < len - done ? BLOCK_BYTES - from : len - done;
		struct block *block = index < inode->now.count ? inode->now.blocks[index] : NULL;

		if (block)
			memcpy(to + done, block->bytes + from, part);
		else
			memset(to + done, 0, part);
		done += part;
	}
	return (ssize_t)len;
}

/* The block for a write: NULL where the disk is full. */
static struct block *own_block(struct inode *inode, size_t index)
{
	struct content *now = &inode->now;
	struct block *old, *block;

	while (index >= now->room)
		now->blocks = get_more(now->blocks, &now->room, sizeof(struct block *));
	while (now->count <= index)
		now->blocks[now->count++] = NULL;
	old = now->blocks[index];
	if (old && old->refs == 1)
		return old;
	if (!old && disk_is_full(inode->disk))
		return NULL;
	block = get(calloc(1, sizeof *block));
	block->refs = 1;
	if (old) {
		memcpy(block->bytes, old->bytes, BLOCK_BYTES);
		old->refs--;
	} else {
		disk_give_room(inode->disk, -1);
	}
	now->blocks[index] = block;
	return block;
}

ssize_t inode_write(struct inode *inode, const struct machine *machine, int64_t at,
		    const void *bytes, size_t len)
{
	const uint8_t *from = bytes;
	size_t done = 0;

	if (len == 0)
		return 0;
	if (inode->flat && (size_t)at + len > inode->flat_len)
		return -EFBIG;
	inode_touch(inode, machine, true);
	while (done < len) {
		size_t index = (size_t)((at + (int64_t)done) / BLOCK_BYTES);
		size_t to = (size_t)((at + (int64_t)done) % BLOCK_BYTES);
		size_t part = BLOCK_BYTES - to < len - done ? BLOCK_BYTES - to : len - done;
		struct block *block = own_block(inode, index);

		if (!block)
			break;
		memcpy(block->bytes + to, from + done, part);
		done += part;
	}
	if (done == 0)
		return disk_full_error(inode->disk);
	if (inode->flat)
		memcpy(inode->flat + at, bytes, done);
	if (at + (int64_t)done > inode->now.size)
		inode->now.size = at + (int64_t)done;
	return (ssize_t)done;
}

/* What lies behind the end is gone, and reads as zeros if the file grows again. */
void inode_cut(struct inode *inode, int64_t size)
{
	struct content *now = &inode->now;
	size_t blocks = (size_t)((size + BLOCK_BYTES - 1) / BLOCK_BYTES);
	size_t inside = (size_t)(size % BLOCK_BYTES);

	if (inode->flat)
		memset(inode->flat + size, 0, inode->flat_len - (size_t)size);
	while (now->count > blocks) {
		struct block *last = now->blocks[--now->count];

		disk_give_room(inode->disk, last != NULL);
		block_unref(last);
	}
	if (inside && now->count == blocks && now->blocks[blocks - 1]) {
		struct block *last = own_block(inode, blocks - 1);

		memset(last->bytes + inside, 0, BLOCK_BYTES - inside);
	}
}

int inode_resize(struct inode *inode, const struct machine *machine, int64_t size)
{
	if (inode->flat && (size_t)size > inode->flat_len)
		return -EFBIG;
	inode_touch(inode, machine, true);
	if (size < inode->now.size)
		inode_cut(inode, size);
	inode->now.size = size;
	return 0;
}

int inode_allocate(struct inode *inode, const struct machine *machine, int64_t at, int64_t len)
{
	size_t first = (size_t)(at / BLOCK_BYTES), end;

	end = (size_t)((at + len + BLOCK_BYTES - 1) / BLOCK_BYTES);
	inode_touch(inode, machine, false);
	for (size_t i = first; i < end; i++) {
		bool there = i < inode->now.count && inode->now.blocks[i];

		if (!there && !own_block(inode, i))
			return disk_full_error(inode->disk);
	}
	if (at + len > inode->now.size)
		inode->now.size = at + len;
	return 0;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / WORLD_S, .tv_nsec = ns % WORLD_S };
}

void inode_stat(const struct inode *inode, struct stat *ret)
{
	bool is_folder = S_ISDIR(inode->mode);

	memset(ret, 0, sizeof *ret);
	ret->st_dev = inode->disk->device;
	ret->st_ino = inode->number;
	ret->st_mode = inode->mode;
	ret->st_nlink = is_folder && inode->links > 0 ? 2 + inode->folders : inode->links;
	ret->st_rdev = inode->device;
	ret->st_size = inode->now.size;
	if (is_folder)
		ret->st_size = inode->disk->kind == DISK_MEMORY
				       ? 40 + 20 * (off_t)inode->names.count
				       : BLOCK_BYTES;
	if (inode->target)
		ret->st_size = (off_t)strlen(inode->target);
	ret->st_blksize = BLOCK_BYTES;
	ret->st_blocks = inode_blocks(inode) * (BLOCK_BYTES / 512);
	ret->st_atim = to_timespec(inode->times.access);
	ret->st_mtim = to_timespec(inode->times.modify);
	ret->st_ctim = to_timespec(inode->times.change);
}
