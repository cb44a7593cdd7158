/*
 * Shared by the files of this box:
 *
 *   data_row.c      a row as a line, and back
 *   data_reader.c   a list as a stream of rows
 *   data_writer.c   a list that is written as a stream, and stored by content
 *   data_sort.c     a list in any order, put in order
 *   data_listing.c  the objects of a source, in order
 *   data_turn.c     listing and cumulative list, joined
 *   data_aside.c    objects of refused runs, left out of a turn
 *   data_store.c    manifest and cumulative list of a turn, stored
 *   data_fetch.c    the objects of a manifest, on a node
 *
 * Calls go from the last to the first.
 */
#ifndef STK_DATA_DATA_INTERNAL_H
#define STK_DATA_DATA_INTERNAL_H

#include "jobs/base/sb.h"
#include "jobs/data/data.h"

/* Longer lines are refused: a key has 1,024 bytes, each of which JSON may write as six. */
#define DATA_LINE_MAX ((size_t)16 << 10)

/* --- data_row.c --- */

enum data_line {
	DATA_LINE_SEEN,     /* a line of a cumulative list */
	DATA_LINE_MANIFEST, /* of a manifest */
	DATA_LINE_SPOOL,    /* of a temporary file: all members */
};
/* Appends the row as one line. */
void data_row_put(struct sb *out, const struct data_row *row, enum data_line form);
/* Reads a line of `len` bytes, which is changed, and has a byte behind it that is too. The texts of
 * the row point into the line, or into `*keep`, a value that the caller releases. Returns 0, or -1
 * with an error that names neither file nor line. */
int data_row_read(char *line, size_t len, json_t **keep, struct data_row *ret, struct err **err);
/* Reads a line of a list that a person or another program has written: url, size and etag. */
int data_row_read_foreign(const char *line, size_t len, json_t **keep, struct data_row *ret,
			  struct err **err);

/* --- data_reader.c --- */

/* A list of foreign lines, in any order, in a store. The caller keeps the store open. */
struct data_reader *data_reader_foreign(struct store *store, const char *key);
/* The lines of a part of a local file, in which one url may come several times. */
struct data_reader *data_reader_part(int fd, const char *name, uint64_t from, uint64_t to);
/* True if it reads from a service. */
bool data_reader_is_far(const struct data_reader *reader);
/* A reader that stands at a row, for joins in key order. */
struct data_cursor {
	struct data_reader *reader; /* owned; NULL: an empty list */
	struct data_row row;
	bool at; /* `row` is valid */
};
int data_cursor_next(struct data_cursor *cursor, struct err **err);
/* Moves on to the row of the url, if the list has it. */
int data_cursor_find(struct data_cursor *cursor, const char *url, bool *ret, struct err **err);
void data_cursor_release(struct data_cursor *cursor);

/* --- data_writer.c --- */

struct data_writer {
	int fd;
	struct sb out;
	struct sha256 *sha; /* NULL: a spool */
	enum data_line form;
};
int data_writer_open(struct data_writer *writer, enum data_line form, struct err **err);
int data_writer_add(struct data_writer *writer, const struct data_row *row, struct err **err);
int data_writer_flush(struct data_writer *writer, struct err **err);
/* Flushes, and stores the list by its content in the workspace. */
int data_writer_store(struct data_writer *writer, struct store *workspace, struct data_list *ret,
		      struct err **err);
void data_writer_release(struct data_writer *writer);

/* --- data_sort.c --- */

typedef int (*data_row_fn)(void *arg, struct data_row *row, struct err **err);
/* Passes on the rows of a foreign list in order, each url once; `name` stands for it in errors. */
int data_sort_rows(struct data_reader *reader, const char *name, data_row_fn fn, void *arg,
		   struct err **err);

/* --- data_listing.c --- */

/* An object of a listing. `young`: its age is less than settle. */
typedef int (*data_listed_fn)(void *arg, struct data_row *row, bool young, struct err **err);
/* Passes on the objects of the source that count, in order, and counts those that do not. */
int data_listing_run(const struct data_source *source, struct utc at, struct data_counts *counts,
		     data_listed_fn fn, void *arg, struct err **err);
/* The text that begins every url of the source's objects, with a slash at its end; NULL: it is a
 * JSON Lines file. The caller frees it. */
int data_listing_prefix(const struct data_source *source, char **ret, struct err **err);

/* --- data_turn.c --- */

struct data_turn {
	struct data_query query;
	struct data_counts counts;
	struct data_writer spool; /* rows of the manifest, and all that the list does not have so */
	char *name;               /* of the data, in errors */
	char *first;              /* the first object's URL; NULL: there is none */
	/* while it is made */
	struct data_cursor seen, held;
	char *held_prefix;
};

/* Counts the row, and adds it to the spool. */
int data_turn_keep(struct data_turn *turn, const struct data_row *row, struct err **err);

/* True if both rows are one content. If only the time of a file differs, it is read: `sha` is set
 * to its digest, and row->sha256 points there. */
int data_turn_same(struct data_row *row, const struct data_row *known, char sha[SHA256_HEX],
		   bool *ret, struct err **err);
/* The digest of a listed file. Returns 1, 0 if it is not the file that was listed, or -1. */
int data_turn_hash(struct data_row *row, char sha[SHA256_HEX], struct err **err);

#endif
