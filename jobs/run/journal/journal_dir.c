/*
 * The journal on an object store: one object an event, written only if absent, so that two drivers
 * on two machines cannot both have a number. The default on network file systems, where SQLite must
 * not be used.
 *
 *   journal.json                      the kind of journal in this folder, and its format
 *   runs/<run>/events/<seq>.json      {"by": chance, "event": the event}
 *   runs/<run>/chunks/<seq>.jsonl     CHUNK of those in one object, from seq on; fewer in the
 *                                     newest, where each look is a request
 *   runs/<run>/removed                the run is being removed: missing events are no damage
 *   runs/<run>/created.json           a copy of event 1, which alone holds the plan
 *   runs/<run>/damaged/               what a salvage has set aside (journal_dir_salvage.c)
 *
 * `by` tells the writer's own object from an equal one after a write without an answer. Chunks are
 * copies that make reading cheap: the writer of a chunk's last event writes it; a chunk that is
 * missing or damaged costs time alone. Events stay when they are in a chunk, or a late writer could
 * take their numbers again.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/journal/journal_dir_internal.h"

#define FORMAT_VERSION  1
#define MARK            "{\"v\":1,\"kind\":\"dir\"}"
#define PUT_TRIES       3
#define PUT_MS          20000 /* no try begins later than this after the first one */
#define LOST_CHECKS_MAX 8     /* folders of runs, where each look is a request */

static void dir_close(void *opened)
{
	struct dir_journal *journal = opened;

	store_freep(&journal->store);
	sb_release(&journal->recent.text);
	free(journal);
}

static void journal_autoclose(struct dir_journal **journal)
{
	if (*journal)
		dir_close(*journal);
}

static int check_format(struct dir_journal *journal, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	json_auto_t *mark = NULL;
	int found = store_get(journal->store, JOURNAL_DIR_MARK, 4096, &text, NULL, err);

	if (found == 0 && store_directory(journal->store))
		return damage_refuse_obstacle(store_directory(journal->store), JOURNAL_DIR_MARK,
					      "the mark of the journal", err);
	if (found <= 0)
		return found;
	if (js_parse(text.text, text.len, "its mark", &mark, err) < 0 || !json_is_object(mark)) {
		err_freep(err);
		damage_of_file(err, store_url(journal->store),
			       "'" JOURNAL_DIR_MARK "' in it is no mark of a journal");
		return err_hint(err,
				"write %s into that file; all journals have the same mark, and "
				"'stoker resume RUN --salvage' writes it",
				MARK);
	}
	if (js_int(mark, "v", 0) > FORMAT_VERSION) {
		err_set(err, EXIT_REFUSED, "the journal in '%s' was written by a newer stoker",
			store_url(journal->store));
		return err_hint(err, "use that version, or another folder with --state");
	}
	return 1;
}

struct journal_dir_lost {
	struct dir_journal *journal;
	int checks;
	char run[JOURNAL_RUN_MAX];
};

static int find_lost_run(void *arg, const char *name, struct err **err)
{
	struct journal_dir_lost *lost = arg;
	int64_t first;
	int found;

	if (!text_run_id_valid(name))
		return 0;
	found = journal_dir_next(lost->journal, name, 1, &first, err);
	if (found > 0)
		snprintf(lost->run, sizeof lost->run, "%s", name);
	if (found == 0 && journal_dir_is_remote(lost->journal))
		return ++lost->checks == LOST_CHECKS_MAX;
	return found;
}

/* The mark is written before the first event: if events exist without it, it was lost. Returns 0 if
 * there are none, 1 if the mark is there by now: another process has begun the journal. */
