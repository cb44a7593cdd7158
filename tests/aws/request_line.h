/*
 * A request to be signed, as a line of JSON: how tests in Python tell programs in C what
 * to sign.
 *
 * Members: method, host, path and params (a list of [name, value or null]), both not
 * encoded; headers ([name, value]); payload, region, service, s3; access_key, secret_key
 * and token (or null); at (Unix time in ms); expires (or null: sign by the header).
 */
#ifndef STK_TESTS_AWS_REQUEST_LINE_H
#define STK_TESTS_AWS_REQUEST_LINE_H

#include <string.h>

#include "aws/auth/sigv4.h"
#include "jobs/base/text/js.h"

/* Begins as { 0 }. */
struct request_line {
	struct sigv4_request request;
	struct sigv4_identity who;
	struct utc at;
	int64_t expires; /* in seconds; 0: sign by the header */
	/* The memory that the members above point into. */
	json_t *line;
	struct sb path, query;
	struct sigv4_pair *headers;
};

static inline void request_line_release(struct request_line *ret)
{
	json_decref(ret->line);
	sb_release(&ret->path);
	sb_release(&ret->query);
	free(ret->headers);
	*ret = (struct request_line){ 0 };
}

static inline void add_params(const json_t *params, struct sb *query)
{
	const json_t *param;
	size_t i;

	json_array_foreach (params, i, param) {
		const json_t *name = json_array_get(param, 0), *value = json_array_get(param, 1);

		sb_adds(query, i > 0 ? "&" : "");
		sigv4_encode(query, json_string_value(name), json_string_length(name), false);
		if (!json_is_string(value))
			continue;
		sb_addc(query, '=');
		sigv4_encode(query, json_string_value(value), json_string_length(value), false);
	}
}

/* 0, or -1 with `err`. */
static inline int request_line_read(const char *text, size_t len, struct request_line *ret,
				    struct err **err)
{
	const json_t *headers, *header;
	const char *path;
	size_t i;

	*ret = (struct request_line){ .path = SB_INIT, .query = SB_INIT };
	if (js_parse(text, len, "the line", &ret->line, err) < 0)
		return -1;
	headers = json_object_get(ret->line, "headers");
	ret->headers = mem_zero(json_array_size(headers), sizeof *ret->headers);
	json_array_foreach (headers, i, header)
		ret->headers[i] =
			(struct sigv4_pair){ json_string_value(json_array_get(header, 0)),
					     json_string_value(json_array_get(header, 1)) };
	path = js_str(ret->line, "path");
	sigv4_encode(&ret->path, path, strlen(path), true);
	add_params(json_object_get(ret->line, "params"), &ret->query);
	ret->at = (struct utc){ js_int(ret->line, "at", 0) };
	ret->expires = js_int(ret->line, "expires", 0);
	ret->who = (struct sigv4_identity){
		.access_key = js_str(ret->line, "access_key"),
		.secret_key = js_str(ret->line, "secret_key"),
		.token = js_str(ret->line, "token"),
	};
	ret->request = (struct sigv4_request){
		.method = js_str(ret->line, "method"),
		.host = js_str(ret->line, "host"),
		.path = ret->path.text,
		.query = ret->query.text,
		.headers = ret->headers,
		.header_count = json_array_size(headers),
		.payload = js_str(ret->line, "payload"),
		.region = js_str(ret->line, "region"),
		.service = js_str(ret->line, "service"),
		.is_s3 = js_bool(ret->line, "s3", false),
	};
	return 0;
}

#endif
