/*
 * call_lines: performs AWS calls that are given as JSON, one object a line on stdin, and
 * writes what came of each as a line on stdout. Tests in Python drive aws/aws.h with it.
 *
 * A call: {"operation":"PutObject","bucket","key","label","region","params":[[name,value]],
 * "headers":[[name,value]],"json":{…},"body":"text","file":"path","offset":n,"length":n,
 * "sink":bool,"restart":bool,"reply_max":n,"tag":anything}. Every call of a line is waited for
 * before the next line is read, unless the line is an array: its calls go at once.
 *
 * A result: {"tag","status","code","request","body","sha256","length","json","headers",
 * "attempts","maybe_repeated","restarts","error","hint","exit","ms"}.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aws/aws.h"
#include "aws/operation.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"

static size_t under_way;

struct job {
	const json_t *said;
	struct aws_call call;
	struct sigv4_pair params[32], headers[32];
	struct mono begun;
	struct sb sunk;
	int restarts;
};

static bool sink(void *arg, const void *bytes, size_t len)
{
	struct job *job = arg;

	sb_add(&job->sunk, bytes, len);
	return true;
}

static void restart(void *arg)
{
	struct job *job = arg;

	sb_clear(&job->sunk);
	job->restarts++;
}

static void put_body(json_t *line, const char *bytes, size_t len)
{
	char hex[SHA256_HEX];

	hash_sha256_hex(bytes, len, hex);
	js_put_str(line, "sha256", hex);
	js_put(line, "length", json_integer((json_int_t)len));
	if (len <= (64u << 10) && text_is_utf8(bytes, len))
		js_put(line, "body", js_text(bytes, len));
}

static void on_done(void *arg, struct aws_reply *reply)
{
	struct job *job = arg;
	json_auto_t *line = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put(line, "tag", json_incref(json_object_get(job->said, "tag")));
	js_put(line, "status", json_integer(reply->status));
	js_put_str(line, "code", reply->code);
	if (job->call.sink)
		put_body(line, job->sunk.text, job->sunk.len);
	else if (reply->http)
		put_body(line, reply->http->body.text, reply->http->body.len);
	if (reply->http)
		js_put(line, "headers",
		       js_text(reply->http->headers.text, reply->http->headers.len));
	js_put(line, "json", json_incref(reply->json));
	js_put(line, "attempts", json_integer(reply->attempts));
	js_put(line, "maybe_repeated", json_boolean(reply->maybe_repeated));
	js_put(line, "restarts", json_integer(job->restarts));
	if (reply->err) {
		js_put_str(line, "error", reply->err->message);
		js_put_str(line, "hint", reply->err->hint);
		js_put(line, "exit", json_integer(reply->err->code));
	}
	js_put(line, "ms", json_integer(clock_mono_now().ms - job->begun.ms));
	text = js_line(line);
	puts(text);
	fflush(stdout);
	sb_release(&job->sunk);
	if (job->call.body_fd >= 0)
		close(job->call.body_fd);
	free(job);
	under_way--;
}

static size_t pairs(const json_t *array, struct sigv4_pair *ret)
{
	size_t count = json_array_size(array);

	for (size_t i = 0; i < count && i < 32; i++) {
		const json_t *pair = json_array_get(array, i);

		ret[i].name = json_string_value(json_array_get(pair, 0));
		ret[i].value = json_string_value(json_array_get(pair, 1));
	}
	return count < 32 ? count : 32;
}

static void take_body(struct job *job)
{
	const char *path = js_str(job->said, "file"), *body = js_str(job->said, "body");
	struct stat st;

	if (body) {
		job->call.body = body;
		job->call.body_len = strlen(body);
	}
	if (!path)
		return;
	job->call.body_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (job->call.body_fd < 0 || fstat(job->call.body_fd, &st) < 0)
		abort();
	job->call.body_offset = (uint64_t)js_int(job->said, "offset", 0);
	job->call.body_len = (uint64_t)js_int(job->said, "length",
					      (int64_t)st.st_size - (int64_t)job->call.body_offset);
}

static void begin(struct aws *aws, const json_t *said)
{
	struct job *job = mem_zero(1, sizeof *job);
	const char *name = js_str(said, "operation");
	struct aws_call *call = &job->call;
	int op = 0;

	while (op < AWS_OPERATION_COUNT &&
	       strcmp(operation_row((enum aws_operation)op)->name, name) != 0)
		op++;
	if (op == AWS_OPERATION_COUNT)
		abort();
	job->said = said;
	job->begun = clock_mono_now();
	job->sunk = SB_INIT_MAX((size_t)1 << 30);
	call->operation = (enum aws_operation)op;
	call->body_fd = -1;
	call->bucket = js_str(said, "bucket");
	call->key = js_str(said, "key");
	call->region = js_str(said, "region");
	call->params = job->params;
	call->param_count = pairs(json_object_get(said, "params"), job->params);
	call->headers = job->headers;
	call->header_count = pairs(json_object_get(said, "headers"), job->headers);
	call->json = json_object_get(said, "json");
	call->reply_max = (size_t)js_int(said, "reply_max", 0);
	if (js_bool(said, "sink", false)) {
		call->sink = sink;
		call->sink_arg = job;
		call->restart = js_bool(said, "restart", false) ? restart : NULL;
	}
	take_body(job);
	under_way++;
	aws_request_start(aws, call, on_done, job);
}

static int perform_line(struct aws *aws, const char *text, struct err **err)
{
	json_auto_t *said = NULL;

	if (js_parse(text, strlen(text), "a line", &said, err) < 0)
		return -1;
	if (json_is_array(said))
		for (size_t i = 0; i < json_array_size(said); i++)
			begin(aws, json_array_get(said, i));
	else
		begin(aws, said);
	while (under_way)
		aws_turn(aws, 1000);
	return 0;
}

int main(void)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(auto_free) char *line = NULL;
	size_t room = 0;
	int result = aws_open(&aws, &err);

	while (result == 0 && getline(&line, &room, stdin) > 0)
		result = perform_line(aws, line, &err);
	if (result < 0) {
		AUTO(auto_free) char *text = err_format(err);

		fprintf(stderr, "%s\n", text);
	}
	aws_freep(&aws);
	return result < 0;
}
