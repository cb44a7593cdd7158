/*
 * A page of a bucket's listing: the input is its XML. What comes out as a name for a file
 * must be one, by a rule written here anew.
 */
#include "tests/fuzz/fuzz.h"

#include "aws/s3/s3_request.h"

static void check_fit(const char *key, size_t len)
{
	MUST(strlen(key) == len && len > 0 && len <= 1024);
	for (const char *part = key; part;) {
		size_t bytes = strcspn(part, "/");

		MUST(bytes > 0 && bytes < 256);
		MUST(!(bytes == 1 && part[0] == '.') &&
		     !(bytes == 2 && strncmp(part, "..", 2) == 0));
		part = part[bytes] ? part + bytes + 1 : NULL;
	}
	for (size_t i = 0; i < len; i++)
		MUST((unsigned char)key[i] >= ' ' && key[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = span_copy((struct span){ (const char *)data, size });
	AUTO(s3_reading_release) struct s3_reading reading = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	if (s3_page_read(text, size, &reading, &err) < 0) {
		MUST(err && err->code == EXIT_UNREACHABLE);
		return 0;
	}
	MUST(!err && reading.page->last == !reading.truncated);
	for (size_t i = 0; i < reading.page->object_count; i++) {
		const struct s3_object *object = &reading.page->objects[i];

		MUST(memchr(object->etag, '\0', sizeof object->etag));
		if (!object->unsafe_name)
			check_fit(object->key, reading.key_bytes[i]);
	}
	return 0;
}
