/*
 * Manifests, cumulative lists and the lists of objects that other programs write. The input is a
 * list as stoker stores it, then behind a FUZZ_PART one of another program. What is read without a
 * parser of JSON must be what a parser reads, and each row, written and read back, is the same.
 */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/data/data_internal.h"
#include "tests/fuzz/memory_store.h"

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_row(const struct data_row *a, const struct data_row *b)
{
	return same_text(a->url, b->url) && a->size == b->size && same_text(a->etag, b->etag) &&
	       same_text(a->mtime, b->mtime) && same_text(a->sha256, b->sha256);
}

static void check_form(const struct data_row *row, enum data_line form)
{
	AUTO(sb_release) struct sb line = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *keep = NULL;
	struct data_row again;

	data_row_put(&line, row, form);
	MUST(line.text[line.len - 1] == '\n');
	MUST(data_row_read(line.text, line.len - 1, &keep, &again, &err) == 0);
	MUST(same_row(row, &again));
	MUST(form == DATA_LINE_SEEN || again.is_new == row->is_new);
	MUST(form == DATA_LINE_MANIFEST || again.aside == row->aside);
	MUST((form == DATA_LINE_SEEN && !row->aside) || again.replaced == row->replaced);
}

static void check_row(const struct data_row *row)
{
	MUST(row->url[0] != '\0' && row->size <= INT64_MAX);
	MUST(!row->etag != !row->mtime);
	for (enum data_line form = DATA_LINE_SEEN; form <= DATA_LINE_SPOOL; form++)
		check_form(row, form);
}

/* Each line by itself: whatever is accepted, a parser of JSON accepts, and reads the same. */
static void check_line(struct span text)
{
	AUTO(auto_free) char *line = mem_copy_n(text.text, text.len);
	AUTO(err_freep) struct err *err = NULL, *other = NULL;
	json_auto_t *keep = NULL, *parsed = NULL;
	struct data_row row;

	if (data_row_read(line, text.len, &keep, &row, &err) < 0) {
		MUST(err && err->message[0]);
		return;
	}
	MUST(js_parse(text.text, text.len, "it", &parsed, &other) == 0);
	MUST(same_text(js_str(parsed, "url"), row.url));
	MUST((uint64_t)js_int(parsed, "size", -1) == row.size);
	MUST(same_text(js_str(parsed, "etag"), row.etag));
	MUST(same_text(js_str(parsed, "mtime"), row.mtime));
	MUST(same_text(js_str(parsed, "sha256"), row.sha256));
	MUST(js_bool(parsed, "new", false) == row.is_new);
	MUST(js_bool(parsed, "replaced", false) == row.replaced);
	MUST(js_bool(parsed, "aside", false) == row.aside);
	check_row(&row);
}

static void check_list(struct span text)
{
	AUTO(auto_close) int fd = memfd_create("list", MFD_CLOEXEC);
	AUTO(data_reader_freep) struct data_reader *reader = data_reader_of_file(fd, "the list");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *before = NULL;
	struct data_row row;
	int found;

	MUST(fd >= 0 && fs_write_full(fd, text.text, text.len) == 0);
	while ((found = data_reader_next(reader, &row, &err)) > 0) {
		check_row(&row);
		MUST(!before || strcmp(before, row.url) < 0);
		free(before);
		before = mem_copy(row.url);
	}
	MUST((found < 0) == (err != NULL));
	MUST(!err || err->damage);
}

static int check_sorted(void *arg, struct data_row *row, struct err **err)
{
	char **before = arg;

	(void)err;
	MUST(row->etag && row->etag[0] && !row->mtime);
	MUST(row->url[0] == '/' || strncmp(row->url, "s3://", 5) == 0);
	MUST(!strstr(row->url, "/../") && (!*before || strcmp(*before, row->url) < 0));
	check_row(row);
	free(*before);
	*before = mem_copy(row->url);
	return 0;
}

static void check_foreign(struct span text)
{
	struct memory_store *memory = memory_store_new();
	struct store *store = &memory->base;
	AUTO(data_reader_freep) struct data_reader *reader = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *before = NULL;
	int result;

	MUST(store_put(store, "list.jsonl", text.text, text.len, &err) == 0);
	reader = data_reader_foreign(store, "list.jsonl");
	result = data_sort_rows(reader, "the list", check_sorted, &before, &err);
	MUST((result < 0) == (err != NULL));
	MUST(!err || (err->hint && !err->damage));
	data_reader_freep(&reader);
	store_freep(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { (const char *)data, size }, list, line;

	if (!span_next(&rest, FUZZ_PART, &list))
		return 0;
	check_list(list);
	while (span_next(&list, '\n', &line))
		check_line(line);
	if (span_next(&rest, FUZZ_PART, &list))
		check_foreign(list);
	return 0;
}
