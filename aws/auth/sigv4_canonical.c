/* The canonical form of a request: see sigv4_canonical.h. */
#include "aws/auth/sigv4_canonical.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void sigv4_canonical_release(struct canonical *canonical)
{
	free(canonical->headers);
	sb_release(&canonical->lowered);
	sb_release(&canonical->names);
	free(canonical->params);
	free(canonical->segments);
	*canonical = CANONICAL_INIT;
}

void sigv4_encode(struct sb *ret, const char *bytes, size_t len, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		char escaped[3] = { '%', digits[c >> 4], digits[c & 15] };

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && keep_slash))
			continue;
		put(ret, bytes + from, i - from);
		put(ret, escaped, sizeof escaped);
		from = i + 1;
	}
	put(ret, bytes + from, len - from);
}

/* Makes room for `count` elements. */
static void *fit(void *array, size_t *cap, size_t count, size_t size)
{
	if (count <= *cap)
		return array;
	*cap = count < 16 ? 16 : count * 2;
	return mem_grow(array, *cap, size);
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool is_passed_over(const char *name, size_t len)
{
	static const char *const names[] = {
		"baggage",    "connection",         "expect",
		"keep-alive", "proxy-authenticate", "proxy-authorization",
		"te",         "traceparent",        "tracestate",
		"trailer",    "transfer-encoding",  "upgrade",
		"user-agent", "x-amzn-trace-id",
	};

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (name[0] == names[i][0] && strlen(names[i]) == len &&
		    memcmp(name, names[i], len) == 0)
			return true;
	return false;
}

void sigv4_canonical_begin(struct canonical *canonical)
{
	canonical->header_count = 0;
	sb_clear(&canonical->lowered);
}

static const char *name_of(const struct canonical *canonical, const struct canonical_header *header)
{
	return header->name ? header->name : canonical->lowered.text + header->at;
}

static int compare_names(const struct canonical *canonical, const struct canonical_header *a,
			 const struct canonical_header *b)
{
	return compare_bytes(name_of(canonical, a), a->name_len, name_of(canonical, b),
			     b->name_len);
}

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* Returns the name in lower case; usually the caller's own text. */
static struct canonical_header named(struct canonical *canonical, const char *name)
{
	struct canonical_header header = { .name = name };

	while (name[header.name_len] && !is_capital(name[header.name_len]))
		header.name_len++;
	if (!name[header.name_len])
		return header;
	header.name = NULL;
	header.at = canonical->lowered.len;
	header.name_len = strlen(name);
	put(&canonical->lowered, name, header.name_len);
	for (char *c = canonical->lowered.text + header.at; *c; c++)
		if (is_capital(*c))
			*c = (char)(*c | 0x20);
	return header;
}

void sigv4_canonical_add_header(struct canonical *canonical, const char *name, const char *value)
{
	struct canonical_header header = named(canonical, name);
	size_t at = canonical->header_count;

	header.value = value;
	if (is_passed_over(name_of(canonical, &header), header.name_len))
		return;
	canonical->header_count++;
	canonical->headers = fit(canonical->headers, &canonical->header_cap,
				 canonical->header_count, sizeof *canonical->headers);
	/* Requests have about ten headers: each is inserted in order, after those with its name. */
	while (at > 0 && compare_names(canonical, &canonical->headers[at - 1], &header) > 0) {
		canonical->headers[at] = canonical->headers[at - 1];
		at--;
	}
	canonical->headers[at] = header;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* True if a byte of the value is a blank or another control character; tests eight at a time. */
static bool has_blank(const char *value, size_t len)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t found = 0, bytes;

	for (; len >= sizeof bytes; len -= sizeof bytes, value += sizeof bytes) {
		memcpy(&bytes, value, sizeof bytes);
		/* The top bit of each byte that was less than 0x21, and of some above it. */
		found |= (bytes - ones * (' ' + 1)) & ~bytes & ones * 0x80;
	}
	while (len > 0)
		found |= (unsigned char)value[--len] <= ' ';
	return found != 0;
}

/* Appends the value without blanks at the ends; runs of blanks become one space. */
static void add_value(struct sb *ret, const char *value)
{
	size_t len = strlen(value);
	const char *separator = "";

	if (!has_blank(value, len)) {
		put(ret, value, len);
		return;
	}
	while (*value) {
		const char *word = value;

		while (*value && !is_blank(*value))
			value++;
		if (value > word) {
			put_text(ret, separator);
			put(ret, word, (size_t)(value - word));
			separator = " ";
		}
		while (is_blank(*value))
			value++;
	}
}

/* True if the header at `i` has the same name as the one before it. */
static bool is_repeated(const struct canonical *canonical, size_t i)
{
	const struct canonical_header *headers = canonical->headers;

	return i > 0 && headers[i - 1].name_len == headers[i].name_len &&
	       compare_names(canonical, &headers[i - 1], &headers[i]) == 0;
}

static void add_name(const struct canonical *canonical, size_t i, struct sb *ret)
{
	const struct canonical_header *header = &canonical->headers[i];

	put(ret, name_of(canonical, header), header->name_len);
}

void sigv4_canonical_headers(const struct canonical *canonical, struct sb *ret)
{
	for (size_t i = 0; i < canonical->header_count; i++) {
		if (is_repeated(canonical, i)) {
			put_char(ret, ',');
		} else {
			if (i > 0)
				put_char(ret, '\n');
			add_name(canonical, i, ret);
			put_char(ret, ':');
		}
		add_value(ret, canonical->headers[i].value);
	}
	put_char(ret, '\n');
}

const struct sb *sigv4_canonical_names(struct canonical *canonical)
{
	sb_clear(&canonical->names);
	for (size_t i = 0; i < canonical->header_count; i++) {
		if (is_repeated(canonical, i))
			continue;
		if (i > 0)
			put_char(&canonical->names, ';');
		add_name(canonical, i, &canonical->names);
	}
	return &canonical->names;
}

/* Splits and normalises the path as RFC 3986 (5.2.4) says; repeated slashes are dropped too.
 * Returns the number of segments that remain. */
static size_t split_path(struct canonical *canonical, const char *path)
{
	size_t count = 0;

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			if (count > 0)
				count--;
		} else if (len > 1 || (len == 1 && path[0] != '.')) {
			canonical->segments = fit(canonical->segments, &canonical->segment_cap,
						  count + 1, sizeof *canonical->segments);
			canonical->segments[count++] = (struct canonical_segment){ path, len };
		}
		path += len + (path[len] == '/');
	}
	return count;
}

