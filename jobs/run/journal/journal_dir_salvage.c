/*
 * Going on with a damaged run in the journal on an object store: see journal.h.
 *
 * There are no transactions here, so the order of the steps keeps the run damaged until the last
 * one: the place of the first bad event is taken by an empty object if nothing is there, the events
 * behind it go from the newest on, and the event that ends the damage replaces it last. A driver
 * that lost its lease and does not know it yet may still append behind that; its event is then
 * damage again, and is set aside like any other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/journal_dir_internal.h"

/* Numbers of the objects of one kind, in order. */
struct dir_numbers {
	int64_t *list;
	size_t count;
	const char *end; /* of their names: ".json" */
	int64_t least;   /* smaller ones are left out */
};

static void numbers_release(struct dir_numbers *numbers)
{
	free(numbers->list);
}

static int add_number(void *arg, const struct store_object *object, struct err **err)
{
	struct dir_numbers *numbers = arg;
	char *end = NULL;
	long long number = strtoll(strrchr(object->key, '/') + 1, &end, 10);

	(void)err;
	if (strcmp(end, numbers->end) != 0 || number < numbers->least)
		return 0;
	numbers->list = mem_grow(numbers->list, numbers->count + 1, sizeof *numbers->list);
	numbers->list[numbers->count++] = number;
	return 0;
}

static int list_numbers(struct dir_journal *journal, const char *run, const char *folder,
			struct dir_numbers *numbers, struct err **err)
{
	AUTO(auto_free) char *prefix = mem_format("runs/%s/%s/", run, folder);

	return store_list(journal->store, prefix, add_number, numbers, err);
}

static int keep_aside(struct dir_journal *journal, const char *run, int64_t seq,
		      const struct sb *text, struct err **err)
{
	const char *bytes = text->text ? text->text : "";
	AUTO(auto_free) char *name = damage_aside_name(seq, bytes, text->len);
	AUTO(auto_free) char *key = mem_format("runs/%s/%s", run, name);

	return store_put_if_absent(journal->store, key, bytes, text->len, err) < 0 ? -1 : 0;
}

/* An entry that is no file and stands in the place of an event is moved as it is; an empty object
 * takes its place, so that the run stays damaged. */
static int move_obstacle(struct dir_journal *journal, const char *run, int64_t seq,
			 int64_t *ret_count, struct err **err)
{
	AUTO(sb_release) struct sb what = SB_INIT, path = SB_INIT;
	const char *root = store_directory(journal->store);
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);
	AUTO(auto_free) char *at = root ? fs_join(root, key) : NULL;
	AUTO(auto_free) char *to = NULL;
	AUTO(auto_free) char *folder = NULL;

	if (!root || !damage_obstacle(root, key, &what, &path))
		return 0;
	if (strcmp(path.text, at) != 0) /* a folder above it: no event is there */
		return damage_refuse_obstacle(root, key, "the events", err);
	to = mem_format("%s/runs/%s/" DAMAGE_ASIDE "%012lld-obstacle", root, run, (long long)seq);
	folder = fs_dirname(to);
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	++*ret_count;
	if (rename(at, to) < 0)
		return fs_error(err, errno, "cannot move '%s' to '%s'", at, to);
	if (store_put_if_absent(journal->store, key, "", 0, err) >= 0)
		return 0;
	(void)!rename(to, at);
	return -1;
}

int journal_dir_put_aside(void *opened, const char *run, int64_t good, int64_t *ret_count,
			  struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(numbers_release) struct dir_numbers seqs = { .end = ".json", .least = good + 1 };

	*ret_count = 0;
	if (move_obstacle(journal, run, good + 1, ret_count, err) < 0 ||
	    list_numbers(journal, run, "events", &seqs, err) < 0)
		return -1;
	for (size_t i = 0; i < seqs.count; i++) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);
		int found = journal_dir_get_event(journal, run, seqs.list[i], &text, NULL, err);

		if (found < 0 ||
		    (found > 0 && keep_aside(journal, run, seqs.list[i], &text, err) < 0))
			return -1;
		*ret_count += found;
	}
	return 0;
}

