/* Files of tensors that carry a header: safetensors and npy. See format.h.
 *
 * safetensors (format description at huggingface.co/docs/safetensors): 8 bytes N, little endian;
 * N bytes of JSON {"name": {"dtype","shape","data_offsets": [begin, end)}…, "__metadata__":
 * {…}}; then the buffer, which the offsets cover without holes up to the end of the file.
 *
 * npy (numpy.lib.format): "\x93NUMPY", version, length of a Python literal with descr,
 * fortran_order and shape, then the data. */
#include <inttypes.h>
#include <string.h>

#include "jobs/checkpoint/format.h"

static int bad(struct sb *why, const char *text)
{
	sb_adds(why, text);
	return -1;
}

/* Returns the bits of an element; 0 for a type that is newer than this code. */
static uint64_t bits_of(const char *dtype)
{
	static const struct {
		const char *name;
		unsigned bits;
	} table[] = {
		{ "BOOL", 8 }, { "U8", 8 },      { "I8", 8 },   { "F8_E5M2", 8 }, { "F8_E4M3", 8 },
		{ "I16", 16 }, { "U16", 16 },    { "F16", 16 }, { "BF16", 16 },   { "I32", 32 },
		{ "U32", 32 }, { "F32", 32 },    { "F64", 64 }, { "I64", 64 },    { "U64", 64 },
		{ "C64", 64 }, { "F8_E8M0", 8 }, { "F4", 4 },
	};

	for (size_t i = 0; i < STK_LENGTH(table); i++)
		if (strcmp(table[i].name, dtype) == 0)
			return table[i].bits;
	return 0;
}

/* True if the shape needs exactly `bytes`. */
static bool shape_fits(const json_t *shape, uint64_t bits, uint64_t bytes)
{
	uint64_t total = bits;

	for (size_t i = 0; i < json_array_size(shape); i++) {
		const json_t *side = json_array_get(shape, i);

		if (!json_is_integer(side) || json_integer_value(side) < 0)
			return false;
		if (__builtin_mul_overflow(total, (uint64_t)json_integer_value(side), &total))
			return false;
	}
	return bits == 0 || (total % 8 == 0 && total / 8 == bytes);
}

/* Checks one entry of the header, and adds its bytes to `covered`. */
static bool tensor_fits(const json_t *tensor, uint64_t buffer, uint64_t *covered, uint64_t *last)
{
	const json_t *offsets = json_object_get(tensor, "data_offsets");
	const json_t *shape = json_object_get(tensor, "shape");
	const char *dtype = js_str(tensor, "dtype");
	int64_t begin, end;

	if (!dtype || !json_is_array(shape) || json_array_size(offsets) != 2 ||
	    !json_is_integer(json_array_get(offsets, 0)) ||
	    !json_is_integer(json_array_get(offsets, 1)))
		return false;
	begin = json_integer_value(json_array_get(offsets, 0));
	end = json_integer_value(json_array_get(offsets, 1));
	if (begin < 0 || end < begin || (uint64_t)end > buffer)
		return false;
	if (__builtin_add_overflow(*covered, (uint64_t)(end - begin), covered))
		return false;
	if ((uint64_t)end > *last)
		*last = (uint64_t)end;
	return shape_fits(shape, bits_of(dtype), (uint64_t)(end - begin));
}

static int check_header(json_t *header, uint64_t buffer, struct sb *why)
{
	uint64_t covered = 0, last = 0;
	const char *name;
	json_t *tensor;

	if (!json_is_object(header))
		return bad(why, "has a header that is not a JSON object");
	json_object_foreach (header, name, tensor) {
		if (strcmp(name, "__metadata__") == 0)
			continue;
		if (!tensor_fits(tensor, buffer, &covered, &last)) {
			sb_addf(why, "is cut off or damaged: tensor '%.200s' does not fit into it",
				name);
			return -1;
		}
	}
	if (last != buffer || covered != buffer)
		return bad(why, "is not as long as its header says");
	return 1;
}

int format_safetensors(int fd, uint64_t size, struct sb *why)
{
	AUTO(auto_free) char *text = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *header = NULL;
	unsigned char head[8];
	uint64_t len;

	if (size < sizeof head + 2 || checkpoint_read_at(fd, 0, head, sizeof head) < 0)
		return bad(why, "is cut off in its header");
	len = le64(head);
	if (len > size - sizeof head) {
		sb_addf(why, "is cut off: the header should have %" PRIu64 " bytes", len);
		return -1;
	}
	if (len > FORMAT_JSON_MAX)
		return bad(why, "has a header longer than is looked at");
	text = mem_alloc((size_t)len + 1);
	if (checkpoint_read_at(fd, sizeof head, text, (size_t)len) < 0)
		return bad(why, "cannot be read");
	if (js_parse(text, (size_t)len, "the header", &header, &ignored) < 0)
		return bad(why, "has garbage for a header");
	return check_header(header, size - sizeof head - len, why);
}

/* Returns the text after `'key':` with blanks skipped, or NULL. */
static const char *literal_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		return NULL;
	at += strlen(key);
	while (*at == ' ')
		at++;
	return at;
}

/* Returns the bytes of an element of '<f4', '|b1', '<U7' …, 0 if it has no fixed size. */
static uint64_t element_of(const char *descr)
{
	uint64_t size = 0;
	char type;

	if (*descr++ != '\'' || !*descr || !strchr("<>|=", *descr++))
		return 0;
	type = *descr;
	if (!type || !strchr("bBiufcSUVmM", type))
		return 0;
	for (descr++; *descr >= '0' && *descr <= '9' && size < UINT32_MAX; descr++)
		size = size * 10 + (uint64_t)(*descr - '0');
	return type == 'U' ? size * 4 : size;
}

/* Counts the elements of a shape such as "(3, 4)". Returns false if it is not a shape or too
 * large. */
static bool elements_of(const char *shape, uint64_t *ret)
{
	uint64_t total = 1;

	if (*shape++ != '(')
		return false;
	while (*shape != ')') {
		uint64_t side = 0;

		if (*shape == ' ' || *shape == ',') {
			shape++;
			continue;
		}
		if (*shape < '0' || *shape > '9')
			return false;
		for (; *shape >= '0' && *shape <= '9'; shape++)
			if (__builtin_mul_overflow(side, 10u, &side) ||
			    __builtin_add_overflow(side, (uint64_t)(*shape - '0'), &side))
				return false;
		if (__builtin_mul_overflow(total, side, &total))
			return false;
	}
	*ret = total;
	return true;
}

int format_npy(const char *bytes, size_t len, uint64_t *ret_data, uint64_t *ret_bytes)
{
	AUTO(auto_free) char *text = NULL;
	const char *descr, *shape;
	uint64_t header, start, element, elements;

	if (len < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
		return -1;
	start = bytes[6] == 1 ? 10 : 12;
	header = bytes[6] == 1 ? le16((const unsigned char *)bytes + 8)
			       : le32((const unsigned char *)bytes + 8);
	if (header < 2 || bytes[start] != '{')
		return -1;
	if (header > len - start)
		return 0; /* a record type with many fields: longer than the bytes read */
	text = mem_copy_n(bytes + start, (size_t)header);
	if (text[header - 1] != '\n')
		return -1;
	descr = literal_of(text, "'descr':");
	shape = literal_of(text, "'shape':");
	if (!descr || !shape)
		return -1;
	element = element_of(descr);
	if (element == 0)
		return 0;
	if (!elements_of(shape, &elements) || __builtin_mul_overflow(elements, element, ret_bytes))
		return -1;
	*ret_data = start + header;
	return 1;
}
