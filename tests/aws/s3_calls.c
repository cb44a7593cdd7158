/*
 * Does with S3 what it is told on stdin, a JSON object a line, and says on stdout what
 * came of it, also a line: so tests in Python can ask of aws/s3/s3.h what no command asks.
 *
 * Members: do (below), bucket, key; for writes path or text, if ("absent" or an ETag); for
 * reads path, offset, len; for lists prefix, delimiter, start_after; keys; idle_ms.
 * Replies: n (what the function returned), error, hint and code, size, etag, bytes, rows,
 * prefixes, text.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aws/s3/s3.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

struct call {
	struct aws *aws;
	const json_t *line;
	struct s3_place place;
	json_t *reply;
	struct s3_outcome outcome;
};

static int add_object(void *arg, const struct s3_object *object, struct err **err)
{
	json_t *row = json_object();

	(void)err;
	js_put(row, "key", js_text(object->key, strlen(object->key)));
	js_put(row, "size", json_integer((int64_t)object->size));
	js_put(row, "modified", json_integer(object->modified.ms));
	js_put_str(row, "etag", object->etag);
	if (object->unsafe_name)
		js_put_str(row, "unfit", object->unsafe_name);
	json_array_append_new(json_object_get(arg, "rows"), row);
	return 0;
}

static int add_prefix(void *arg, const char *prefix, struct err **err)
{
	(void)err;
	json_array_append_new(json_object_get(arg, "prefixes"), js_text(prefix, strlen(prefix)));
	return 0;
}

static int do_list(struct call *c, struct err **err)
{
	struct s3_list what = {
		.bucket = c->place.bucket,
		.prefix = js_str(c->line, "prefix"),
		.delimiter = js_str(c->line, "delimiter"),
		.start_after = js_str(c->line, "start_after"),
	};

	js_put(c->reply, "rows", json_array());
	js_put(c->reply, "prefixes", json_array());
	return s3_list(c->aws, &what, add_object, add_prefix, c->reply, err);
}

/* Walks a listing of any length without keeping it. */
static int count_object(void *arg, const struct s3_object *object, struct err **err)
{
	(void)object;
	(void)err;
	++*(int64_t *)arg;
	return 0;
}

static int do_count(struct call *c, struct err **err)
{
	struct s3_list what = { .bucket = c->place.bucket, .prefix = js_str(c->line, "prefix") };
	int64_t count = 0;
	int n = s3_list(c->aws, &what, count_object, NULL, &count, err);

	js_put(c->reply, "count", json_integer(count));
	return n;
}

static int do_head(struct call *c, struct err **err)
{
	return s3_head(c->aws, &c->place, &c->outcome, err);
}

static int do_get(struct call *c, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	int n = s3_get(c->aws, &c->place, (uint64_t)js_int(c->line, "offset", 0),
		       (uint64_t)js_int(c->line, "len", 0), (size_t)js_int(c->line, "max", 1 << 20),
		       &text, &c->outcome, err);

	js_put(c->reply, "text", js_text(text.text, text.len));
	return n;
}

static int do_write(struct call *c, struct err **err)
{
	const char *path = js_str(c->line, "path"), *text = js_str(c->line, "text");
	const char *condition = js_str(c->line, "if");
	AUTO(auto_close) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct s3_body body = S3_BODY_INIT;
	struct stat st;

	if (path && (fd < 0 || fstat(fd, &st) < 0))
		return err_set(err, EXIT_REFUSED, "cannot read '%s'", path);
	body.fd = fd;
	body.bytes = text;
	body.len = path ? (uint64_t)st.st_size : strlen(text);
	if (condition) {
		body.condition = strcmp(condition, "absent") == 0 ? S3_IF_ABSENT : S3_IF_SAME;
		body.etag = condition;
	}
	return s3_upload(c->aws, &c->place, &body, &c->outcome, err);
}

static int do_download(struct call *c, struct err **err)
{
	const char *path = js_str(c->line, "path");
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, EXIT_REFUSED, "cannot write '%s'", path);
	return s3_download(c->aws, &c->place, fd, &c->outcome, err);
}

static int do_delete(struct call *c, struct err **err)
{
	return s3_delete(c->aws, &c->place, err);
}

/* The object `from_key` of the same bucket, of this size and etag. */
static int do_copy(struct call *c, struct err **err)
{
	const struct s3_source from = { { c->place.bucket, js_str(c->line, "from_key") },
					(uint64_t)js_int(c->line, "size", 0),
					js_str(c->line, "etag") };
	char sha256[SHA256_HEX] = "";
	int n = s3_copy(c->aws, &from, &c->place, (uint64_t)js_int(c->line, "whole_max", 0),
			&c->outcome, err);

	if (n > 0 && c->outcome.checksum.algorithm == S3_SHA256 && !c->outcome.checksum.of_part)
		hash_base64_hex(c->outcome.checksum.value, sha256);
	js_put_str(c->reply, "sha256", sha256);
	return n;
}

static int do_leftovers(struct call *c, struct err **err)
{
	return s3_abort_leftovers(c->aws, &c->place, js_int(c->line, "idle_ms", 0), err);
}

static const struct {
	const char *name;
	int (*fn)(struct call *c, struct err **err);
} calls[] = {
	{ "list", do_list },     { "count", do_count },         { "head", do_head },
	{ "get", do_get },       { "write", do_write },         { "download", do_download },
	{ "delete", do_delete }, { "leftovers", do_leftovers }, { "copy", do_copy },
};

static void answer(struct aws *aws, const json_t *line)
{
	json_auto_t *reply = json_object();
	AUTO(err_freep) struct err *err = NULL;
	struct call c = {
		aws, line, { js_str(line, "bucket"), js_str(line, "key") }, reply, { 0 }
	};
	char *text;
	int n = -2;

	for (size_t i = 0; i < STK_LENGTH(calls); i++)
		if (strcmp(calls[i].name, js_str(line, "do")) == 0)
			n = calls[i].fn(&c, &err);
	js_put(reply, "n", json_integer(n));
	if (err) {
		js_put(reply, "error", js_text(err->message, strlen(err->message)));
		js_put(reply, "code", json_integer(err->code));
		if (err->hint)
			js_put(reply, "hint", js_text(err->hint, strlen(err->hint)));
	}
	js_put(reply, "size", json_integer((int64_t)c.outcome.object.size));
	js_put_str(reply, "etag", c.outcome.object.etag);
	js_put_str(reply, "checksum", c.outcome.checksum.value);
	js_put(reply, "bytes", json_integer((int64_t)c.outcome.bytes));
	text = json_dumps(reply, JSON_COMPACT);
	puts(text);
	fflush(stdout);
	free(text);
}

int main(void)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *text = NULL;
	size_t size = 0;

	if (aws_open(&aws, &err) < 0) {
		fprintf(stderr, "%s\n", err->message);
		return 1;
	}
	while (getline(&text, &size, stdin) > 0) {
		json_auto_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);

		if (!line)
			return 2;
		answer(aws, line);
	}
	return 0;
}
