/*
 * A store over another one whose conditional writes fail on order, in the ways in
 * which a network can lose them; and whose calls of any kind get lost after some others.
 */
#ifndef TEST_RUN_FAULTY_STORE_H
#define TEST_RUN_FAULTY_STORE_H

#include <stdlib.h>
#include <string.h>

#include "jobs/store/store_backend.h"

enum fault {
	FAULT_NONE,
	FAULT_REQUEST_LOST, /* not written, and an error */
	FAULT_REPLY_LOST,   /* written, and an error */
	FAULT_REPEATED,     /* written by a first try inside, refused by the second */
	FAULT_LATE,         /* an error; it arrives right before the next write */
	FAULT_REFUSED,      /* not written, as if the condition did not hold */
};

struct faulty_store {
	struct store base; /* first: a store is one of these */
	struct store *real;
	enum fault faults[8]; /* of the next conditional writes */
	int next;
	bool unreadable;    /* gets fail too */
	const char *spoilt; /* part of a key: bit n says whether its nth read gives other bytes */
	unsigned spoilt_reads;
	int calls_left; /* calls that are carried out before some get lost */
	int calls_to_lose, calls_lost;
	bool replies; /* writes among them are carried out all the same: only the reply is lost */
	enum exit_code code; /* of its errors; 0: EXIT_REFUSED */
	struct sb late;      /* on its way, with its key */
	char *late_key;
	int writes;
};

static struct faulty_store *faulty(struct store *store)
{
	return (struct faulty_store *)(void *)store;
}

static int faulty_error(const struct faulty_store *f, struct err **err)
{
	return err_set(err, f->code ? f->code : EXIT_REFUSED, "the network is gone");
}

static inline void faulty_lose(struct faulty_store *f, int after, int calls)
{
	f->calls_left = after;
	f->calls_to_lose = calls;
}

/* Sets an error if this call is lost. */
static bool faulty_is_lost(struct faulty_store *f, struct err **err)
{
	if (f->calls_to_lose == 0 || f->calls_left-- > 0)
		return false;
	f->calls_left = 0;
	f->calls_to_lose--;
	f->calls_lost++;
	(void)!faulty_error(f, err);
	return true;
}

static void faulty_arrive(struct faulty_store *f)
{
	struct err *err = NULL;

	if (f->late_key &&
	    store_put_if_absent(f->real, f->late_key, f->late.text, f->late.len, &err) < 0)
		abort();
	free(TAKE(f->late_key));
	sb_clear(&f->late);
}

/* True if this write is to be carried out; `*ret_lost`: its reply is lost, with an error. */
static bool faulty_begins(struct faulty_store *f, bool *ret_lost, struct err **err)
{
	*ret_lost = faulty_is_lost(f, err);
	return !*ret_lost || f->replies;
}

/* The result of a write, whose reply may be lost. */
static int faulty_ends(bool lost, int result, struct err **why, struct err **err)
{
	if (lost)
		err_freep(why);
	else if (*why)
		*err = TAKE(*why);
	return lost ? -1 : result;
}

/* `tag` NULL: if absent. */
static int faulty_write(struct store *base, const char *key, const char *tag, const void *bytes,
			size_t len, struct err **err)
{
	struct faulty_store *f = faulty(base);
	enum fault fault = f->next < (int)STK_LENGTH(f->faults) ? f->faults[f->next++] : FAULT_NONE;
	struct err *why = NULL;
	bool lost;
	int written;

	f->writes++;
	if (!faulty_begins(f, &lost, err))
		return -1;
	faulty_arrive(f);
	if (lost) {
		written = tag ? store_replace_if_same(f->real, key, tag, bytes, len, &why)
			      : store_put_if_absent(f->real, key, bytes, len, &why);
		return faulty_ends(lost, written, &why, err);
	}
	if (fault == FAULT_REQUEST_LOST)
		return faulty_error(f, err);
	if (fault == FAULT_REFUSED)
		return 0;
	if (fault == FAULT_LATE) {
		f->late_key = mem_copy(key);
		sb_add(&f->late, bytes, len);
		return faulty_error(f, err);
	}
	written = tag ? store_replace_if_same(f->real, key, tag, bytes, len, err)
		      : store_put_if_absent(f->real, key, bytes, len, err);
	if (fault == FAULT_REPLY_LOST && written >= 0)
		return faulty_error(f, err);
	return fault == FAULT_REPEATED ? 0 : written;
}

