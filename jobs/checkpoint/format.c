/* Checks whether a file is whole, as far as its format tells. See format.h. */
#include "jobs/checkpoint/format.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "jobs/base/crc32c.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"

#define PICKLE_FRAME 0x95
#define PICKLE_STOP  '.'

static int bad(struct sb *why, const char *text)
{
	sb_adds(why, text);
	return -1;
}

/* Replaces NaN, Infinity and -Infinity outside of strings by 0. */
static char *without_nan(const char *text, size_t len)
{
	static const struct {
		const char *word;
		size_t len;
	} words[] = { { "-Infinity", 9 }, { "Infinity", 8 }, { "NaN", 3 } };
	char *copy = mem_copy_n(text, len);
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted && copy[i] == '\\')
			i++;
		else if (copy[i] == '"')
			quoted = !quoted;
		for (size_t k = 0; !quoted && k < STK_LENGTH(words); k++)
			if (len - i >= words[k].len &&
			    memcmp(copy + i, words[k].word, words[k].len) == 0) {
				memset(copy + i, ' ', words[k].len);
				/* "NaN" is too short for "null"; any valid value does. */
				copy[i] = '0';
				i += words[k].len - 1;
				break;
			}
	}
	return copy;
}

json_t *format_json(const char *text, size_t len)
{
	AUTO(auto_free) char *clean = without_nan(text, len);

	return json_loadb(clean, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
			  NULL);
}

static int prove_json(int fd, uint64_t size, struct sb *why)
{
	AUTO(auto_free) char *text = NULL;
	json_auto_t *value = NULL;

	if (size > FORMAT_JSON_MAX) {
		char first, last[2];

		if (checkpoint_read_at(fd, 0, &first, 1) < 0 ||
		    checkpoint_read_at(fd, size - 2, last, 2) < 0)
			return bad(why, "cannot be read");
		if (!strchr("{[", first) || (!strchr("}]", last[0]) && !strchr("}]", last[1])))
			return bad(why, "is not whole JSON");
		return 1;
	}
	text = mem_alloc((size_t)size + 1);
	if (checkpoint_read_at(fd, 0, text, (size_t)size) < 0)
		return bad(why, "cannot be read");
	value = format_json(text, (size_t)size);
	return value ? 1 : bad(why, "is not whole JSON");
}

/* Frames lie end to end, except data that is too large for a frame; only the first run of frames
 * is followed. */
static int prove_pickle(int fd, uint64_t size, struct sb *why)
{
	unsigned char head[9], last;
	uint64_t at = 2;

	while (size - at >= sizeof head) {
		uint64_t len;

		if (checkpoint_read_at(fd, at, head, sizeof head) < 0)
			return bad(why, "cannot be read");
		if (head[0] != PICKLE_FRAME)
			break;
		len = le64(head + 1);
		if (len > size - at - sizeof head)
			return bad(why, "is cut off: a frame ends behind the file");
		at += sizeof head + len;
	}
	if (checkpoint_read_at(fd, size - 1, &last, 1) < 0)
		return bad(why, "cannot be read");
	return last == PICKLE_STOP ? 0 : bad(why, "is cut off: no end of a pickle");
}

static int prove_hdf5(int fd, uint64_t size, const unsigned char *head, struct sb *why)
{
	unsigned char end[8];
	/* Superblocks 0 and 1 have two more addresses before the end of the file than 2 and 3;
	 * only addresses of 8 bytes are handled here. */
	uint64_t at = head[8] >= 2 ? 28 : head[8] == 1 ? 44 : 40;
	unsigned width = head[8] >= 2 ? head[9] : head[13];

	if (head[8] > 3 || width != 8)
		return 0;
	if (size < at + sizeof end || checkpoint_read_at(fd, at, end, sizeof end) < 0)
		return bad(why, "is cut off in its header");
	return le64(end) <= size ? 1 : bad(why, "is shorter than its header says");
}

static int prove_npy(int fd, uint64_t size, struct sb *why)
{
	char head[4096];
	size_t len = size < sizeof head ? (size_t)size : sizeof head;
	uint64_t data = 0, bytes = 0;
	int known;

	if (checkpoint_read_at(fd, 0, head, len) < 0)
		return bad(why, "cannot be read");
	known = format_npy(head, len, &data, &bytes);
	if (known < 0)
		return bad(why, "has no npy header");
	if (known > 0 && (size < data || size - data != bytes))
		return bad(why, "is not as long as its header says");
	return known;
}

/* Magic, length of the file (little endian), content, CRC-32C of the bytes before it: seen in
 * the files that Orbax 0.12.8 (tensorstore 0.1.86) writes. */
