/* Zip files from their end: end record, central directory, the header of each entry. See
 * format.h. Layout: PKWARE's APPNOTE.TXT 4.3.6 to 4.3.16; sizes of 32 and 64 bits, one disk,
 * nothing encrypted.
 *
 * torch.save writes a zip64 record with every file; numpy's savez writes one zip of npy entries.
 * torch.distributed.checkpoint appends one such file to the other in a .distcp; each counts its
 * offsets from its own start. */
#include <string.h>

#include "jobs/checkpoint/format.h"

#define END_BYTES     22
#define END64_BYTES   56
#define LOCATOR_BYTES 20
#define ENTRY_BYTES   46
#define LOCAL_BYTES   30
#define COMMENT_MAX   65535
#define DIRECTORY_MAX ((uint64_t)64 << 20) /* enough for 500,000 tensors */
#define CHAIN_MAX     65536

struct zip {
	int fd;
	uint64_t size;                                       /* end of this zip in the file */
	uint64_t start, directory, directory_bytes, entries; /* as read from the end record */
	struct sb *why;
};

static int bad(const struct zip *zip, const char *text)
{
	sb_adds(zip->why, text);
	return -1;
}

/* Finds the end record: at the very end, or before a comment that ends there. */
static int find_end(const struct zip *zip, uint64_t *ret_at)
{
	AUTO(auto_free) unsigned char *tail = NULL;
	size_t len;

	if (zip->size < END_BYTES)
		return -1;
	len = zip->size < END_BYTES + COMMENT_MAX ? (size_t)zip->size : END_BYTES + COMMENT_MAX;
	tail = mem_alloc(len);
	if (checkpoint_read_at(zip->fd, zip->size - len, tail, len) < 0)
		return -1;
	for (size_t at = len - END_BYTES + 1; at-- > 0;)
		if (memcmp(tail + at, "PK\5\6", 4) == 0 &&
		    le16(tail + at + 20) == len - at - END_BYTES) {
			*ret_at = zip->size - len + at;
			return 0;
		}
	return -1;
}

/* Reads the zip64 record, if one stands before the end record at `end`. Returns 1 with the
 * fields taken from it and its offset in `ret_at`, 0 if absent, -1 if damaged. */
static int read_end64(struct zip *zip, uint64_t end, uint64_t *ret_at)
{
	unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];

	if (end < LOCATOR_BYTES + END64_BYTES)
		return 0;
	if (checkpoint_read_at(zip->fd, end - LOCATOR_BYTES, locator, sizeof locator) < 0)
		return -1;
	if (memcmp(locator, "PK\6\7", 4) != 0)
		return 0;
	*ret_at = end - LOCATOR_BYTES - END64_BYTES;
	if (checkpoint_read_at(zip->fd, *ret_at, record, sizeof record) < 0 ||
	    memcmp(record, "PK\6\6", 4) != 0 || le64(record + 4) != END64_BYTES - 12)
		return -1;
	zip->entries = le64(record + 32);
	zip->directory_bytes = le64(record + 40);
	zip->directory = le64(record + 48);
	return 1;
}

/* Finds the directory; afterwards zip->start is the start of this zip. */
static int read_end(struct zip *zip)
{
	unsigned char record[END_BYTES];
	uint64_t end, edge;
	int large;

	if (find_end(zip, &end) < 0 || checkpoint_read_at(zip->fd, end, record, sizeof record) < 0)
		return bad(zip, "is cut off: no end record");
	zip->entries = le16(record + 10);
	zip->directory_bytes = le32(record + 12);
	zip->directory = le32(record + 16);
	edge = end;
	large = read_end64(zip, end, &edge);
	if (large < 0)
		return bad(zip, "has a damaged end record");
	if (large == 0)
		edge = end;
	if (zip->directory_bytes > edge || zip->directory > edge - zip->directory_bytes)
		return bad(zip, "is cut off: the directory does not fit into it");
	zip->start = edge - zip->directory_bytes - zip->directory;
	return 0;
}

