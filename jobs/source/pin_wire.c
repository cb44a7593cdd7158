/* Pins and errors as bytes: see pin_wire.h. */
#include "jobs/source/pin_wire.h"

#include <stdlib.h>
#include <string.h>

#define IS_PIN   'P'
#define IS_ERROR 'E'

static void put_number(struct sb *out, uint64_t number)
{
	sb_add(out, &number, sizeof number);
}

/* Encodes NULL differently from the empty text. */
static void put_text(struct sb *out, const char *text)
{
	put_number(out, text ? strlen(text) + 1 : 0);
	if (text)
		sb_add(out, text, strlen(text) + 1);
}

void pin_encode(const struct source_pin *pin, struct sb *out)
{
	sb_addc(out, IS_PIN);
	put_text(out, pin->kind);
	put_text(out, pin->commit);
	put_number(out, pin->dirty);
	put_text(out, pin->dirty_files);
	put_text(out, pin->patch);
	put_text(out, pin->digest);
	put_number(out, pin->digests.len);
	sb_add(out, pin->digests.text, pin->digests.len);
	put_number(out, pin->count);
	for (size_t i = 0; i < pin->count; i++) {
		put_text(out, pin->files[i].path);
		put_number(out, pin->files[i].mode);
		put_number(out, pin->files[i].size);
		put_text(out, pin->files[i].sha256);
		put_text(out, pin->files[i].reduced);
	}
}

void pin_encode_error(const struct err *err, struct sb *out)
{
	sb_addc(out, IS_ERROR);
	put_number(out, (uint64_t)err->code);
	put_text(out, err->message);
	put_text(out, err->hint);
	put_text(out, err->field);
	put_number(out, (uint64_t)err->os_errno);
}

struct pin_wire_reader {
	const char *at, *end;
	bool bad;
};

static const char *take_bytes(struct pin_wire_reader *reader, uint64_t len)
{
	const char *bytes = reader->at;

	if (reader->bad || len > (uint64_t)(reader->end - reader->at)) {
		reader->bad = true;
		return NULL;
	}
	reader->at += len;
	return bytes;
}

static uint64_t get_number(struct pin_wire_reader *reader)
{
	const char *bytes = take_bytes(reader, sizeof(uint64_t));
	uint64_t number = 0;

	if (bytes)
		memcpy(&number, bytes, sizeof number);
	return number;
}

/* Returns a text borrowed from the bytes; NULL also if they are bad. */
static const char *get_text(struct pin_wire_reader *reader)
{
	uint64_t len = get_number(reader);
	const char *text = len > 0 ? take_bytes(reader, len) : NULL;

	if (text && text[len - 1] != '\0')
		reader->bad = true;
	return reader->bad ? NULL : text;
}

static char *get_copy(struct pin_wire_reader *reader)
{
	const char *text = get_text(reader);

	return text ? mem_copy(text) : NULL;
}

/* Copies a text to a place of `size` bytes; a text that does not fit is bad. */
static void get_into(struct pin_wire_reader *reader, char *to, size_t size)
{
	const char *text = get_text(reader);

	if (!text || strlen(text) >= size)
		reader->bad = true;
	else
		memcpy(to, text, strlen(text) + 1);
}

static void get_pin(struct pin_wire_reader *reader, struct source_pin *pin)
{
	const char *digests;
	uint64_t len, count;

	get_into(reader, pin->kind, sizeof pin->kind);
	get_into(reader, pin->commit, sizeof pin->commit);
	pin->dirty = get_number(reader) != 0;
	pin->dirty_files = get_copy(reader);
	pin->patch = get_copy(reader);
	get_into(reader, pin->digest, sizeof pin->digest);
	len = get_number(reader);
	digests = take_bytes(reader, len);
	if (digests)
		sb_add(&pin->digests, digests, len);
	count = get_number(reader);
	if (reader->bad || count > (uint64_t)(reader->end - reader->at)) {
		reader->bad = true;
		return;
	}
	pin->files = mem_zero(count, sizeof *pin->files);
	for (; pin->count < count && !reader->bad; pin->count++) {
		struct source_file *file = &pin->files[pin->count];

		file->path = get_copy(reader);
		file->mode = (unsigned)get_number(reader);
		file->size = get_number(reader);
		get_into(reader, file->sha256, sizeof file->sha256);
		get_into(reader, file->reduced, sizeof file->reduced);
		reader->bad = reader->bad || !file->path;
	}
}

static int get_error(struct pin_wire_reader *reader, struct err **err)
{
	uint64_t code = get_number(reader);
	const char *message = get_text(reader);
	const char *hint = get_text(reader);
	const char *field = get_text(reader);
	int os_errno = (int)get_number(reader);

	err_set(err, (enum exit_code)code, "%s", message ? message : "");
	(*err)->os_errno = os_errno;
	if (hint)
		err_hint(err, "%s", hint);
	return field ? err_field(err, field) : -1;
}

int pin_decode(const char *bytes, size_t len, struct source_pin **ret, struct err **err)
{
	struct pin_wire_reader reader = { bytes, bytes + len, false };
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	const char *kind = take_bytes(&reader, 1);

	if (kind && *kind == IS_ERROR)
		return get_error(&reader, err);
	pin = mem_zero(1, sizeof *pin);
	pin->digests = SB_INIT_MAX(len + 1);
	if (kind && *kind == IS_PIN)
		get_pin(&reader, pin);
	if (!kind || *kind != IS_PIN || reader.bad)
		return err_set(err, EXIT_DEFECT, "a process of stoker's own sent no pin");
	*ret = TAKE(pin);
	return 0;
}