static int refuse_lost(struct dir_journal *journal, struct err **err)
{
	struct journal_dir_lost lost = { .journal = journal };
	AUTO(auto_free) char *what = NULL;
	int found;

	if (store_folders(journal->store, "runs/", find_lost_run, &lost, err) < 0)
		return -1;
	if (lost.run[0] == '\0')
		return 0;
	found = check_format(journal, err);
	if (found != 0)
		return found;
	what = mem_format("'" JOURNAL_DIR_MARK "' is missing in it, though events lie there "
			  "(run %s)",
			  lost.run);
	damage_of_file(err, store_url(journal->store), what);
	return err_hint(err,
			"write %s into that file; all journals have the same mark, and 'stoker "
			"resume RUN --salvage' writes it",
			MARK);
}

/* True if something other than a file is in the place of the mark. */
static bool is_obstructed(const struct dir_journal *journal)
{
	const char *root = store_directory(journal->store);
	AUTO(sb_release) struct sb what = SB_INIT;

	return root && damage_obstacle(root, JOURNAL_DIR_MARK, &what, NULL);
}

static int dir_open(const char *where, enum journal_mode mode, void **ret, struct err **err)
{
	AUTO(journal_autoclose) struct dir_journal *journal = journal_objects_on(NULL);
	static const char mark[] = MARK "\n";
	int found;

	if (store_open(where, &journal->store, err) < 0)
		return -1;
	found = check_format(journal, err);
	if (found == 0)
		found = refuse_lost(journal, err);
	if (found < 0 && mode == JOURNAL_SALVAGE && (*err)->damage && !is_obstructed(journal)) {
		err_freep(err);
		found = journal_dir_mend_mark(journal, mark, err) < 0 ? -1 : 1;
	}
	if (found < 0)
		return -1;
	if (found == 0 && mode == JOURNAL_READ) {
		*ret = NULL;
		return 0;
	}
	/* A server without conditional writes is named later, by preflight.h in the driver. */
	if (found == 0 &&
	    (journal_dir_is_remote(journal)
		     ? store_put(journal->store, JOURNAL_DIR_MARK, mark, sizeof mark - 1, err)
		     : store_put_if_absent(journal->store, JOURNAL_DIR_MARK, mark, sizeof mark - 1,
					   err)) < 0)
		return err_wrap(err, "cannot begin a journal");
	*ret = TAKE(journal);
	return 0;
}

/* Reads the object after a put that was refused or has an unknown outcome. Returns 1 if it is ours
 * and durable, 0 if it is another writer's, 2 if absent, -1. */
static int find_outcome(struct dir_journal *journal, const char *run, int64_t seq,
			const struct sb *ours, bool unknown, struct err **err)
{
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);
	char tag[STORE_TAG];
	int found = journal_dir_get_event(journal, run, seq, &text, tag, err);

	if (found <= 0)
		return found < 0 ? -1 : 2;
	if (text.len != ours->len || memcmp(text.text, ours->text, ours->len) != 0)
		return 0;
	/* The write arrived, but perhaps not on the disk: only a confirmed write is durable. */
	if (unknown)
		return store_replace_if_same(journal->store, key, tag, ours->text, ours->len, err) >
				       0
			       ? 1
			       : -1;
	return 1;
}

static int put_event(struct dir_journal *journal, const char *run, int64_t seq,
		     const struct sb *ours, struct err **err)
{
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);
	AUTO(auto_free) char *file = journal_dir_file(journal, run, seq);
	AUTO(sb_release) struct sb what = SB_INIT;
	AUTO(err_freep) struct err *first = NULL;
	struct mono start = clock_mono_now();

	for (int i = 0; i < PUT_TRIES && clock_mono_now().ms - start.ms <= PUT_MS; i++) {
		AUTO(err_freep) struct err *failed = NULL, *unread = NULL;
		int put = store_put_if_absent(journal->store, key, ours->text, ours->len, &failed);
		int found;

		if (put > 0)
			return 1;
		found = find_outcome(journal, run, seq, ours, put < 0 || first, &unread);
		if (found == 0 || found == 1)
			return found;
		if (!first)
			first = failed ? TAKE(failed) : TAKE(unread);
	}
	if (!first && journal_dir_in_the_way(journal, run, seq, &what)) {
		err_set(err, EXIT_REFUSED, "%s", what.text);
		return damage_of_event(err, file, run, seq);
	}
	if (!first)
		return err_set(err, EXIT_REFUSED, "'%s' appears and disappears", file);
	*err = TAKE(first);
	return err_wrap(err, "cannot append to the journal of run %s", run);
}

