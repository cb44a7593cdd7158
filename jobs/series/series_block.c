/* Blocks of readings: see series_block.h. */
#include "jobs/series/series_block.h"

#include <string.h>
#include <zlib.h>

#define MAGIC       "stkser1\n"
#define SUM_FROM    16
#define DEFINITION  "1"          /* of a reading (metric_reader.h): another one, other readings */
#define READING_MAX (3 * 10 + 8) /* bytes of the longest reading */

uint32_t series_sum(const json_t *specs, const char *prefix, int node)
{
	AUTO(auto_free) char *place = mem_format(DEFINITION " %snode-%d", prefix, node);
	uLong sum = crc32(crc32(0, NULL, 0), (const Bytef *)place, (uInt)strlen(place) + 1);
	const json_t *spec;
	size_t i;

	json_array_foreach (specs, i, spec) {
		const char *texts[] = { js_str(spec, "name"), js_str(spec, "regex") };

		for (size_t k = 0; k < STK_LENGTH(texts); k++)
			if (texts[k])
				sum = crc32(sum, (const Bytef *)texts[k],
					    (uInt)strlen(texts[k]) + 1);
	}
	return (uint32_t)sum;
}

/* ---- numbers ---- */

static void put_fixed(unsigned char *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

void series_block_put_number(struct sb *out, uint64_t value, size_t bytes)
{
	unsigned char fixed[8];

	put_fixed(fixed, value, bytes);
	sb_add(out, fixed, bytes);
}

uint64_t series_block_get_number(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void add_varint(struct sb *out, uint64_t value)
{
	do {
		sb_addc(out, (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
		value >>= 7;
	} while (value > 0);
}

static bool get_varint(struct series_block *block, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 64 && block->bytes < block->end; shift += 7) {
		unsigned char byte = *block->bytes++;

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* A number less another. Both wrap around, because a block may be anybody's. */
static uint64_t zigzag(int64_t value, int64_t before)
{
	uint64_t by = (uint64_t)value - (uint64_t)before;

	return by << 1 ^ ((int64_t)by < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t coded, int64_t before)
{
	return (int64_t)((uint64_t)before + (coded >> 1 ^ (coded & 1 ? UINT64_MAX : 0)));
}

/* ---- writing ---- */

void series_block_begin(struct series_block *block, uint64_t from, int64_t step)
{
	if (!block->payload.text)
		block->payload = SB_INIT_MAX(SERIES_PAYLOAD_MAX);
	sb_clear(&block->payload);
	block->from = block->to = from;
	block->step_before = block->step_after = step;
	block->count = 0;
	block->flags = 0;
	block->last = (struct series_point){ 0 };
}

void series_block_release(struct series_block *block)
{
	sb_release(&block->payload);
}

bool series_block_has_room(const struct series_block *block, size_t readings)
{
	return block->payload.len + readings * READING_MAX <= SERIES_PAYLOAD_MAX;
}

void series_block_add(struct series_block *block, const struct series_point *point)
{
	struct sb *out = &block->payload;
	uint64_t bits;

	memcpy(&bits, &point->value, sizeof bits);
	add_varint(out, point->metric);
	add_varint(out, zigzag(point->step, block->last.step));
	add_varint(out, zigzag(point->at.ms, block->last.at.ms));
	series_block_put_number(out, bits, sizeof bits);
	block->last = *point;
	block->count++;
}

void series_block_encode(const struct series_block *block, struct sb *ret)
{
	unsigned char head[SERIES_HEADER_BYTES] = MAGIC;
	uLong sum;

	put_fixed(head + 8, block->payload.len, 4);
	put_fixed(head + 16, block->from, 8);
	put_fixed(head + 24, block->to, 8);
	put_fixed(head + 32, (uint64_t)block->step_before, 8);
	put_fixed(head + 40, (uint64_t)block->step_after, 8);
	put_fixed(head + 48, block->metrics, 4);
	put_fixed(head + 52, block->start, 4);
	put_fixed(head + 56, block->count, 4);
	put_fixed(head + 60, block->flags, 4);
	sum = crc32(crc32(0, NULL, 0), head + SUM_FROM, SERIES_HEADER_BYTES - SUM_FROM);
	if (block->payload.len > 0)
		sum = crc32(sum, (const Bytef *)block->payload.text, (uInt)block->payload.len);
	put_fixed(head + 12, (uint64_t)sum, 4);
	sb_add(ret, head, sizeof head);
	if (block->payload.len > 0)
		sb_add(ret, block->payload.text, block->payload.len);
}

/* ---- reading ---- */

size_t series_block_decode(const void *bytes, size_t len, struct series_block *ret)
{
	const unsigned char *head = bytes;
	size_t payload;
	uLong sum;

	if (len < SERIES_HEADER_BYTES || memcmp(head, MAGIC, strlen(MAGIC)) != 0)
		return 0;
	payload = (size_t)series_block_get_number(head + 8, 4);
	if (payload > SERIES_PAYLOAD_MAX || payload > len - SERIES_HEADER_BYTES)
		return 0;
	sum = crc32(crc32(0, NULL, 0), head + SUM_FROM,
		    (uInt)(SERIES_HEADER_BYTES - SUM_FROM + payload));
	if (sum != series_block_get_number(head + 12, 4))
		return 0;
	*ret = (struct series_block){
		.from = series_block_get_number(head + 16, 8),
		.to = series_block_get_number(head + 24, 8),
		.step_before = (int64_t)series_block_get_number(head + 32, 8),
		.step_after = (int64_t)series_block_get_number(head + 40, 8),
		.metrics = (uint32_t)series_block_get_number(head + 48, 4),
		.start = (uint32_t)series_block_get_number(head + 52, 4),
		.count = (uint32_t)series_block_get_number(head + 56, 4),
		.flags = (uint32_t)series_block_get_number(head + 60, 4),
		.bytes = head + SERIES_HEADER_BYTES,
		.end = head + SERIES_HEADER_BYTES + payload,
	};
	return ret->from <= ret->to ? SERIES_HEADER_BYTES + payload : 0;
}

bool series_block_next(struct series_block *block, struct series_point *point)
{
	uint64_t metric, step, at, bits;

	if (!get_varint(block, &metric) || !get_varint(block, &step) || !get_varint(block, &at) ||
	    block->end - block->bytes < 8)
		return false;
	bits = series_block_get_number(block->bytes, 8);
	block->bytes += 8;
	point->metric = (size_t)metric;
	point->step = unzigzag(step, point->step);
	point->at.ms = unzigzag(at, point->at.ms);
	memcpy(&point->value, &bits, sizeof bits);
	return true;
}

void series_block_reopen(struct series_block *block)
{
	struct series_point last = { 0 };
	const unsigned char *bytes = block->bytes;

	block->payload = SB_INIT_MAX(SERIES_PAYLOAD_MAX);
	sb_add(&block->payload, bytes, (size_t)(block->end - bytes));
	while (series_block_next(block, &last))
		;
	block->last = last;
	block->bytes = block->end = NULL;
}
