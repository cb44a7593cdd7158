/* A list that is written as a stream to a temporary file, and stored by its content. See
 * data_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/data/data_internal.h"

#define BUFFER ((size_t)256 << 10)

int data_writer_open(struct data_writer *writer, enum data_line form, struct err **err)
{
	*writer = (struct data_writer){ .fd = fs_scratch(err), .out = SB_INIT, .form = form };
	if (form != DATA_LINE_SPOOL)
		writer->sha = hash_sha256_new();
	return writer->fd < 0 ? -1 : 0;
}

int data_writer_flush(struct data_writer *writer, struct err **err)
{
	int failed = fs_write_full(writer->fd, writer->out.text, writer->out.len);

	if (failed)
		return fs_error(err, failed, "cannot write a temporary list of the data");
	if (writer->sha)
		hash_sha256_add(writer->sha, writer->out.text, writer->out.len);
	sb_clear(&writer->out);
	return 0;
}

int data_writer_add(struct data_writer *writer, const struct data_row *row, struct err **err)
{
	data_row_put(&writer->out, row, writer->form);
	return writer->out.len < BUFFER ? 0 : data_writer_flush(writer, err);
}

int data_writer_store(struct data_writer *writer, struct store *workspace, struct data_list *ret,
		      struct err **err)
{
	AUTO(auto_free) char *key = NULL;

	if (data_writer_flush(writer, err) < 0)
		return -1;
	hash_sha256_end(TAKE(writer->sha), ret->digest);
	key = mem_format("data/%s.jsonl", ret->digest);
	if (lseek(writer->fd, 0, SEEK_SET) < 0)
		return fs_error(err, errno, "cannot read a temporary list of the data");
	if (store_upload_file(workspace, writer->fd, key, err) < 0)
		return err_wrap(err, "cannot store a list of the data");
	ret->url = mem_format("%s/%s", store_url(workspace), key);
	return 0;
}

void data_writer_release(struct data_writer *writer)
{
	auto_close(&writer->fd);
	writer->fd = -1;
	sb_release(&writer->out);
	hash_sha256_freep(&writer->sha);
}

void data_list_release(struct data_list *list)
{
	free(list->url);
	*list = (struct data_list){ 0 };
}
