/* Objects that refused runs were given, left out of a turn. See data.h. */
#include <stdlib.h>

#include "jobs/data/data_internal.h"

/* The manifests of the refused runs. */
struct aside {
	struct data_cursor *lists;
	size_t count;
};

static void aside_release(struct aside *aside)
{
	for (size_t i = 0; i < aside->count; i++)
		data_cursor_release(&aside->lists[i]);
	free(aside->lists);
}

static int open_all(struct aside *aside, const struct data_list *manifests, struct err **err)
{
	for (size_t i = 0; i < aside->count; i++)
		if (data_reader_open(&manifests[i], &aside->lists[i].reader, err) < 0 ||
		    data_cursor_next(&aside->lists[i], err) < 0)
			return err_wrap(err, "cannot read the data that is set aside");
	return 0;
}

/* Reads to the ends, where the lists are proved. */
static int end_all(struct aside *aside, struct err **err)
{
	for (size_t i = 0; i < aside->count; i++)
		while (aside->lists[i].at)
			if (data_cursor_next(&aside->lists[i], err) < 0)
				return -1;
	return 0;
}

static int is_aside(struct aside *aside, struct data_row *row, char sha[SHA256_HEX], bool *ret,
		    struct err **err)
{
	*ret = false;
	for (size_t i = 0; i < aside->count; i++) {
		struct data_cursor *list = &aside->lists[i];
		bool found, same = false;

		if (data_cursor_find(list, row->url, &found, err) < 0)
			return -1;
		if (found && list->row.is_new &&
		    data_turn_same(row, &list->row, sha, &same, err) < 0)
			return -1;
		*ret |= same;
	}
	return 0;
}

/* Keeps the rows of the former spool again, as far as they are not set aside. */
static int keep_rest(struct data_turn *turn, struct data_reader *former, struct aside *aside,
		     struct err **err)
{
	struct data_row row;
	int found;

	while ((found = data_reader_next(former, &row, err)) > 0) {
		char sha[SHA256_HEX];
		bool left_out = false;

		if (row.is_new && is_aside(aside, &row, sha, &left_out, err) < 0)
			return -1;
		turn->counts.aside += left_out;
		row.aside |= left_out;
		row.is_new &= !left_out;
		if (data_turn_keep(turn, &row, err) < 0)
			return -1;
	}
	return found < 0 || end_all(aside, err) < 0 ? -1 : data_writer_flush(&turn->spool, err);
}

int data_turn_leave_out(struct data_turn *turn, const struct data_list *manifests, size_t count,
			struct err **err)
{
	AUTO(aside_release)
	struct aside aside = { mem_zero(count + 1, sizeof *aside.lists), count };
	AUTO(data_writer_release) struct data_writer former = turn->spool;
	AUTO(data_reader_freep)
	struct data_reader *reader = data_reader_of_file(former.fd, turn->name);

	free(turn->first);
	turn->first = NULL;
	turn->counts.objects = turn->counts.fresh = turn->counts.replaced = 0;
	turn->counts.bytes = 0;
	if (data_writer_open(&turn->spool, DATA_LINE_SPOOL, err) < 0 ||
	    open_all(&aside, manifests, err) < 0)
		return -1;
	return keep_rest(turn, reader, &aside, err);
}