struct journal_dir_leftovers {
	char **keys;
	size_t count;
};

static int add_leftover(void *arg, const struct store_object *object, struct err **err)
{
	struct journal_dir_leftovers *l = arg;

	(void)err;
	auto_strv_add(&l->keys, &l->count, object->key);
	return 0;
}

static void leftovers_release(struct journal_dir_leftovers *l)
{
	auto_strv(&l->keys);
}

/* Deletes all objects with the prefix. */
static int delete_all(struct dir_journal *journal, const char *prefix, struct err **err)
{
	AUTO(leftovers_release) struct journal_dir_leftovers l = { 0 };

	if (store_list(journal->store, prefix, add_leftover, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		if (store_delete(journal->store, l.keys[i], err) < 0)
			return -1;
	return 0;
}

/* In a directory the whole tree is removed, including anything that is not an object. */
static int delete_tree(struct dir_journal *journal, const char *run, const char *name,
		       struct err **err)
{
	AUTO(auto_free) char *prefix = mem_format("runs/%s/%s", run, name);
	const char *root = store_directory(journal->store);
	AUTO(auto_free) char *path = NULL;

	if (!root) {
		AUTO(auto_free) char *below = mem_format("%s/", prefix);

		return delete_all(journal, below, err);
	}
	path = fs_join(root, prefix);
	return fs_remove_tree(path, err);
}

static int delete_first(struct dir_journal *journal, const char *run, struct err **err)
{
	AUTO(auto_free) char *first = journal_dir_event_key(run, 1);
	AUTO(sb_release) struct sb what = SB_INIT;

	/* An obstacle in its place is removed with the others. */
	return journal_dir_in_the_way(journal, run, 1, &what)
		       ? 0
		       : store_delete(journal->store, first, err);
}

/* A run without its first event and with the mark of removal is gone; the copies of that event go
 * before it. The rest beneath the run's folder is left for the caller to remove. */
static int dir_forget(void *opened, const char *run, struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(err_freep) struct err *unmarked = NULL;
	AUTO(auto_free) char *removed = journal_dir_removed_key(run);

	journal->recent.first = 0;
	/* On a full disk the removal goes on without the mark: if it is then cut short, the run
	 * shows as damaged. */
	(void)!store_put(journal->store, removed, "", 0, &unmarked);
	if (delete_tree(journal, run, "chunks", err) < 0 || delete_first(journal, run, err) < 0 ||
	    delete_tree(journal, run, "events", err) < 0)
		return -1;
	return store_delete(journal->store, removed, err);
}

/* Notes the objects of a run that belong to the journal. */
static int add_rest(void *arg, const struct store_object *object, struct err **err)
{
	const char *of_run = strchr(object->key + sizeof "runs/" - 1, '/');

	if (text_starts(of_run, "/events/") || text_starts(of_run, "/chunks/") ||
	    strcmp(of_run, "/removed") == 0)
		return add_leftover(arg, object, err);
	return 0;
}

/* Clears, before the first event, the rest of a run of that id after a removal that was cut
 * short. */
static int clear_rest(struct dir_journal *journal, const char *run, struct err **err)
{
	AUTO(leftovers_release) struct journal_dir_leftovers l = { 0 };
	AUTO(auto_free) char *all = mem_format("runs/%s/", run);
	AUTO(auto_free) char *first = journal_dir_event_key(run, 1);
	struct store_object there;
	int begun;

	if (store_list(journal->store, all, add_rest, &l, err) < 0)
		return -1;
	/* Checked after the listing: a run that has begun since then has its first event. */
	begun = store_stat(journal->store, first, &there, err);
	if (begun < 0)
		return -1;
	for (size_t i = 0; !begun && i < l.count; i++)
		if (store_delete(journal->store, l.keys[i], err) < 0)
			return -1;
	return 0;
}

/* The run rests: a chunk of its last events spares later readers a request an event. */
static void dir_compact(void *opened, const char *run, int64_t last)
{
	struct dir_journal *journal = opened;

	if (journal_dir_is_remote(journal) && last % PART != 0)
		journal_dir_write_chunk(journal, run, last);
}

static int dir_append(void *opened, const char *run, int64_t seq, const char *body,
		      struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(sb_release) struct sb ours = SB_INIT_MAX(EVENT_BYTES_MAX);
	int put;

	journal_dir_wrap(body, &ours);
	if (ours.truncated)
		return err_set(err, EXIT_REFUSED, "an event of run %s is too large", run);
	if (seq == 1 && clear_rest(journal, run, err) < 0)
		return -1;
	put = put_event(journal, run, seq, &ours, err);
	if (put > 0)
		journal_dir_remember(journal, run, seq, &ours);
	if (put > 0 && seq % (journal_dir_is_remote(journal) ? PART : CHUNK) == 0)
		journal_dir_write_chunk(journal, run, seq);
	return put;
}

struct journal_dir_listing {
	struct dir_journal *journal;
	struct begun begun;
};

static int add_run(void *arg, const char *name, struct err **err)
{
	struct journal_dir_listing *l = arg;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX), what = SB_INIT;
	const char *body = NULL;
	size_t len = 0;
	int64_t first;
	int found;

	if (!text_run_id_valid(name))
		return 0;
	found = journal_dir_get_event(l->journal, name, 1, &text, NULL, err);
	if (found < 0 && (*err)->code == EXIT_UNREACHABLE)
		return -1;
	if (found < 0)
		err_freep(err); /* the reader of the run is told */
	/* A folder without events belongs to a run that has not begun, or was removed. */
	if (found == 0 && !journal_dir_in_the_way(l->journal, name, 1, &what)) {
		found = journal_dir_next(l->journal, name, 1, &first, err);
		if (found <= 0)
			return found;
	}
	if (text.len == 0 || !journal_dir_unwrap(text.text, text.len - 1, &body, &len))
		body = NULL;
	begun_add(&l->begun, name, body, len);
	return 0;
}

static void listing_release(struct journal_dir_listing *l)
{
	begun_release(&l->begun);
}

static int dir_runs(void *opened, journal_run_fn fn, void *arg, struct err **err)
{
	AUTO(listing_release) struct journal_dir_listing l = { .journal = opened };

	if (store_folders(l.journal->store, "runs/", add_run, &l, err) < 0)
		return -1;
	return begun_hand_out(&l.begun, fn, arg, err);
}

static struct store *dir_objects(void *opened)
{
	struct dir_journal *journal = opened;

	return journal->store;
}

void *journal_objects_on(struct store *store)
{
	struct dir_journal *journal = mem_zero(1, sizeof *journal);

	journal->store = store;
	journal->recent.text = SB_INIT_MAX(CHUNK_BYTES_MAX);
	return journal;
}

const struct journal_ops journal_objects = {
	.scheme = "dir",
	.open = dir_open,
	.close = dir_close,
	.append = dir_append,
	.rows = journal_dir_rows,
	.next = journal_dir_next,
	.file = journal_dir_file,
	.runs = dir_runs,
	.forget = dir_forget,
	.put_aside = journal_dir_put_aside,
	.restart = journal_dir_restart,
	.first_keep = journal_dir_first_keep,
	.first_kept = journal_dir_first_kept,
	.compact = dir_compact,
	.objects = dir_objects,
};
