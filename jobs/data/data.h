/*
 * Which data a turn of a retraining is given.
 *
 * The watermark is a set, not a time: the cumulative list of everything that the promoted model and
 * its ancestors were given. The listing of the data is joined with it in key order. An object that
 * is not in the list is new, whatever its name and age; one that is there with another size or
 * content is new and marked as replaced; one that is gone is counted. A clock decides about nothing
 * but `settle`: younger objects wait for the next turn.
 *
 * Two objects are one content if size and ETag are equal. Files have no ETag: theirs are equal if
 * size and time of modification (ms) are, or size and SHA-256. The digest is computed of every new
 * file, and of a known one whose time alone has changed.
 *
 * Manifests and cumulative lists are JSON Lines, in the order of the bytes of `url`, each stored
 * under the SHA-256 of its bytes: `data/<sha256>.jsonl` below a workspace. A line of a manifest:
 *
 *   {"url":"s3://bucket/clicks/a.csv","size":12,"etag":"5d41…","new":true,"replaced":false}
 *   {"url":"/data/clicks/a.csv","size":12,"mtime":"2026-11-29T17:30:00.000Z","sha256":"2c26…",
 *    "new":true,"replaced":false}
 *
 * with the ETag without its quotes. A cumulative list has no "new"; it has "aside":true in the
 * lines of objects that no model was given, and that are left out until they change, and there
 * "replaced":true if a model was given an earlier content of the object.
 *
 * All of them are read and written as streams: memory does not grow with their length.
 *
 * Errors are those of the stores, and EXIT_REFUSED for a list that is invalid (with its line), cut
 * or changed (err->damage), and for data of which nothing at all can be listed.
 *
 * jobs/data: listing, join, manifests and cumulative lists. It knows no spec, no run and no model.
 */
#ifndef STK_DATA_DATA_H
#define STK_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

/* The place of the data, and the rules for which of it counts. All members are borrowed. */
struct data_source {
	/* A directory, an s3:// prefix, or a JSON Lines file of {"url","size","etag"} in any order
	 * (in a directory or on S3; its name ends in .jsonl or .ndjson): each url is s3://… or an
	 * absolute path, and the etag is any text that changes with the content. */
	const char *url;
	/* Globs (jobs/base/text/pattern.h) over the keys below `url`, or over the urls of a JSON
	 * Lines file without "s3://" or the first slash. NULL: everything. */
	const json_t *include;
	/* Only objects of folders that hold an object of this name count, at any depth below such
	 * a folder. The marker itself is no data. NULL: all folders count. */
	const char *done_marker;
	int64_t settle_ms; /* younger objects wait; 0: none waits */
};

/* True for the url of a JSON Lines file. */
bool data_url_is_list(const char *url);

/* A list that is stored by content. */
struct data_list {
	char *url; /* owned; NULL: there is none */
	char digest[SHA256_HEX];
};
void data_list_release(struct data_list *list);

struct data_counts {
	int64_t listed;   /* objects of the listing, markers left out */
	int64_t objects;  /* of the manifest */
	int64_t fresh;    /* of these, new to the model; `replaced` are among them */
	int64_t replaced; /* of these, the model was given another content */
	int64_t deleted;  /* in the cumulative list, and not in the listing */
	int64_t waiting;  /* new, but too young, or written to while they were read */
	int64_t unmarked; /* in folders without the marker */
	int64_t aside;    /* left out until they change */
	int64_t held_out; /* also of the hold-out, which no model is given */
	int64_t excluded; /* no pattern of `include` matches */
	int64_t unsafe;   /* objects whose names cannot be written as text, or are no valid keys */
	uint64_t bytes;   /* total size of the objects of the manifest */
};

/* The data that a turn asks for. All members are borrowed until data_turn_freep(). */
struct data_query {
	struct data_source source;
	struct utc at;                /* the moment of `settle` */
	bool incremental;             /* the manifest has the new objects alone */
	const struct data_list *seen; /* the cumulative list; NULL: no model was given anything */
	/* The hold-out, whose objects are never in the manifest: those below a url, or of a turn.
	 * NULL: there is none. */
	const char *held_below;
	const struct data_turn *held;
};

/* A listing of the data, kept in a temporary file. */
struct data_turn;

/* Lists and joins. Nothing is stored. Data without any object (or none that `include` matches) is
 * an error: a wrong url must not look like a week without news. A cumulative list in a bucket is
 * not read if the listing has its digest: then it is the list. */
int data_turn_open(const struct data_query *query, struct data_turn **ret, struct err **err);
/* Leaves out the new objects of the manifests of refused runs, unless they have changed. */
int data_turn_leave_out(struct data_turn *turn, const struct data_list *manifests, size_t count,
			struct err **err);
const struct data_counts *data_turn_counts(const struct data_turn *turn); /* borrowed */
/* Reads the first byte of an object of the turn, to see that the data may be read and not only be
 * listed. Does nothing if the turn has none. */
int data_turn_probe(const struct data_turn *turn, struct err **err);
/* Stores the manifest and, unless `ret_seen` is NULL, the cumulative list that holds once a model
 * was given it. A file that has been written to since it was listed leaves the manifest, and the
 * counts. Objects that exist already are not stored again. */
int data_turn_store(struct data_turn *turn, struct store *workspace, struct data_list *ret_manifest,
		    struct data_list *ret_seen, struct err **err);
void data_turn_freep(struct data_turn **turn); /* for AUTO() */

/* Changes of the objects of a manifest since it was made. */
struct data_drift {
	int64_t changed, gone;
	char *first; /* URL of the first of them; owned; NULL: none */
};
/* Lists the data again and compares it with a manifest. */
int data_drift_find(const struct data_source *source, const struct data_list *manifest,
		    struct data_drift *ret, struct err **err);
void data_drift_release(struct data_drift *drift);

/* --- data on a node --- */

/* Brings a manifest that is stored by content (`url` ends in its digest) to `path`, unless it lies
 * in a directory of this machine. *ret_path is where it is; the caller frees it. Proved. */
int data_fetch_manifest(const char *url, const char *path, char **ret_path, struct err **err);
/* Brings the objects of a manifest (a local file) into a folder: those of a bucket are downloaded,
 * files are links. Their paths there are their keys below `base`, the url of the source; with NULL,
 * their urls without "s3://" or the first slash. What is not as the manifest says, by size and
 * ETag, or of a file by size and time or SHA-256, is EXIT_REFUSED. */
int data_fetch_objects(const char *manifest, const char *base, const char *folder,
		       struct err **err);

/* --- a list, line by line --- */

struct data_row {
	const char *url;    /* all texts are borrowed until the next row is asked for */
	uint64_t size;      /* bytes */
	const char *etag;   /* without quotes; NULL: a file */
	const char *mtime;  /* RFC 3339 with ms; NULL: no file */
	const char *sha256; /* NULL: not known */
	bool is_new, replaced, aside;
};

struct data_reader;

/* Opens a list that is stored by content. The reader proves digest and order on the way; it may
 * differ only once the end is reached. */
int data_reader_open(const struct data_list *list, struct data_reader **ret, struct err **err);
/* Opens a local file with a list; `name` stands for it in errors. The descriptor stays the
 * caller's, and its position is not used. */
struct data_reader *data_reader_of_file(int fd, const char *name);
/* Returns 1 with a row, 0 at the end, -1 with an error. */
int data_reader_next(struct data_reader *reader, struct data_row *ret, struct err **err);
void data_reader_freep(struct data_reader **reader); /* for AUTO() */

#endif
