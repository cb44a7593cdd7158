/* Uploads in parts that killed processes have left unfinished: found, and aborted once they have
 * been idle for long enough. See s3.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"
#include "aws/xml.h"
#include "jobs/base/text/text.h"

struct leftover {
	char *id;
	struct utc newest; /* time of its start, or of its newest part */
};

struct s3_upload_leftovers {
	const char *key;
	struct leftover *list;
	size_t count;
	char *row_key, *row_id;
	struct utc row_time;
};

static void leftovers_release(struct s3_upload_leftovers *leftovers)
{
	for (size_t i = 0; i < leftovers->count; i++)
		free(leftovers->list[i].id);
	free(leftovers->list);
	free(leftovers->row_key);
	free(leftovers->row_id);
}

static void set_text(char **text, const char *bytes, size_t len)
{
	free(*text);
	*text = mem_copy_n(bytes, len);
}

static bool read_upload(void *arg, const char *path, const char *text, size_t len)
{
	static const char row[] = "ListMultipartUploadsResult/Upload";
	struct s3_upload_leftovers *l = arg;

	if (!text_starts(path, row))
		return true;
	path += strlen(row);
	if (strcmp(path, "/Key") == 0)
		set_text(&l->row_key, text, len);
	else if (strcmp(path, "/UploadId") == 0)
		set_text(&l->row_id, text, len);
	else if (strcmp(path, "/Initiated") == 0)
		l->row_time = s3_time(text);
	if (*path || !l->row_key || !l->row_id || strcmp(l->row_key, l->key) != 0)
		return true;
	l->list = mem_grow(l->list, l->count + 1, sizeof *l->list);
	l->list[l->count].id = TAKE(l->row_id);
	l->list[l->count++].newest = l->row_time;
	return true;
}

static bool read_part_time(void *arg, const char *path, const char *text, size_t len)
{
	struct leftover *leftover = arg;

	(void)len;
	if (strcmp(path, "ListPartsResult/Part/LastModified") == 0 &&
	    s3_time(text).ms > leftover->newest.ms)
		leftover->newest = s3_time(text);
	return true;
}

/* Returns 1 if aborted, 0 if not (gone, or in use), -1. `now` is the server's time. */
static int abort_one(struct aws *aws, const struct s3_place *place, struct leftover *leftover,
		     struct utc now, int64_t idle_ms, struct err **err)
{
	AUTO(s3_request_release) struct s3_request request = { 0 };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(aws_reply_release) struct aws_reply end = { 0 };

	s3_request_begin(&request, aws, AWS_LIST_PARTS, place->bucket, place->key);
	s3_request_param(&request, "uploadId", leftover->id);
	if (aws_perform(aws, &request.call, &reply, err) < 0) {
		if (reply.status != 404)
			return -1;
		err_freep(err);
		return 0;
	}
	if (xml_parse(reply.http->body.text, reply.http->body.len, "the parts", read_part_time,
		      leftover, err) < 0)
		return -1;
	if (now.ms - leftover->newest.ms < idle_ms)
		return 0;
	s3_request_begin(&request, aws, AWS_ABORT_UPLOAD, place->bucket, place->key);
	s3_request_param(&request, "uploadId", leftover->id);
	if (aws_perform(aws, &request.call, &end, err) < 0) {
		if (end.status != 404)
			return -1;
		err_freep(err);
		return 0;
	}
	return 1;
}

int s3_abort_leftovers(struct aws *aws, const struct s3_place *place, int64_t idle_ms,
		       struct err **err)
{
	AUTO(s3_request_release) struct s3_request request = { 0 };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(leftovers_release) struct s3_upload_leftovers leftovers = { .key = place->key };
	char date[64] = "";
	struct utc now;
	int count = 0;

	/* A single page is plenty for one key; the rest is left to the next time. */
	s3_request_begin(&request, aws, AWS_LIST_UPLOADS, place->bucket, NULL);
	s3_request_param(&request, "prefix", place->key);
	if (aws_perform(aws, &request.call, &reply, err) < 0 ||
	    xml_parse(reply.http->body.text, reply.http->body.len, "the uploads", read_upload,
		      &leftovers, err) < 0)
		return err_wrap(err, "cannot look for unfinished uploads of 's3://%s/%s'",
				place->bucket, place->key);
	s3_header_text(reply.http, "date", date, sizeof date);
	now = s3_time(date);
	if (now.ms == 0)
		now = clock_utc_now();
	else
		now.ms += 999; /* the header has whole seconds, the times of parts have more */
	for (size_t i = 0; i < leftovers.count; i++) {
		int done = abort_one(aws, place, &leftovers.list[i], now, idle_ms, err);

		if (done < 0)
			return err_wrap(err, "cannot clean up the upload of 's3://%s/%s'",
					place->bucket, place->key);
		count += done;
	}
	return count;
}