/* Puts an object in the place of an event, whatever is there. */
static int put_over(struct dir_journal *journal, const char *run, int64_t seq, const char *body,
		    struct err **err)
{
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);

	journal_dir_wrap(body, &text);
	if (text.truncated)
		return err_set(err, EXIT_REFUSED, "an event of run %s is too large", run);
	return store_put(journal->store, key, text.text, text.len, err);
}

/* Copies of removed events must not be read any more: a chunk keeps those up to `good`. */
static int cut_chunks(struct dir_journal *journal, const char *run, int64_t good, struct err **err)
{
	AUTO(numbers_release) struct dir_numbers firsts = { .end = ".jsonl", .least = 1 };

	journal->recent.first = 0;
	if (list_numbers(journal, run, "chunks", &firsts, err) < 0)
		return -1;
	for (size_t i = 0; i < firsts.count; i++)
		if (firsts.list[i] + CHUNK - 1 > good &&
		    journal_dir_cut_chunk(journal, run, firsts.list[i], good, err) < 0)
			return -1;
	return 0;
}

int journal_dir_restart(void *opened, const char *run, int64_t good, const char *first,
			const char *body, bool again, struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(numbers_release) struct dir_numbers seqs = { .end = ".json", .least = 1 };
	const int64_t last = (first ? 1 : good) + 1;
	AUTO(auto_free) char *bad = journal_dir_event_key(run, last);
	AUTO(auto_free) char *removed = journal_dir_removed_key(run);

	(void)again;
	/* The mark of a removal that was cut short would make a missing event 1 no damage. */
	if (store_put_if_absent(journal->store, bad, "", 0, err) < 0 ||
	    cut_chunks(journal, run, good, err) < 0 ||
	    store_delete(journal->store, removed, err) < 0)
		return -1;
	seqs.least = last + 1;
	if (list_numbers(journal, run, "events", &seqs, err) < 0)
		return -1;
	for (size_t i = seqs.count; i-- > 0;) {
		AUTO(auto_free) char *key = journal_dir_event_key(run, seqs.list[i]);

		if (store_delete(journal->store, key, err) < 0)
			return -1;
	}
	/* The first bad event is still bad, unless event 1 was lost: then the event behind it
	 * seems good once event 1 is there again. */
	if (first && (store_put(journal->store, bad, "", 0, err) < 0 ||
		      put_over(journal, run, 1, first, err) < 0))
		return -1;
	return put_over(journal, run, last, body, err);
}

static char *first_key(const char *run)
{
	return mem_format("runs/%s/" JOURNAL_FIRST, run);
}

int journal_dir_first_keep(void *opened, const char *run, const char *body, struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(auto_free) char *key = first_key(run);

	return store_put(journal->store, key, body, strlen(body), err);
}

int journal_dir_first_kept(void *opened, const char *run, struct sb *ret, struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(auto_free) char *key = first_key(run);

	return store_get(journal->store, key, JOURNAL_FIRST_MAX, ret, NULL, err);
}

int journal_dir_mend_mark(struct dir_journal *journal, const char *mark, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(JOURNAL_FIRST_MAX);
	char sum[SHA256_HEX];
	int found =
		store_get(journal->store, JOURNAL_DIR_MARK, JOURNAL_FIRST_MAX, &text, NULL, err);

	if (found < 0)
		return -1;
	if (found > 0) {
		AUTO(auto_free) char *key = NULL;

		hash_sha256_hex(text.text ? text.text : "", text.len, sum);
		key = mem_format(JOURNAL_DIR_MARK ".damaged-%.12s", sum);
		if (store_put_if_absent(journal->store, key, text.text ? text.text : "", text.len,
					err) < 0)
			return -1;
	}
	return store_put(journal->store, JOURNAL_DIR_MARK, mark, strlen(mark), err);
}
