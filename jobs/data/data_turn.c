/* Listing and cumulative list side by side in key order, and the decision about each object. See
 * data.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

/* --- comparison of contents --- */

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

/* Moves on in the cumulative list: what is passed on the way is in no listing any more. */
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
	*ret = turn->held_prefix && text_starts(url, turn->held_prefix);
	return *ret ? 0 : data_cursor_find(&turn->held, url, ret, err);
}

int data_turn_keep(struct data_turn *turn, const struct data_row *row, struct err **err)
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
		return data_turn_keep(turn, row, err);
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
		row->is_new = true;
		if (data_turn_keep(turn, row, err) < 0)
			return -1;
	}
	return known ? data_cursor_next(&turn->seen, err) : 0;
}

static int open_lists(struct data_turn *turn, struct err **err)
{
	const struct data_query *query = &turn->query;

	if (query->seen && query->seen->url &&
	    data_reader_open(query->seen, &turn->seen.reader, err) < 0)
		return -1;
	if (query->held_below) {
		const struct data_source below = { .url = query->held_below };

		return data_listing_prefix(&below, &turn->held_prefix, err);
	}
	if (!query->held)
		return 0;
	turn->held.reader = data_reader_of_file(query->held->spool.fd, query->held->name);
	return data_cursor_next(&turn->held, err);
}

static void close_lists(struct data_turn *turn)
{
	data_cursor_release(&turn->seen);
	data_cursor_release(&turn->held);
	free(turn->held_prefix);
	turn->held_prefix = NULL;
}

static int begin_join(struct data_turn *turn, struct err **err)
{
	if (data_cursor_next(&turn->seen, err) < 0)
		return err_wrap(err, "cannot read what the models were given so far");
	return 0;
}

/* Reads to the end of the cumulative list, where it is proved: what is left of it is in no listing
 * any more. */
static int end_join(struct data_turn *turn, struct err **err)
{
	bool ignored;

	return find_seen(turn, NULL, &ignored, err);
}

/* --- a list that need not be read --- */

/* A listing, kept until it is known whether it is the cumulative list. */
struct whole_listing {
	struct data_turn *turn;
	struct data_writer rows; /* in which "new" says that an object is young */
	struct sha256 *sha;      /* of a cumulative list of all that are not held out */
	struct sb line;
	int64_t held_out;
	bool untagged; /* an object has no ETag: nothing is known as the same */
};

static void whole_release(struct whole_listing *whole)
{
	data_writer_release(&whole->rows);
	hash_sha256_freep(&whole->sha);
	sb_release(&whole->line);
}

static int add_to_whole(void *arg, struct data_row *row, bool young, struct err **err)
{
	struct whole_listing *whole = arg;
	const char *held = whole->turn->held_prefix;

	if (held && text_starts(row->url, held)) {
		whole->held_out++;
	} else {
		sb_clear(&whole->line);
		data_row_put(&whole->line, row, DATA_LINE_SEEN);
		hash_sha256_add(whole->sha, whole->line.text, whole->line.len);
		whole->untagged |= !row->etag || !row->etag[0];
	}
	row->is_new = young;
	return data_writer_add(&whole->rows, row, err);
}

static int join_whole(struct data_turn *turn, struct whole_listing *whole, struct err **err)
{
	AUTO(data_reader_freep)
	struct data_reader *reader = data_reader_of_file(whole->rows.fd, turn->name);
	struct data_row row;
	int found = data_writer_flush(&whole->rows, err);

	if (found < 0 || begin_join(turn, err) < 0)
		return -1;
	while (found >= 0 && (found = data_reader_next(reader, &row, err)) > 0) {
		bool young = row.is_new;

		row.is_new = false;
		found = join_row(turn, &row, young, err);
	}
	return found < 0 ? -1 : end_join(turn, err);
}

/* Objects of a bucket are told apart by what the listing says of them. A list is stored by its
 * digest: if the listing has the same, each object is known and none is gone, for no request. */
static int list_and_compare(struct data_turn *turn, struct err **err)
{
	const struct data_query *query = &turn->query;
	AUTO(whole_release)
	struct whole_listing whole = { .turn = turn, .line = SB_INIT, .sha = hash_sha256_new() };
	char digest[SHA256_HEX];

	if (data_writer_open(&whole.rows, DATA_LINE_SPOOL, err) < 0 ||
	    data_listing_run(&query->source, query->at, &turn->counts, add_to_whole, &whole, err) <
		    0)
		return -1;
	hash_sha256_end(TAKE(whole.sha), digest);
	if (whole.untagged || !query->incremental || strcmp(digest, query->seen->digest) != 0)
		return join_whole(turn, &whole, err);
	turn->counts.held_out = whole.held_out;
	return 0;
}

static int list_and_join(struct data_turn *turn, struct err **err)
{
	const struct data_query *query = &turn->query;

	return begin_join(turn, err) < 0 || data_listing_run(&query->source, query->at,
							     &turn->counts, join_row, turn, err) < 0
		       ? -1
		       : end_join(turn, err);
}

/* True if the cumulative list costs a request, and the listing may tell its digest. */
static int may_compare(const struct data_turn *turn, bool *ret, struct err **err)
{
	AUTO(auto_free) char *prefix = NULL;

	if (data_listing_prefix(&turn->query.source, &prefix, err) < 0)
		return -1;
	*ret = turn->seen.reader && data_reader_is_far(turn->seen.reader) && !turn->query.held &&
	       (!prefix || prefix[0] != '/');
	return 0;
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
	bool compares = false;

	turn->query = *query;
	turn->spool = (struct data_writer){ .fd = -1, .out = SB_INIT };
	turn->name = mem_copy(query->source.url);
	if (data_writer_open(&turn->spool, DATA_LINE_SPOOL, err) < 0 || open_lists(turn, err) < 0 ||
	    may_compare(turn, &compares, err) < 0 ||
	    (compares ? list_and_compare(turn, err) : list_and_join(turn, err)) < 0 ||
	    check_listed(turn, err) < 0 || data_writer_flush(&turn->spool, err) < 0)
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
