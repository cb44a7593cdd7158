/*
 * The canonical form of a request, part by part: the input of the digest in signature version 4.
 * Used by sigv4.c alone.
 *
 * Memory is kept from one request to the next, so that a signature allocates nothing. A `struct
 * canonical` begins as CANONICAL_INIT.
 */
#ifndef STK_AWS_AUTH_SIGV4_CANONICAL_H
#define STK_AWS_AUTH_SIGV4_CANONICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "aws/auth/sigv4.h"
#include "jobs/base/sb.h"

struct canonical_param {
	const char *name, *value; /* encoded, in the caller's query; no NUL behind them */
	size_t name_len, value_len;
};

struct canonical_header {
	const char *name; /* in lower case; NULL: in `lowered`, from `at` on */
	size_t at, name_len;
	const char *value;
};

struct canonical {
	struct canonical_header *headers; /* to be signed, sorted */
	size_t header_count, header_cap;
	struct sb lowered; /* names that had capitals, in lower case */
	struct sb names;
	struct canonical_param *params;
	size_t param_cap;
	/* Segments of a path: each begins at `at` and ends before the next slash. */
	struct canonical_segment {
		const char *at;
		size_t len;
	} * segments;
	size_t segment_cap;
};

#define CANONICAL_INIT ((struct canonical){ .lowered = SB_INIT, .names = SB_INIT })

void sigv4_canonical_release(struct canonical *canonical);

/* Like sb_add() and its variants, but without a call where there is room: a signature consists of
 * some fifty small pieces. */
static inline void put(struct sb *ret, const char *bytes, size_t len)
{
	if (len >= ret->cap - ret->len || len > ret->max - ret->len) {
		sb_add(ret, bytes, len);
		return;
	}
	memcpy(ret->text + ret->len, bytes, len);
	ret->len += len;
	ret->text[ret->len] = '\0';
}

static inline void put_text(struct sb *ret, const char *text)
{
	put(ret, text, strlen(text));
}

static inline void put_char(struct sb *ret, char c)
{
	put(ret, &c, 1);
}

/* Drops the headers of the previous request. */
void sigv4_canonical_begin(struct canonical *canonical);
/* Adds a header, its name in any case; name and value must live until the request is signed.
 * Headers that proxies and tracers change are ignored: they take no part in signatures. */
void sigv4_canonical_add_header(struct canonical *canonical, const char *name, const char *value);
/* Appends the headers added so far, sorted, each on a line of its own with a newline. Values of
 * the same name are joined by commas in the order in which they were added. */
void sigv4_canonical_headers(const struct canonical *canonical, struct sb *ret);
/* Returns the names of the headers, separated by semicolons; valid until a header is added. */
const struct sb *sigv4_canonical_names(struct canonical *canonical);

/* Appends an encoded path: unchanged (S3), or without dot segments and empty ones and encoded a
 * second time. */
void sigv4_canonical_path(struct canonical *canonical, const char *path, bool is_s3,
			  struct sb *ret);

/* Appends an encoded query, sorted by name, then value; a bare name gets its equals sign. */
void sigv4_canonical_query(struct canonical *canonical, const char *query, struct sb *ret);

#endif
