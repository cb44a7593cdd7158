/*
 * Signs the requests that stdin tells, a line each (request_line.h), for test_signing.py
 * to hold against another signer: prints for each what was signed and the outcome.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/aws/request_line.h"

/* The reply to a line of input. */
static json_t *sign(struct sigv4_keys *keys, struct sigv4_signed *made,
		    const struct request_line *line)
{
	AUTO(sb_release) struct sb presigned = SB_INIT;
	json_t *reply = json_object();

	if (line->expires > 0) {
		sigv4_presign(keys, &line->who, &line->request, line->at, (long)line->expires,
			      &made->canonical, &presigned);
		js_put_str(reply, "query", presigned.text);
	} else {
		sigv4_sign(keys, &line->who, &line->request, line->at, made);
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
	AUTO(auto_free) char *text = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&text, &size, stdin)) > 0) {
		AUTO(err_freep) struct err *err = NULL;
		AUTO(request_line_release) struct request_line line = { 0 };
		AUTO(auto_free) char *told = NULL;
		json_auto_t *reply = NULL;

		if (request_line_read(text, (size_t)len, &line, &err) < 0) {
			fprintf(stderr, "%s\n", err->message);
			return 1;
		}
		reply = sign(keys, &made, &line);
		told = js_line(reply);
		puts(told);
	}
	return fflush(stdout) ? 1 : 0;
}
