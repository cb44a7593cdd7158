/*
 * Shared by the parts of the journal on an object store: journal_dir.c (layout and writing),
 * journal_dir_read.c and journal_dir_salvage.c. Included by these alone.
 */
#ifndef STK_RUN_JOURNAL_JOURNAL_DIR_INTERNAL_H
#define STK_RUN_JOURNAL_JOURNAL_DIR_INTERNAL_H

#include "jobs/base/hash.h"
#include "jobs/run/journal/begun.h"
#include "jobs/store/store.h"

#define EVENT_BYTES_MAX ((size_t)64 << 20)
#define CHUNK           64 /* events; reading n costs n/CHUNK + CHUNK + 2 requests at most */
#define PART            8 /* events, after which a partial chunk is written if reads cost requests */
#define CHUNK_BYTES_MAX ((size_t)256 << 20)

#define BY_BEGIN    "{\"by\":\""
#define BY_DIGITS   32
#define EVENT_BEGIN "\",\"event\":"
#define WRAP_BEGIN  (sizeof BY_BEGIN - 1 + BY_DIGITS + sizeof EVENT_BEGIN - 1)

/* The events of one run since the last chunk began, as stored: the process that writes the next
 * chunk has mostly just read or written them all. */
struct recent {
	char run[JOURNAL_RUN_MAX];
	int64_t first, next; /* numbers; empty while first is 0 */
	struct sb text;
};

struct dir_journal {
	struct store *store;
	struct recent recent;
};

bool journal_dir_is_remote(const struct dir_journal *journal);
/* Keys of an event, and of the mark that its run is being removed; the caller frees them. */
char *journal_dir_event_key(const char *run, int64_t seq);
char *journal_dir_removed_key(const char *run);

/* Reads one event as stored, with its newline. Returns 1, 0 if absent, -1. */
int journal_dir_get_event(struct dir_journal *journal, const char *run, int64_t seq,
			  struct sb *text, char *tag, struct err **err);
/* True if something other than a file is in the place of an event, in a store that is a directory;
 * a description is appended to `ret`. */
bool journal_dir_in_the_way(const struct dir_journal *journal, const char *run, int64_t seq,
			    struct sb *ret);
/* Finds the body in a wrapped line (without its newline). Returns false if the line is damaged. */
bool journal_dir_unwrap(const char *line, size_t len, const char **ret, size_t *ret_len);

/* Appends the line of an event, as stored, with a fresh `by`. */
void journal_dir_wrap(const char *body, struct sb *ret);
/* Takes the events behind `good` out of a chunk; removes it if none is left. */
int journal_dir_cut_chunk(struct dir_journal *journal, const char *run, int64_t first, int64_t good,
			  struct err **err);
/* Writes the mark of the journal; what lies in its place is kept beside it. */
int journal_dir_mend_mark(struct dir_journal *journal, const char *mark, struct err **err);

/* Remembers an event that was just read or written. */
void journal_dir_remember(struct dir_journal *journal, const char *run, int64_t seq,
			  const struct sb *text);
/* Writes the chunk that ends with `last`, or the part of it up to `last`. */
void journal_dir_write_chunk(struct dir_journal *journal, const char *run, int64_t last);

/* Members of journal_ops. */
int journal_dir_rows(void *opened, const char *run, int64_t from, journal_row_fn fn, void *arg,
		     struct err **err);
int journal_dir_next(void *opened, const char *run, int64_t from, int64_t *ret, struct err **err);
char *journal_dir_file(void *opened, const char *run, int64_t seq);
int journal_dir_put_aside(void *opened, const char *run, int64_t good, int64_t *ret_count,
			  struct err **err);
int journal_dir_restart(void *opened, const char *run, int64_t good, const char *first,
			const char *body, bool again, struct err **err);
int journal_dir_first_keep(void *opened, const char *run, const char *body, struct err **err);
int journal_dir_first_kept(void *opened, const char *run, struct sb *ret, struct err **err);

#endif
