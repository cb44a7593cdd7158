/* What a turn has found, stored: its manifest, and the cumulative list that holds once a model was
 * given it. See data.h. */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/data/data_internal.h"

struct lists {
	struct data_turn *turn;
	struct data_cursor seen, spool;
	struct data_writer manifest, next_seen;
};

static void lists_release(struct lists *lists)
{
	data_cursor_release(&lists->seen);
	data_cursor_release(&lists->spool);
	data_writer_release(&lists->manifest);
	data_writer_release(&lists->next_seen);
}

static bool is_in_manifest(const struct data_turn *turn, const struct data_row *row)
{
	return !row->aside && (row->is_new || !turn->query.incremental);
}

/* A file that was written to since it was listed waits for the next turn. */
static void drop_row(struct data_turn *turn, const struct data_row *row)
{
	struct data_counts *counts = &turn->counts;

	counts->waiting++;
	counts->aside -= row->aside;
	if (!is_in_manifest(turn, row))
		return;
	counts->objects--;
	counts->bytes -= row->size;
	counts->fresh -= row->is_new;
	counts->replaced -= row->is_new && row->replaced;
}

/* Takes the row of the spool into the lists. `seen`: the cumulative list has the url. */
static int take_row(struct lists *lists, bool seen, struct err **err)
{
	struct data_row *row = &lists->spool.row;
	char sha[SHA256_HEX];
	int hashed = 1;

	if (row->mtime && !row->sha256)
		hashed = data_turn_hash(row, sha, err);
	if (hashed < 0)
		return -1;
	if (hashed == 0) {
		drop_row(lists->turn, row);
		return seen ? data_writer_add(&lists->next_seen, &lists->seen.row, err) : 0;
	}
	if (is_in_manifest(lists->turn, row) && data_writer_add(&lists->manifest, row, err) < 0)
		return -1;
	return data_writer_add(&lists->next_seen, row, err);
}

static int merge_lists(struct lists *lists, struct err **err)
{
	struct data_cursor *seen = &lists->seen, *spool = &lists->spool;

	while (seen->at || spool->at) {
		int order = !seen->at ? 1 : !spool->at ? -1 : strcmp(seen->row.url, spool->row.url);

		if ((order >= 0 ? take_row(lists, order == 0, err)
				: data_writer_add(&lists->next_seen, &seen->row, err)) < 0)
			return -1;
		if ((order <= 0 && data_cursor_next(seen, err) < 0) ||
		    (order >= 0 && data_cursor_next(spool, err) < 0))
			return -1;
	}
	return 0;
}

int data_turn_store(struct data_turn *turn, struct store *workspace, struct data_list *ret_manifest,
		    struct data_list *ret_seen, struct err **err)
{
	AUTO(lists_release)
	struct lists lists = { .turn = turn, .manifest = { .fd = -1 }, .next_seen = { .fd = -1 } };
	const struct data_list *seen = turn->query.seen;

	lists.spool.reader = data_reader_of_file(turn->spool.fd, turn->name);
	if (data_writer_open(&lists.manifest, DATA_LINE_MANIFEST, err) < 0 ||
	    data_writer_open(&lists.next_seen, DATA_LINE_SEEN, err) < 0 ||
	    (seen && seen->url && data_reader_open(seen, &lists.seen.reader, err) < 0) ||
	    data_cursor_next(&lists.seen, err) < 0 || data_cursor_next(&lists.spool, err) < 0 ||
	    merge_lists(&lists, err) < 0 ||
	    data_writer_store(&lists.manifest, workspace, ret_manifest, err) < 0)
		return -1;
	return ret_seen ? data_writer_store(&lists.next_seen, workspace, ret_seen, err) : 0;
}

int data_turn_probe(const struct data_turn *turn, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(sb_release) struct sb byte = SB_INIT;
	AUTO(auto_free) char *folder = NULL;
	int found;

	if (!turn->first)
		return 0;
	folder = fs_dirname(turn->first);
	if (store_open(folder, &store, err) < 0)
		return -1;
	found = store_read_range(store, fs_basename(turn->first), 0, 1, &byte, NULL, err);
	if (found < 0)
		return err_wrap(err, "cannot read the data of '%s'", turn->name);
	return found > 0 ? 0
			 : err_set(err, EXIT_REFUSED, "'%s' is listed, but cannot be read",
				   turn->first);
}
