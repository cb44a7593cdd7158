/* The canonical form of a request: see sigv4_canonical.h. */
#include "aws/sigv4_canonical.h"

#include <stdlib.h>
#include <string.h>

void canonical_release(struct canonical *canonical)
{
	free(canonical->headers);
	free(canonical->params);
	free(canonical->segments);
	*canonical = CANONICAL_INIT;
}

/* `count` elements must fit. */
static void *fit(void *array, size_t *cap, size_t count, size_t size)
{
	if (count <= *cap)
		return array;
	*cap = count < 16 ? 16 : count * 2;
	return mem_grow(array, *cap, size);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* By bytes, letters of ASCII in either case being the same: -, 0 or +. */
static int compare_names(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return (unsigned char)lower(*a) - (unsigned char)lower(*b);
}

bool canonical_signs(const char *name)
{
	static const char *const passed_over[] = {
		"baggage",    "connection",         "expect",
		"keep-alive", "proxy-authenticate", "proxy-authorization",
		"te",         "traceparent",        "tracestate",
		"trailer",    "transfer-encoding",  "upgrade",
		"user-agent", "x-amzn-trace-id",
	};

	for (size_t i = 0; i < STK_LENGTH(passed_over); i++)
		if (compare_names(name, passed_over[i]) == 0)
			return false;
	return true;
}

void canonical_begin(struct canonical *canonical)
{
	canonical->header_count = 0;
}

void canonical_add_header(struct canonical *canonical, const struct sigv4_pair *header)
{
	size_t at = canonical->header_count++;

	canonical->headers = fit(canonical->headers, &canonical->header_cap,
				 canonical->header_count, sizeof *canonical->headers);
	/* Requests have about ten headers: they are sorted while they come, those of one
	 * name in the order of their coming. */
	while (at > 0 && compare_names(canonical->headers[at - 1]->name, header->name) > 0) {
		canonical->headers[at] = canonical->headers[at - 1];
		at--;
	}
	canonical->headers[at] = header;
}

static void add_name(struct sb *ret, const char *name)
{
	char piece[64];
	size_t len = 0;

	for (; *name; name++) {
		piece[len++] = lower(*name);
		if (len == sizeof piece) {
			sb_add(ret, piece, len);
			len = 0;
		}
	}
	sb_add(ret, piece, len);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without blanks at the ends, and one space where there were several in between. */
static void add_value(struct sb *ret, const char *value)
{
	bool first = true;

	while (*value) {
		const char *word;

		while (is_blank(*value))
			value++;
		word = value;
		/* A single space inside a value stays: most values are one piece then. */
		while (*value &&
		       (!is_blank(*value) || (*value == ' ' && value[1] && !is_blank(value[1]))))
			value++;
		if (value > word && !first)
			sb_addc(ret, ' ');
		sb_add(ret, word, (size_t)(value - word));
		first = false;
	}
}

/* Whether the header at `i` has the name of the one before it. */
static bool is_repeated(const struct canonical *canonical, size_t i)
{
	return i > 0 &&
	       compare_names(canonical->headers[i - 1]->name, canonical->headers[i]->name) == 0;
}

void canonical_headers(const struct canonical *canonical, struct sb *ret)
{
	for (size_t i = 0; i < canonical->header_count; i++) {
		if (is_repeated(canonical, i)) {
			sb_addc(ret, ',');
		} else {
			if (i > 0)
				sb_addc(ret, '\n');
			add_name(ret, canonical->headers[i]->name);
			sb_addc(ret, ':');
		}
		add_value(ret, canonical->headers[i]->value);
	}
	sb_addc(ret, '\n');
}

void canonical_names(const struct canonical *canonical, struct sb *ret)
{
	for (size_t i = 0; i < canonical->header_count; i++) {
		if (is_repeated(canonical, i))
			continue;
		if (i > 0)
			sb_addc(ret, ';');
		add_name(ret, canonical->headers[i]->name);
	}
}

/* As RFC 3986 (5.2.4) has it and slashes that follow slashes go too: the segments that
 * are left. */
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

void canonical_path(struct canonical *canonical, const char *path, bool is_s3, struct sb *ret)
{
	size_t count;

	if (is_s3) {
		sb_adds(ret, *path ? path : "/");
		return;
	}
	count = split_path(canonical, path);
	sb_addc(ret, '/');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			sb_addc(ret, '/');
		sigv4_encode(ret, canonical->segments[i].at, canonical->segments[i].len, false);
	}
	if (count > 0 && path[strlen(path) - 1] == '/')
		sb_addc(ret, '/');
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_params(const void *left, const void *right)
{
	const struct canonical_param *a = left, *b = right;
	int order = compare_bytes(a->name, a->name_len, b->name, b->name_len);

	return order ? order : compare_bytes(a->value, a->value_len, b->value, b->value_len);
}

void canonical_query(struct canonical *canonical, const char *query, struct sb *ret)
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
			sb_addc(ret, '&');
		sb_add(ret, param->name, param->name_len);
		sb_addc(ret, '=');
		sb_add(ret, param->value, param->value_len);
	}
}
