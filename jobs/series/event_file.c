/* TensorBoard's event files: see event_file.h. */
#include "jobs/series/event_file.h"

#include <string.h>

#include "jobs/base/crc32c.h"

#define VERSION "brain.Event:2"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_le(struct sb *ret, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		sb_addc(ret, (char)(value >> (8 * i)));
}

static void add_varint(struct sb *ret, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		sb_addc(ret, (char)(value | 0x80));
	sb_addc(ret, (char)value);
}

static void add_key(struct sb *ret, unsigned field, enum wire wire)
{
	add_varint(ret, field << 3 | (unsigned)wire);
}

static void add_bytes(struct sb *ret, unsigned field, const void *bytes, size_t len)
{
	add_key(ret, field, WIRE_BYTES);
	add_varint(ret, len);
	sb_add(ret, bytes, len);
}

static void add_wall_time(struct sb *ret, struct utc at)
{
	double seconds = (double)at.ms / 1000;
	uint64_t bits;

	memcpy(&bits, &seconds, sizeof bits);
	add_key(ret, 1, WIRE_64);
	add_le(ret, bits, 8);
}

static uint32_t masked(const void *bytes, size_t len)
{
	uint32_t crc = crc32c(bytes, len);

	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void add_record(struct sb *ret, const struct sb *event)
{
	size_t begin = ret->len;

	add_le(ret, event->len, 8);
	add_le(ret, masked(ret->text + begin, 8), 4);
	sb_add(ret, event->text, event->len);
	add_le(ret, masked(event->text, event->len), 4);
}

void event_file_begin(struct sb *ret, struct utc at)
{
	AUTO(sb_release) struct sb event = SB_INIT;

	add_wall_time(&event, at);
	add_bytes(&event, 3, VERSION, strlen(VERSION));
	add_record(ret, &event);
}

void event_file_scalar(struct sb *ret, struct utc at, int64_t step, const char *tag, double value)
{
	AUTO(sb_release) struct sb event = SB_INIT, summary = SB_INIT, row = SB_INIT;
	float single = (float)value;
	uint32_t bits;

	memcpy(&bits, &single, sizeof bits);
	add_bytes(&row, 1, tag, strlen(tag));
	add_key(&row, 2, WIRE_32);
	add_le(&row, bits, 4);
	add_bytes(&summary, 1, row.text, row.len);
	add_wall_time(&event, at);
	if (step != 0) {
		add_key(&event, 2, WIRE_VARINT);
		add_varint(&event, (uint64_t)step);
	}
	add_bytes(&event, 5, summary.text, summary.len);
	add_record(ret, &event);
}
