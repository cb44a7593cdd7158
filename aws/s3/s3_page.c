/* Parsing one page of a listing from its XML. See s3_request.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"
#include "aws/xml.h"
#include "jobs/base/text/text.h"

#define PAGE_ROWS_MAX ((size_t)10000)

void s3_page_freep(struct s3_page **page)
{
	if (!*page)
		return;
	for (size_t i = 0; i < (*page)->object_count; i++)
		free((char *)(*page)->objects[i].key);
	for (size_t i = 0; i < (*page)->prefix_count; i++)
		free((*page)->prefixes[i]);
	free((*page)->objects);
	free((*page)->prefixes);
	free(*page);
	*page = NULL;
}

void s3_reading_release(struct s3_reading *reading)
{
	s3_page_freep(&reading->page);
	free((char *)reading->row.key);
	free(reading->key_bytes);
	free(reading->token);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place and returns the new length. S3 writes a blank as '+', and a '+' as %2B. */
static size_t decode(char *text, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		int high = text[i] == '%' && i + 2 < len ? hex_value(text[i + 1]) : -1;
		int low = high >= 0 ? hex_value(text[i + 2]) : -1;

		if (low >= 0) {
			text[out++] = (char)(high << 4 | low);
			i += 2;
		} else {
			text[out++] = text[i] == '+' ? ' ' : text[i];
		}
	}
	text[out] = '\0';
	return out;
}

static void set_field(struct s3_object *row, const char *field, const char *text)
{
	if (strcmp(field, "Size") == 0)
		row->size = strtoull(text, NULL, 10);
	else if (strcmp(field, "LastModified") == 0)
		row->modified = s3_time(text);
	else if (strcmp(field, "ETag") == 0 && strlen(text) < sizeof row->etag)
		memcpy(row->etag, text, strlen(text) + 1);
}

static bool add_object(struct s3_reading *r)
{
	struct s3_page *page = r->page;

	if (!r->row.key || page->object_count == PAGE_ROWS_MAX)
		return false;
	if (page->object_count == r->capacity) {
		r->capacity = r->capacity ? 2 * r->capacity : 64;
		page->objects = mem_grow(page->objects, r->capacity, sizeof *page->objects);
		r->key_bytes = mem_grow(r->key_bytes, r->capacity, sizeof *r->key_bytes);
	}
	r->key_bytes[page->object_count] = r->row_bytes;
	page->objects[page->object_count++] = r->row;
	r->row = (struct s3_object){ 0 };
	return true;
}

static bool add_prefix(struct s3_reading *r, const char *text, size_t len)
{
	struct s3_page *page = r->page;

	if (page->prefix_count == PAGE_ROWS_MAX)
		return false;
	if (page->prefix_count == r->prefix_capacity) {
		r->prefix_capacity = r->prefix_capacity ? 2 * r->prefix_capacity : 16;
		page->prefixes =
			mem_grow(page->prefixes, r->prefix_capacity, sizeof *page->prefixes);
	}
	page->prefixes[page->prefix_count++] = mem_copy_n(text, len);
	return true;
}

static bool read_element(void *arg, const char *path, const char *text, size_t len)
{
	static const char root[] = "ListBucketResult", row[] = "Contents/";
	struct s3_reading *r = arg;

	if (!text_starts(path, root))
		return false;
	r->is_listing = true;
	path += strlen(root);
	if (*path++ == '\0')
		return true;
	if (strcmp(path, "Contents/Key") == 0) {
		free((char *)r->row.key);
		r->row.key = mem_copy_n(text, len);
		r->row_bytes = len;
	} else if (strcmp(path, "Contents") == 0) {
		return add_object(r);
	} else if (text_starts(path, row)) {
		set_field(&r->row, path + strlen(row), text);
	} else if (strcmp(path, "CommonPrefixes/Prefix") == 0) {
		return add_prefix(r, text, len);
	} else if (strcmp(path, "IsTruncated") == 0) {
		r->truncated = strcmp(text, "true") == 0;
	} else if (strcmp(path, "NextContinuationToken") == 0) {
		free(r->token);
		r->token = mem_copy_n(text, len);
	} else if (strcmp(path, "EncodingType") == 0) {
		r->encoded = strcmp(text, "url") == 0;
	}
	return true;
}

static void decode_names(struct s3_reading *r)
{
	struct s3_page *page = r->page;

	for (size_t i = 0; i < page->object_count; i++) {
		struct s3_object *object = &page->objects[i];

		if (r->encoded)
			r->key_bytes[i] = decode((char *)object->key, r->key_bytes[i]);
		object->unsafe_name = s3_key_unsafe(object->key, r->key_bytes[i]);
	}
	for (size_t i = 0; r->encoded && i < page->prefix_count; i++)
		decode(page->prefixes[i], strlen(page->prefixes[i]));
	page->last = !r->truncated;
}

int s3_page_read(const char *bytes, size_t len, struct s3_reading *ret, struct err **err)
{
	ret->page = mem_zero(1, sizeof *ret->page);
	if (xml_parse(bytes, len, "the listing", read_element, ret, err) < 0)
		return err_code(err, EXIT_UNREACHABLE);
	if (!ret->is_listing)
		return err_set(err, EXIT_UNREACHABLE, "the reply is not a listing");
	decode_names(ret);
	return 0;
}