/* Reads the sizes and the offset that did not fit into 32 bits from an extra field. */
static void read_extra64(const unsigned char *extra, size_t len, uint64_t *stored, uint64_t *plain,
			 uint64_t *offset)
{
	while (len >= 4) {
		size_t field = le16(extra + 2);
		const unsigned char *at = extra + 4;

		if (field > len - 4)
			return;
		if (le16(extra) == 1) {
			uint64_t *const wanted[] = { plain, stored, offset };

			for (size_t i = 0; i < STK_LENGTH(wanted); i++)
				if (*wanted[i] == UINT32_MAX && field >= 8) {
					*wanted[i] = le64(at);
					at += 8;
					field -= 8;
				}
			return;
		}
		extra += 4 + field;
		len -= 4 + field;
	}
}

/* True if a stored npy is as long as its header says. */
static bool npy_fits(const struct zip *zip, uint64_t data, uint64_t bytes)
{
	char head[1024];
	size_t len = bytes < sizeof head ? (size_t)bytes : sizeof head;
	uint64_t begin = 0, want = 0;
	int known;

	if (checkpoint_read_at(zip->fd, data, head, len) < 0)
		return false;
	known = format_npy(head, len, &begin, &want);
	return known == 0 || (known > 0 && bytes >= begin && bytes - begin == want);
}

/* Checks the entry at `entry` of the directory, of which `left` bytes remain. Returns its
 * length, 0 if it is damaged. */
static size_t check_entry(const struct zip *zip, const unsigned char *entry, size_t left)
{
	unsigned char local[LOCAL_BYTES];
	uint64_t stored, plain, offset, data, room;
	size_t name, extra, len;

	if (left < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
		return 0;
	name = le16(entry + 28);
	extra = le16(entry + 30);
	len = ENTRY_BYTES + name + extra + le16(entry + 32);
	if (len > left)
		return 0;
	stored = le32(entry + 20);
	plain = le32(entry + 24);
	offset = le32(entry + 42);
	read_extra64(entry + ENTRY_BYTES + name, extra, &stored, &plain, &offset);
	if (offset > zip->directory || zip->directory - offset < LOCAL_BYTES)
		return 0;
	if (checkpoint_read_at(zip->fd, zip->start + offset, local, sizeof local) < 0 ||
	    memcmp(local, "PK\3\4", 4) != 0 || le16(local + 26) != name)
		return 0;
	room = zip->directory - offset - LOCAL_BYTES;
	data = name + le16(local + 28);
	if (data > room || stored > room - data)
		return 0;
	data += zip->start + offset + LOCAL_BYTES;
	if (le16(entry + 10) == 0 && plain != stored)
		return 0;
	if (le16(entry + 10) == 0 && name > 4 &&
	    memcmp(entry + ENTRY_BYTES + name - 4, ".npy", 4) == 0 && !npy_fits(zip, data, stored))
		return 0;
	return len;
}

static int check_directory(const struct zip *zip)
{
	AUTO(auto_free) unsigned char *bytes = NULL;
	size_t at = 0, len;
	uint64_t entries = 0;

	if (zip->directory_bytes > DIRECTORY_MAX)
		return bad(zip, "has a directory longer than is looked at");
	len = (size_t)zip->directory_bytes;
	bytes = mem_alloc(len + 1);
	if (checkpoint_read_at(zip->fd, zip->start + zip->directory, bytes, len) < 0)
		return bad(zip, "cannot be read");
	while (at < len) {
		size_t entry = check_entry(zip, bytes + at, len - at);

		if (entry == 0)
			return bad(zip, "is damaged: an entry of its directory is not there");
		at += entry;
		entries++;
	}
	if (entries == 0)
		return bad(zip, "holds nothing");
	if (entries != zip->entries)
		return bad(zip, "is damaged: the directory has another number of entries");
	return 1;
}

int format_zip(int fd, uint64_t size, bool chain, struct sb *why)
{
	struct zip zip = { .fd = fd, .size = size, .why = why };

	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		if (read_end(&zip) < 0 || check_directory(&zip) < 0)
			return -1;
		if (zip.start == 0)
			return 1;
		if (!chain)
			return bad(&zip, "is damaged: the directory does not reach its start");
		zip.size = zip.start;
	}
	return 1; /* a longer chain is not checked further */
}
