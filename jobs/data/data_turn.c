/* Listing and cumulative list side by side in key order, and the decision about each object. See
 * data.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

/* --- one content or two --- */

int data_turn_hash(struct data_row *row, char sha[SHA256_HEX], struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(row->url);
	AUTO(store_freep) struct store *store = NULL;
	char mtime[UTC_TEXT];
	struct store_object now;
	uint64_t size;
	int found;

	if (store_open(folder, &store, err) < 0)
		return -1;
	/* A link, a pipe or an absent file is not an object of a store. */
	found = store_stat(store, fs_basename(row->url), &now, err);
	if (found <= 0)
		return found;
	if (hash_sha256_file(row->url, sha, &size, err) < 0)
		return -1;
	found = store_stat(store, fs_basename(row->url), &now, err);
	if (found <= 0)
		return found;
	if (size != row->size || now.size != size ||
	    strcmp(clock_utc_format(now.modified, mtime), row->mtime) != 0)
		return 0;
	row->sha256 = sha;
	return 1;
}

int data_turn_same(struct data_row *row, const struct data_row *known, char sha[SHA256_HEX],
		   bool *ret, struct err **err)
{
	*ret = false;
	if (row->size != known->size)
		return 0;
	if (row->etag || known->etag) {
		*ret = row->etag && known->etag && row->etag[0] &&
		       strcmp(row->etag, known->etag) == 0;
		return 0;
	}
	if (strcmp(row->mtime, known->mtime) == 0) {
		*ret = true;
		if (!row->sha256)
			row->sha256 = known->sha256;
		return 0;
	}
	if (!known->sha256)
		return 0;
	if (!row->sha256 && data_turn_hash(row, sha, err) < 0)
		return -1;
	*ret = row->sha256 && strcmp(row->sha256, known->sha256) == 0;
	return 0;
}

/* --- the join --- */

/* Moves on to the row of the url, if the list has it. */
static int find_row(struct data_cursor *cursor, const char *url, bool *ret, struct err **err)
{
	int order = 1;

	while (cursor->at && (order = strcmp(cursor->row.url, url)) < 0)
		if (data_cursor_next(cursor, err) < 0)
			return -1;
	*ret = cursor->at && order == 0;
	return 0;
}

/* The same for the cumulative list: what is passed on the way is in no listing any more. */
static int find_seen(struct data_turn *turn, const char *url, bool *ret, struct err **err)
{
	struct data_cursor *seen = &turn->seen;
	int order = 1;

	while (seen->at && (!url || (order = strcmp(seen->row.url, url)) < 0)) {
		turn->counts.deleted++;
		if (data_cursor_next(seen, err) < 0)
			return -1;
	}
	*ret = seen->at && order == 0;
	return 0;
}

static int is_held_out(struct data_turn *turn, const char *url, bool *ret, struct err **err)
{
	*ret = turn->hold_out_prefix && text_starts(url, turn->hold_out_prefix);
	return *ret ? 0 : find_row(&turn->hold_out, url, ret, err);
}

static int is_aside(struct data_turn *turn, struct data_row *row, char sha[SHA256_HEX], bool *ret,
		    struct err **err)
{
	*ret = false;
	for (size_t i = 0; i < turn->query.aside_count; i++) {
		struct data_cursor *aside = &turn->aside[i];
		bool found, same = false;

		if (find_row(aside, row->url, &found, err) < 0)
			return -1;
		if (found && aside->row.is_new &&
		    data_turn_same(row, &aside->row, sha, &same, err) < 0)
			return -1;
		*ret |= same;
	}
	return 0;
}

static int keep_row(struct data_turn *turn, const struct data_row *row, struct err **err)
{
	if (!row->aside && (row->is_new || !turn->query.incremental)) {
		turn->counts.objects++;
		turn->counts.bytes += row->size;
		turn->counts.fresh += row->is_new;
		turn->counts.replaced += row->is_new && row->replaced;
		if (!turn->first)
			turn->first = mem_copy(row->url);
	}
	return data_writer_add(&turn->spool, row, err);
}

/* An object that the cumulative list has as it is now. */
static int keep_known(struct data_turn *turn, struct data_row *row, const struct data_row *seen,
		      struct err **err)
{
	bool touched = row->mtime && strcmp(row->mtime, seen->mtime) != 0;

	row->aside = seen->aside;
	row->replaced = seen->aside && seen->replaced;
	turn->counts.aside += seen->aside;
	if (touched || (!seen->aside && !turn->query.incremental))
		return keep_row(turn, row, err);
	return 0;
}