static int prove_ocdbt(int fd, uint64_t size, struct sb *why)
{
	static const unsigned char magic[] = { 0x0c, 0xdb, 0x3a, 0x2a };
	AUTO(auto_free) unsigned char *bytes = NULL;

	if (size < 16 || size > FORMAT_JSON_MAX)
		return bad(why, "has no length that a manifest can have");
	bytes = mem_alloc((size_t)size);
	if (checkpoint_read_at(fd, 0, bytes, (size_t)size) < 0)
		return bad(why, "cannot be read");
	if (memcmp(bytes, magic, sizeof magic) != 0)
		return bad(why, "does not begin as a manifest does");
	if (le64(bytes + 4) != size)
		return bad(why, "is not as long as its header says");
	if (le32(bytes + size - 4) != crc32c(bytes, (size_t)size - 4))
		return bad(why, "does not match its checksum");
	return 1;
}

/* Format that a name promises. */
enum promise { ANY, ZIP, TORCH, CHAIN, TENSORS, NPY, JSON, PICKLE, OCDBT, HDF5 };

static enum promise promised(const char *name)
{
	static const struct {
		const char *pattern;
		enum promise what;
	} table[] = {
		{ "*.safetensors", TENSORS },
		{ "*.npz", ZIP },
		{ "*.keras", ZIP },
		{ "*.pt", TORCH },
		{ "*.pth", TORCH },
		{ "*.ckpt", TORCH },
		/* Other programs write raw numbers into .bin. */
		{ "pytorch_model*.bin", TORCH },
		{ "adapter_model.bin", TORCH },
		{ "training_args.bin", TORCH },
		{ "optimizer*.bin", TORCH },
		{ "scheduler*.bin", TORCH },
		{ "*.distcp", CHAIN },
		{ "*.npy", NPY },
		{ "*.json", JSON },
		{ ".zarray", JSON },
		{ ".zattrs", JSON },
		{ ".zgroup", JSON },
		{ "_METADATA", JSON },
		{ "_CHECKPOINT_METADATA", JSON },
		{ "*.pkl", PICKLE },
		{ "*.pickle", PICKLE },
		{ ".metadata", PICKLE },
		{ "__*.metadata", PICKLE },
		{ "manifest.ocdbt", OCDBT },
		{ "*.h5", HDF5 },
		{ "*.hdf5", HDF5 },
	};

	for (size_t i = 0; i < STK_LENGTH(table); i++)
		if (fnmatch(table[i].pattern, name, 0) == 0)
			return table[i].what;
	return ANY;
}

/* Format by the first bytes, for names that promise nothing or one of several formats. */
static enum promise looks_like(const unsigned char *head, size_t len)
{
	if (len >= 4 && memcmp(head, "PK\3\4", 4) == 0)
		return ZIP;
	if (len >= 6 && memcmp(head, "\x93NUMPY", 6) == 0)
		return NPY;
	if (len >= 14 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0)
		return HDF5;
	if (len >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		return PICKLE;
	return ANY;
}

int format_prove(int fd, uint64_t size, const char *name, struct sb *why)
{
	enum promise want = promised(name), is;
	unsigned char head[16];
	size_t len = size < sizeof head ? (size_t)size : sizeof head;

	if (size == 0)
		return want == ANY ? 0 : bad(why, "is empty");
	if (checkpoint_read_at(fd, 0, head, len) < 0)
		return bad(why, errno ? "cannot be read" : "is cut off");
	is = looks_like(head, len);
	switch (want) {
	case TENSORS:
		return format_safetensors(fd, size, why);
	case JSON:
		return prove_json(fd, size, why);
	case OCDBT:
		return prove_ocdbt(fd, size, why);
	case ZIP:
		return format_zip(fd, size, false, why);
	case TORCH: /* torch.save wrote a pickle before 1.6 */
		if (is != ZIP && is != PICKLE && is != HDF5)
			return bad(why, "does not begin as torch.save begins a file");
		break;
	case PICKLE:
		if (is != PICKLE && is != ZIP)
			return bad(why, "does not begin as a pickle does");
		break;
	case NPY:
	case HDF5:
		if (is != want)
			return bad(why, "does not begin as its name says");
		break;
	case CHAIN: /* a zip with garbage at its start is damaged too */
		if (is != ZIP && size >= 22 && checkpoint_read_at(fd, size - 22, head, 4) == 0 &&
		    memcmp(head, "PK\5\6", 4) == 0)
			return bad(why, "does not begin as torch.save begins a file");
		break;
	case ANY:
		break;
	}
	switch (is) {
	case ZIP:
		return format_zip(fd, size, want == CHAIN, why);
	case NPY:
		return prove_npy(fd, size, why);
	case HDF5:
		return prove_hdf5(fd, size, head, why);
	case PICKLE:
		/* A legacy torch file is several pickles followed by raw numbers. */
		return want == PICKLE ? prove_pickle(fd, size, why) : 0;
	default:
		return 0;
	}
}
