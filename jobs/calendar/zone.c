/* Time zones from compiled files: see zone.h. */
#include "jobs/calendar/zone.h"

#include <string.h>

#define HEADER     44 /* bytes: RFC 9636, 3.1 */
#define OFFSET_MAX (26 * 3600)
#define COUNT_MAX  10000 /* a file of tzdata has some hundreds */

enum { COUNT_UT, COUNT_STD, COUNT_LEAP, COUNT_TIME, COUNT_TYPE, COUNT_CHAR, COUNTS };

/* A part of the file: the header and where its data begin. */
struct zone_block {
	const uint8_t *data;
	size_t counts[COUNTS];
	size_t size; /* of the data */
	size_t time_size;
	char version;
};

static uint32_t read_32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read_time(const uint8_t *at, size_t size)
{
	if (size == 4)
		return (int32_t)read_32(at);
	return (int64_t)((uint64_t)read_32(at) << 32 | read_32(at + 4));
}

static bool read_block(const uint8_t *bytes, size_t len, size_t time_size, struct zone_block *ret)
{
	if (len < HEADER || memcmp(bytes, "TZif", 4) != 0)
		return false;
	*ret = (struct zone_block){ .data = bytes + HEADER,
				    .time_size = time_size,
				    .version = (char)bytes[4] };
	for (int i = 0; i < COUNTS; i++) {
		ret->counts[i] = read_32(bytes + 20 + 4 * i);
		if (ret->counts[i] > COUNT_MAX)
			return false;
	}
	ret->size = ret->counts[COUNT_TIME] * (time_size + 1) + ret->counts[COUNT_TYPE] * 6 +
		    ret->counts[COUNT_CHAR] + ret->counts[COUNT_LEAP] * (time_size + 4) +
		    ret->counts[COUNT_STD] + ret->counts[COUNT_UT];
	return ret->size <= len - HEADER && ret->counts[COUNT_TYPE] > 0;
}

static int64_t time_at(const struct zone *zone, size_t i)
{
	return read_time(zone->times + i * zone->time_size, zone->time_size);
}

static int32_t offset_of_type(const struct zone *zone, size_t type)
{
	return (int32_t)read_32(zone->types + type * 6);
}

/* Takes the data of a block over, if they are in order. */
static bool take_block(const struct zone_block *block, struct zone *ret)
{
	*ret = (struct zone){
		.times = block->data,
		.time_count = block->counts[COUNT_TIME],
		.type_count = block->counts[COUNT_TYPE],
		.time_size = block->time_size,
	};
	ret->indexes = ret->times + ret->time_count * ret->time_size;
	ret->types = ret->indexes + ret->time_count;
	if (block->counts[COUNT_LEAP] > 0)
		return false;
	for (size_t i = 0; i < ret->time_count; i++)
		if (ret->indexes[i] >= ret->type_count ||
		    (i > 0 && time_at(ret, i) <= time_at(ret, i - 1)))
			return false;
	for (size_t i = 0; i < ret->type_count; i++) {
		int32_t offset = offset_of_type(ret, i);

		if (offset > OFFSET_MAX || offset < -OFFSET_MAX)
			return false;
	}
	return true;
}

/* Reads the rule between two newlines at the end; an empty one is none. */
static bool read_footer(const uint8_t *bytes, size_t len, struct zone *ret)
{
	const uint8_t *end;

	if (len < 2 || bytes[0] != '\n')
		return false;
	end = memchr(bytes + 1, '\n', len - 1);
	if (!end)
		return false;
	return end == bytes + 1 ||
	       zone_rule_read((const char *)bytes + 1, (size_t)(end - bytes) - 1, ret);
}

void zone_utc(struct zone *ret)
{
	*ret = (struct zone){ .has_rule = true };
}

bool zone_read(const void *bytes, size_t len, struct zone *ret)
{
	const uint8_t *at = bytes;
	struct zone_block block;

	if (!read_block(at, len, 4, &block))
		return false;
	if (block.version == '\0')
		return take_block(&block, ret);
	at += HEADER + block.size;
	len -= HEADER + block.size;
	if (!read_block(at, len, 8, &block) || !take_block(&block, ret))
		return false;
	return read_footer(at + HEADER + block.size, len - HEADER - block.size, ret);
}

static int64_t bounded(int64_t at)
{
	return at > ZONE_EVER ? ZONE_EVER : at < -ZONE_EVER ? -ZONE_EVER : at;
}

/* Number of changes up to a moment. */
static size_t changes_until(const struct zone *zone, int64_t at)
{
	size_t low = 0, high = zone->time_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (time_at(zone, middle) <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct zone_period zone_period_at(const struct zone *zone, int64_t at)
{
	size_t count = changes_until(zone, at);
	struct zone_period ret = { -ZONE_EVER, ZONE_EVER, 0 };

	if (count == zone->time_count && zone->has_rule) {
		ret = zone_rule_period(zone, at);
		if (count > 0 && ret.from < bounded(time_at(zone, count - 1)))
			ret.from = bounded(time_at(zone, count - 1));
		return ret;
	}
	if (count > 0)
		ret.from = bounded(time_at(zone, count - 1));
	if (count < zone->time_count)
		ret.to = bounded(time_at(zone, count));
	/* The time before the first change is of type 0: RFC 9636, 3.2. */
	ret.offset = offset_of_type(zone, count > 0 ? zone->indexes[count - 1] : 0);
	return ret;
}

int64_t zone_local(const struct zone *zone, int64_t at)
{
	return at + zone_period_at(zone, at).offset;
}
