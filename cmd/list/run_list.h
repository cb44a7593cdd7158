/*
 * All runs of a journal, for a list: read, filtered and sorted. The row of an ended run comes from
 * its summary where there is one, so that many runs are read at once.
 */
#ifndef STK_CMD_LIST_RUN_LIST_H
#define STK_CMD_LIST_RUN_LIST_H

#include "cmd/follow/run_head.h"
#include "cmd/follow/run_view.h"

struct listed {
	char run[JOURNAL_RUN_MAX];
	/* Owned; of a run that cannot be read: run, state, error and hint. NULL for one whose
	 * summary was read, until run_list_whole(). */
	json_t *status;
	char *text;           /* owned: of the summary, if `status` is NULL */
	struct run_head head; /* points into one of them */
	const char *word; /* the state's word in a list: "no driver" for a run that is left alone;
			     borrowed */
	bool is_damaged;  /* the run cannot be read */
	bool has_ended;
	struct utc created, ended; /* ms 0: not known */
	double cost;               /* USD; -1: not known */
	int64_t size;              /* bytes; -1: not known */
	size_t place;              /* in the list as it was read */
};

struct run_list {
	struct listed *rows;
	size_t count;
	size_t total;        /* of all runs, before any was filtered out */
	int worst;           /* exit code of the last run that could not be read; 0: none */
	struct err *unfound; /* owned; runs that could not be found; NULL: all were */
	json_t *errors;      /* owned array of {"message", "hint"}, in order */
};
void run_list_release(struct run_list *list); /* for AUTO() */

/* Reads all runs, newest first. An unreachable store is an error; a run that cannot be read is a
 * row. */
int run_list_read(struct journal *journal, enum run_view_trust trust, struct run_list *ret,
		  struct err **err);
/* Reads the status of a row that has none. */
int run_list_whole(struct journal *journal, struct listed *row, struct err **err);

/* Milliseconds from the begin to the end, or to `now`; -1: not known. */
int64_t run_list_duration(const struct listed *row, struct utc now);

/* Drops the rows that are not wanted. */
void run_list_filter(struct run_list *list,
		     bool (*is_wanted)(const struct listed *row, const void *arg), const void *arg);
/* Sorts the rows; those that are equal stay in their order. */
void run_list_sort(struct run_list *list, int (*compare)(const void *a, const void *b, void *arg),
		   void *arg);
/* Drops the rows from `count` on. */
void run_list_cut(struct run_list *list, size_t count);

/* True if the run goes on without a driver. */
bool run_list_is_alone(const struct listed *row);

#endif
