/*
 * Download of a whole object into a file: large objects in parallel ranges, each written at its
 * offset, all pinned to one content by its ETag; then compared with the checksum that S3 keeps.
 * The comparison reads the file again, mostly from the page cache, so ranges may arrive late or
 * twice. See s3.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/s3/s3_request.h"
#include "jobs/base/fs/fs.h"

struct download;

struct s3_download_stretch {
	struct download *download;
	struct s3_operation *op; /* NULL: free */
	uint64_t offset, len, written;
};

struct download {
	struct s3_operation base;
	struct s3_operation *head;
	char *bucket, *key;
	int fd;
	struct s3_object object;
	struct s3_checksum checksum;
	struct s3_download_stretch stretches[S3_PARTS_AT_ONCE];
	uint64_t next; /* offset of the first byte that was not requested yet */
	size_t under_way;
	bool whole; /* a single request without a range */
	struct err *err;
};

static void download_free(struct s3_operation *op)
{
	struct download *d = (struct download *)op;

	s3_cancelp(&d->head);
	for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++)
		s3_cancelp(&d->stretches[i].op);
	err_freep(&d->err);
	free(d->bucket);
	free(d->key);
	free(d);
}

static void failed(struct download *d, struct err *err)
{
	s3_finish_failed(&d->base, err);
}

/* Ends the download when all bytes are there: verifies the checksum. */
static void finish_checked(struct download *d)
{
	struct s3_outcome outcome = { .object = d->object, .checksum = d->checksum };
	int good = s3_checksum_file(&d->checksum, d->fd, d->object.size);

	outcome.bytes = d->object.size;
	if (good > 0) {
		s3_finish(&d->base, &outcome);
		return;
	}
	if (good < 0)
		fs_error(&outcome.err, errno, "cannot read the received data of 's3://%s/%s' again",
			 d->bucket, d->key);
	else
		err_set(&outcome.err, EXIT_UNREACHABLE,
			"the received data of 's3://%s/%s' does not have its checksum %s",
			d->bucket, d->key, d->checksum.value);
	outcome.result = S3_FAILED;
	s3_finish(&d->base, &outcome);
}

static bool write_bytes(void *arg, const void *bytes, size_t len)
{
	struct s3_download_stretch *s = arg;
	struct download *d = s->download;
	const char *from = bytes;

	if (d->err)
		return false; /* another range has failed: its callback is to come */
	if (len > s->len - s->written)
		return err_set(&d->err, EXIT_UNREACHABLE,
			       "more of 's3://%s/%s' came than its %" PRIu64 " bytes", d->bucket,
			       d->key, d->object.size) == 0;
	d->base.moved += len;
	while (len > 0) {
		ssize_t put = pwrite(d->fd, from, len, (off_t)(s->offset + s->written));

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return fs_error(&d->err, errno,
					"cannot store the received data of 's3://%s/%s'", d->bucket,
					d->key) == 0;
		from += put;
		len -= (size_t)put;
		s->written += (uint64_t)put;
	}
	return true;
}

static void on_restart(void *arg)
{
	((struct s3_download_stretch *)arg)->written = 0;
}

static int send_stretches(struct download *d, struct err **err);

static void on_stretch(void *arg, struct s3_outcome *outcome)
{
	struct s3_download_stretch *s = arg;
	struct download *d = s->download;
	struct err *err = NULL;

	s->op = NULL;
	d->under_way--;
	if (outcome->result == S3_FAILED) {
		err = d->err ? TAKE(d->err) : TAKE(outcome->err);
		failed(d, err);
		return;
	}
	if (outcome->result != S3_DONE) {
		struct s3_outcome other = { .result = outcome->result };

		s3_finish(&d->base, &other);
		return;
	}
	if (s->written != s->len) {
		err_set(&err, EXIT_UNREACHABLE,
			"of 's3://%s/%s' %" PRIu64 " bytes came instead of %" PRIu64, d->bucket,
			d->key, s->written, s->len);
		failed(d, err);
		return;
	}
	if (d->whole) {
		d->checksum = outcome->checksum;
		d->object.modified = outcome->object.modified;
	}
	if (send_stretches(d, &err) < 0)
		failed(d, err);
	else if (d->under_way == 0)
		finish_checked(d);
}

static int send_one(struct download *d, struct s3_download_stretch *s, struct err **err)
{
	uint64_t left = d->object.size - d->next;
	struct s3_read read = { .if_match = d->object.etag[0] ? d->object.etag : NULL,
				.sink = write_bytes,
				.restart = on_restart,
				.sink_arg = s };

	*s = (struct s3_download_stretch){ .download = d, .offset = d->next };
	s->len = d->whole || left < S3_PART_BYTES ? left : S3_PART_BYTES;
	read.offset = d->whole ? 0 : s->offset;
	read.len = d->whole ? 0 : s->len;
	s->op = s3_get_start(d->base.aws, &(struct s3_place){ d->bucket, d->key }, &read,
			     on_stretch, s, err);
	if (!s->op)
		return -1;
	d->next += s->len;
	d->under_way++;
	return 0;
}

static int send_stretches(struct download *d, struct err **err)
{
	for (size_t i = 0; i < S3_PARTS_AT_ONCE && d->next < d->object.size; i++)
		if (!d->stretches[i].op && send_one(d, &d->stretches[i], err) < 0)
			return -1;
	return 0;
}

static void on_head(void *arg, struct s3_outcome *outcome)
{
	struct download *d = arg;
	struct err *err = NULL;

	d->head = NULL;
	if (outcome->result == S3_FAILED) {
		failed(d, TAKE(outcome->err));
		return;
	}
	if (outcome->result == S3_DONE && d->object.etag[0] &&
	    strcmp(d->object.etag, outcome->object.etag) != 0)
		outcome->result = S3_TAKEN;
	if (outcome->result != S3_DONE) {
		struct s3_outcome other = { .result = outcome->result };

		s3_finish(&d->base, &other);
		return;
	}
	d->object = outcome->object;
	d->checksum = outcome->checksum;
	if (send_stretches(d, &err) < 0)
		failed(d, err);
	else if (d->under_way == 0)
		finish_checked(d); /* an empty object */
}

struct s3_operation *s3_download_start(struct aws *aws, const struct s3_place *place,
				       const struct s3_object *known, int fd, s3_done_fn done,
				       void *arg, struct err **err)
{
	struct download *d;
	int begun = 0;

	if (s3_check_place(place, err) < 0)
		return NULL;
	d = mem_zero(1, sizeof *d);
	d->base = (struct s3_operation){
		.aws = aws, .done = done, .arg = arg, .free = download_free
	};
	d->bucket = mem_copy(place->bucket);
	d->key = mem_copy(place->key);
	d->fd = fd;
	if (known)
		d->object = *known;
	d->object.key = NULL;
	/* The reply to a single request carries the checksum; for several ranges a HEAD gets it. */
	d->whole = known && known->size <= 2 * S3_PART_BYTES;
	if (d->whole) {
		begun = send_one(d, &d->stretches[0], err);
	} else {
		d->head = s3_head_start(aws, place, on_head, d, err);
		begun = d->head ? 0 : -1;
	}
	if (begun == 0)
		return &d->base;
	download_free(&d->base);
	return NULL;
}
