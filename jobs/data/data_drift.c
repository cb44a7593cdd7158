/* What has become of the objects of a manifest since it was made: see data.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

struct drift {
	struct data_cursor manifest;
	struct data_drift *ret;
};

static void count_drift(struct drift *drift, int64_t *count, const char *url)
{
	++*count;
	if (!drift->ret->first)
		drift->ret->first = mem_copy(url);
}

static int skip_gone(struct drift *drift, const char *before, struct err **err)
{
	struct data_cursor *manifest = &drift->manifest;

	while (manifest->at && (!before || strcmp(manifest->row.url, before) < 0)) {
		count_drift(drift, &drift->ret->gone, manifest->row.url);
		if (data_cursor_next(manifest, err) < 0)
			return -1;
	}
	return 0;
}

static int compare_row(void *arg, struct data_row *row, bool young, struct err **err)
{
	struct drift *drift = arg;
	struct data_cursor *manifest = &drift->manifest;
	char sha[SHA256_HEX];
	bool same;

	(void)young; /* an object that was given can only be young because it was written again */
	if (skip_gone(drift, row->url, err) < 0)
		return -1;
	if (!manifest->at || strcmp(manifest->row.url, row->url) != 0)
		return 0;
	if (data_turn_same(row, &manifest->row, sha, &same, err) < 0)
		return -1;
	if (!same)
		count_drift(drift, &drift->ret->changed, row->url);
	return data_cursor_next(manifest, err);
}

int data_drift_find(const struct data_source *source, const struct data_list *manifest,
		    struct data_drift *ret, struct err **err)
{
	/* Patterns and markers do not change what the run was given. */
	const struct data_source all = { .url = source->url };
	struct data_counts counts = { 0 };
	struct drift drift = { .ret = ret };
	int result;

	*ret = (struct data_drift){ 0 };
	result = data_reader_open(manifest, &drift.manifest.reader, err) < 0 ||
				 data_cursor_next(&drift.manifest, err) < 0 ||
				 data_listing_run(&all, clock_utc_now(), &counts, compare_row,
						  &drift, err) < 0 ||
				 skip_gone(&drift, NULL, err) < 0
			 ? -1
			 : 0;
	data_cursor_release(&drift.manifest);
	if (result < 0)
		data_drift_release(ret);
	return result;
}

void data_drift_release(struct data_drift *drift)
{
	free(drift->first);
	*drift = (struct data_drift){ 0 };
}