static int faulty_put_if_absent(struct store *store, const char *key, const void *bytes, size_t len,
				struct err **err)
{
	return faulty_write(store, key, NULL, bytes, len, err);
}

static int faulty_replace(struct store *store, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err)
{
	return faulty_write(store, key, tag, bytes, len, err);
}

static int faulty_get(struct store *store, const char *key, size_t max, struct sb *ret,
		      char ret_tag[STORE_TAG], struct err **err)
{
	struct faulty_store *f = faulty(store);

	if (f->unreadable)
		return faulty_error(f, err);
	if (f->spoilt && strstr(key, f->spoilt)) {
		bool spoils = f->spoilt_reads & 1;

		f->spoilt_reads >>= 1;
		if (spoils) {
			sb_adds(ret, "?");
			return 1;
		}
	}
	return faulty_is_lost(f, err) ? -1 : store_get(f->real, key, max, ret, ret_tag, err);
}

static int faulty_read_range(struct store *store, const char *key, uint64_t offset, size_t len,
			     struct sb *ret, char ret_tag[STORE_TAG], struct err **err)
{
	struct faulty_store *f = faulty(store);

	return faulty_is_lost(f, err)
		       ? -1
		       : store_read_range(f->real, key, offset, len, ret, ret_tag, err);
}

static int faulty_stat(struct store *store, const char *key, struct store_object *ret,
		       struct err **err)
{
	struct faulty_store *f = faulty(store);

	return faulty_is_lost(f, err) ? -1 : store_stat(f->real, key, ret, err);
}

static int faulty_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		       struct err **err)
{
	struct faulty_store *f = faulty(store);

	return faulty_is_lost(f, err) ? -1 : store_list(f->real, prefix, fn, arg, err);
}

static int faulty_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
			  struct err **err)
{
	struct faulty_store *f = faulty(store);

	return faulty_is_lost(f, err) ? -1 : store_folders(f->real, prefix, fn, arg, err);
}

static int faulty_put(struct store *store, const char *key, const void *bytes, size_t len,
		      struct err **err)
{
	struct faulty_store *f = faulty(store);
	struct err *why = NULL;
	bool lost;

	if (!faulty_begins(f, &lost, err))
		return -1;
	return faulty_ends(lost, store_put(f->real, key, bytes, len, &why), &why, err);
}

static int faulty_upload(struct store *store, const struct store_upload *upload, const char *key,
			 struct err **err)
{
	struct faulty_store *f = faulty(store);
	struct err *why = NULL;
	bool lost;

	if (!faulty_begins(f, &lost, err))
		return -1;
	return faulty_ends(lost, f->real->backend->upload(f->real, upload, key, &why), &why, err);
}

static int faulty_remove(struct store *store, const char *key, struct err **err)
{
	struct faulty_store *f = faulty(store);
	struct err *why = NULL;
	bool lost;

	if (!faulty_begins(f, &lost, err))
		return -1;
	return faulty_ends(lost, store_delete(f->real, key, &why), &why, err);
}

static void faulty_free(struct store *store)
{
	struct faulty_store *f = faulty(store);

	store_freep(&f->real);
	free(f->late_key);
	sb_release(&f->late);
	free(f->base.url);
	free(f);
}

static const struct store_backend faulty_backend = {
	.free = faulty_free,
	.list = faulty_list,
	.folders = faulty_folders,
	.get = faulty_get,
	.read_range = faulty_read_range,
	.stat = faulty_stat,
	.put = faulty_put,
	.put_if_absent = faulty_put_if_absent,
	.replace_if_same = faulty_replace,
	.remove = faulty_remove,
	.upload = faulty_upload,
};

/* Over the directory `folder`. */
static struct faulty_store *faulty_new(const char *folder)
{
	struct faulty_store *f = mem_zero(1, sizeof *f);
	struct err *err = NULL;

	f->base.backend = &faulty_backend;
	f->base.url = mem_copy(folder);
	f->late = SB_INIT;
	if (store_open(folder, &f->real, &err) < 0)
		abort();
	return f;
}

#endif
