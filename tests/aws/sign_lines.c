/*
 * Signs what it is told on stdin, a JSON object a line, for test_signing.py to hold
 * against another signer: prints for each what was signed and the outcome, also a line.
 *
 * Members: method, host, path and params (a list of [name, value or null]), both not
 * encoded; headers ([name, value]); payload, region, service, s3; access_key, secret_key
 * and token (or null); at (Unix time in ms); expires (or null: sign by the header).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/sigv4.h"
#include "jobs/base/json.h"

static void add_params(const json_t *params, struct sb *query)
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

/* The reply to a line of input. */
static json_t *sign(struct sigv4_keys *keys, struct sigv4_signed *made, const json_t *line)
{
	AUTO(sb_release) struct sb path = SB_INIT;
	AUTO(sb_release) struct sb query = SB_INIT;
	AUTO(sb_release) struct sb presigned = SB_INIT;
	const json_t *headers = json_object_get(line, "headers"), *header;
	AUTO(auto_free)
	struct sigv4_pair *pairs = mem_zero(json_array_size(headers), sizeof *pairs);
	const char *raw = js_str(line, "path");
	struct utc at = { js_int(line, "at", 0) };
	int64_t expires = js_int(line, "expires", 0);
	struct sigv4_identity who = {
		.access_key = js_str(line, "access_key"),
		.secret_key = js_str(line, "secret_key"),
		.token = js_str(line, "token"),
	};
	struct sigv4_request request = {
		.method = js_str(line, "method"),
		.host = js_str(line, "host"),
		.headers = pairs,
		.header_count = json_array_size(headers),
		.payload = js_str(line, "payload"),
		.region = js_str(line, "region"),
		.service = js_str(line, "service"),
		.is_s3 = js_bool(line, "s3", false),
	};
	json_t *reply = json_object();
	size_t i;

	sigv4_encode(&path, raw, strlen(raw), true);
	add_params(json_object_get(line, "params"), &query);
	request.path = path.text;
	request.query = query.text;
	json_array_foreach (headers, i, header)
		pairs[i] = (struct sigv4_pair){ json_string_value(json_array_get(header, 0)),
						json_string_value(json_array_get(header, 1)) };
	if (expires > 0) {
		sigv4_presign(keys, &who, &request, at, (long)expires, &made->canonical,
			      &presigned);
		js_put_str(reply, "query", presigned.text);
	} else {
		sigv4_sign(keys, &who, &request, at, made);
		js_put_str(reply, "date", made->date);
		js_put_str(reply, "signature", made->signature);
		js_put_str(reply, "authorization", made->authorization.text);
	}
	js_put_str(reply, "canonical", made->canonical.text);
	return reply;
}

int main(void)
{
	AUTO(sigv4_keys_freep) struct sigv4_keys *keys = sigv4_keys_new();
	AUTO(sigv4_signed_release) struct sigv4_signed made = SIGV4_SIGNED_INIT;
	AUTO(auto_free) char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, stdin)) > 0) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *asked = NULL, *reply = NULL;
		AUTO(auto_free) char *text = NULL;

		if (js_parse(line, (size_t)len, "the line", &asked, &err) < 0) {
			fprintf(stderr, "%s\n", err->message);
			return 1;
		}
		reply = sign(keys, &made, asked);
		text = js_line(reply);
		puts(text);
	}
	return fflush(stdout) ? 1 : 0;
}