static int join_row(void *arg, struct data_row *row, bool young, struct err **err)
{
	struct data_turn *turn = arg;
	const struct data_row *seen = &turn->seen.row;
	char sha[SHA256_HEX];
	bool held_out, known, same = false;

	if (is_held_out(turn, row->url, &held_out, err) < 0 ||
	    find_seen(turn, row->url, &known, err) < 0)
		return -1;
	if (held_out)
		turn->counts.held_out++;
	else if (known && data_turn_same(row, seen, sha, &same, err) < 0)
		return -1;
	else if (same && keep_known(turn, row, seen, err) < 0)
		return -1;
	else if (!same && young)
		turn->counts.waiting++;
	else if (!same) {
		row->replaced = known && (!seen->aside || seen->replaced);
		if (is_aside(turn, row, sha, &row->aside, err) < 0)
			return -1;
		row->is_new = !row->aside;
		turn->counts.aside += row->aside;
		if (keep_row(turn, row, err) < 0)
			return -1;
	}
	return known ? data_cursor_next(&turn->seen, err) : 0;
}

static int open_lists(struct data_turn *turn, struct err **err)
{
	const struct data_query *query = &turn->query;
	const struct data_turn *hold_out = query->hold_out;

	if (query->seen && query->seen->url &&
	    (data_reader_open(query->seen, &turn->seen.reader, err) < 0 ||
	     data_cursor_next(&turn->seen, err) < 0))
		return err_wrap(err, "cannot read what the models were given so far");
	turn->aside = mem_zero(query->aside_count, sizeof *turn->aside);
	for (size_t i = 0; i < query->aside_count; i++)
		if (data_reader_open(&query->aside[i], &turn->aside[i].reader, err) < 0 ||
		    data_cursor_next(&turn->aside[i], err) < 0)
			return err_wrap(err, "cannot read the data that is set aside");
	if (!hold_out)
		return 0;
	turn->hold_out.reader = data_reader_of_file(hold_out->spool.fd, hold_out->name);
	if (data_listing_prefix(&hold_out->query.source, &turn->hold_out_prefix, err) < 0)
		return -1;
	return data_cursor_next(&turn->hold_out, err);
}

/* Reads to the ends of all lists, where they are proved: what is left of the cumulative list is in
 * no listing any more. */
static int end_lists(struct data_turn *turn, struct err **err)
{
	bool ignored;

	if (find_seen(turn, NULL, &ignored, err) < 0)
		return -1;
	for (size_t i = 0; i < turn->query.aside_count; i++)
		while (turn->aside[i].at)
			if (data_cursor_next(&turn->aside[i], err) < 0)
				return -1;
	return 0;
}

static void close_lists(struct data_turn *turn)
{
	data_cursor_release(&turn->seen);
	data_cursor_release(&turn->hold_out);
	for (size_t i = 0; turn->aside && i < turn->query.aside_count; i++)
		data_cursor_release(&turn->aside[i]);
	free(turn->aside);
	turn->aside = NULL;
	free(turn->hold_out_prefix);
	turn->hold_out_prefix = NULL;
}

/* A wrong url must not look like a week without news. */
static int check_listed(const struct data_turn *turn, struct err **err)
{
	const struct data_counts *counts = &turn->counts;

	if (counts->listed == 0) {
		err_set(err, EXIT_REFUSED,
			turn->name[0] == '/' && access(turn->name, F_OK) < 0
				? "there is no '%s'"
				: "'%s' holds no objects",
			turn->name);
		return err_hint(err, "check the url, and who may list what is there");
	}
	if (counts->excluded < counts->listed)
		return 0;
	err_set(err, EXIT_REFUSED, "none of the %" PRId64 " objects of '%s' matches data.include",
		counts->listed, turn->name);
	return err_hint(err, "patterns are about the part of a name behind the url");
}

int data_turn_open(const struct data_query *query, struct data_turn **ret, struct err **err)
{
	AUTO(data_turn_freep) struct data_turn *turn = mem_zero(1, sizeof *turn);

	turn->query = *query;
	turn->spool = (struct data_writer){ .fd = -1, .out = SB_INIT };
	turn->name = mem_copy(query->source.url);
	if (data_writer_open(&turn->spool, DATA_LINE_SPOOL, err) < 0 || open_lists(turn, err) < 0 ||
	    data_listing_run(&query->source, query->at, &turn->counts, join_row, turn, err) < 0 ||
	    end_lists(turn, err) < 0 || check_listed(turn, err) < 0 ||
	    data_writer_flush(&turn->spool, err) < 0)
		return -1;
	close_lists(turn);
	*ret = TAKE(turn);
	return 0;
}

const struct data_counts *data_turn_counts(const struct data_turn *turn)
{
	return &turn->counts;
}

void data_turn_freep(struct data_turn **ret)
{
	struct data_turn *turn = *ret;

	if (!turn)
		return;
	close_lists(turn);
	data_writer_release(&turn->spool);
	free(turn->name);
	free(turn->first);
	free(turn);
	*ret = NULL;
}