void sigv4_canonical_path(struct canonical *canonical, const char *path, bool is_s3, struct sb *ret)
{
	size_t count;

	if (is_s3) {
		put_text(ret, *path ? path : "/");
		return;
	}
	count = split_path(canonical, path);
	put_char(ret, '/');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			put_char(ret, '/');
		sigv4_encode(ret, canonical->segments[i].at, canonical->segments[i].len, false);
	}
	if (count > 0 && path[strlen(path) - 1] == '/')
		put_char(ret, '/');
}

static int compare_params(const void *left, const void *right)
{
	const struct canonical_param *a = left, *b = right;
	int order = compare_bytes(a->name, a->name_len, b->name, b->name_len);

	return order ? order : compare_bytes(a->value, a->value_len, b->value, b->value_len);
}

void sigv4_canonical_query(struct canonical *canonical, const char *query, struct sb *ret)
{
	size_t count = 0;
	bool sorted = true;

	for (bool more = *query; more;) {
		size_t len = strcspn(query, "&");
		const char *equals = memchr(query, '=', len);
		size_t name_len = equals ? (size_t)(equals - query) : len;
		struct canonical_param *param;

		canonical->params = fit(canonical->params, &canonical->param_cap, count + 1,
					sizeof *canonical->params);
		param = &canonical->params[count++];
		param->name = query;
		param->name_len = name_len;
		param->value = query + name_len + (equals != NULL);
		param->value_len = len - name_len - (equals != NULL);
		sorted = sorted && (count == 1 || compare_params(param - 1, param) <= 0);
		more = query[len] == '&';
		query += len + more;
	}
	if (!sorted)
		qsort(canonical->params, count, sizeof *canonical->params, compare_params);
	for (size_t i = 0; i < count; i++) {
		const struct canonical_param *param = &canonical->params[i];

		if (i > 0)
			put_char(ret, '&');
		put(ret, param->name, param->name_len);
		put_char(ret, '=');
		put(ret, param->value, param->value_len);
	}
}
