/*
 * The journal on an object store: one object an event, written only if absent,
 * so that two drivers on two machines cannot both have a number. The default on
 * network file systems, where SQLite must not be.
 *
 *   journal.json                      which kind of journal lies here, and its format
 *   runs/<run>/events/<seq>.json      {"by": chance, "event": the event}
 *   runs/<run>/chunks/<seq>.jsonl     CHUNK of those in one object, from seq on; fewer
 *                                     of the newest, where each look is a request
 *
 * `by` tells the writer's own object from an equal one after a write whose
 * answer was lost. Chunks are copies that make reading cheap: whoever appends
 * the last event of one writes it; one that is missing or damaged costs time
 * alone. Events stay when they are in a chunk, or a late writer could have their
 * numbers again.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/text.h"
#include "jobs/run/journal.h"
#include "jobs/store/store.h"

#define FORMAT_VERSION  1
#define EVENT_BYTES_MAX ((size_t)64 << 20)
#define CHUNK           64 /* events; reading n costs n/CHUNK + CHUNK + 2 requests at most */
#define PART            8  /* events, after which the chunk so far is written where reading costs */
#define CHUNK_BYTES_MAX ((size_t)256 << 20)
#define PUT_TRIES       3
#define PUT_MS          20000 /* no try begins later than this after the first */
#define SINGLES         4     /* events read from the middle of a chunk before it is asked for */

#define BY_BEGIN    "{\"by\":\""
#define BY_DIGITS   32
#define EVENT_BEGIN "\",\"event\":"
/* The last line of a chunk that is not whole: how many events stand before it. */
#define PART_END   "{\"events\":%lld}\n"
#define WRAP_BEGIN (sizeof BY_BEGIN - 1 + BY_DIGITS + sizeof EVENT_BEGIN - 1)

/* The events of one run since the last chunk began, as they lie there: whoever writes the
 * next chunk has mostly just read or written them all. */
struct recent {
	char run[JOURNAL_RUN_MAX];
	int64_t first, next; /* numbers; they are none while first is 0 */
	struct sb text;
};

struct dir_journal {
	struct store *store;
	struct recent recent;
};

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

	if (found <= 0)
		return found;
	if (js_parse(text.text, text.len, "the mark of the journal", &mark, err) < 0)
		return err_wrap(err, "'%s' in '%s'", JOURNAL_DIR_MARK, store_url(journal->store));
	if (js_int(mark, "v", 0) > FORMAT_VERSION) {
		err_set(err, EXIT_REFUSED, "the journal in '%s' was written by a newer stoker",
			store_url(journal->store));
		return err_hint(err, "use that version, or another folder with --state");
	}
	return 1;
}

static int dir_open(const char *where, enum journal_mode mode, void **ret, struct err **err)
{
	AUTO(journal_autoclose) struct dir_journal *journal = journal_objects_on(NULL);
	static const char mark[] = "{\"v\":1,\"kind\":\"dir\"}\n";
	int found;

	if (store_open(where, &journal->store, err) < 0)
		return -1;
	found = check_format(journal, err);
	if (found < 0)
		return -1;
	if (found == 0 && mode == JOURNAL_READ) {
		*ret = NULL;
		return 0;
	}
	if (found == 0 &&
	    store_put_if_absent(journal->store, JOURNAL_DIR_MARK, mark, sizeof mark - 1, err) < 0)
		return err_wrap(err, "cannot begin a journal");
	*ret = TAKE(journal);
	return 0;
}

static char *event_key(const char *run, int64_t seq)
{
	return mem_format("runs/%s/events/%012lld.json", run, (long long)seq);
}

static char *chunk_key(const char *run, int64_t first)
{
	return mem_format("runs/%s/chunks/%012lld.jsonl", run, (long long)first);
}

/* The body in a wrapped line (without its newline); false: it is damaged. */
static bool unwrap(const char *line, size_t len, const char **ret, size_t *ret_len)
{
	if (len < WRAP_BEGIN + 1 || strncmp(line, BY_BEGIN, sizeof BY_BEGIN - 1) != 0 ||
	    strncmp(line + WRAP_BEGIN - (sizeof EVENT_BEGIN - 1), EVENT_BEGIN,
		    sizeof EVENT_BEGIN - 1) != 0 ||
	    line[len - 1] != '}')
		return false;
	*ret = line + WRAP_BEGIN;
	*ret_len = len - WRAP_BEGIN - 1;
	return true;
}

/* One event as it lies there, with its newline: 1, 0 absent, -1. */
static int get_event(struct dir_journal *journal, const char *run, int64_t seq, struct sb *text,
		     char *tag, struct err **err)
{
	AUTO(auto_free) char *key = event_key(run, seq);

	return store_get(journal->store, key, EVENT_BYTES_MAX, text, tag, err);
}

/* The put was refused or its outcome is unknown; what is there decides: 1 it is
 * our object and durable, 0 another's, 2 nothing is there, -1. */
static int find_out(struct dir_journal *journal, const char *run, int64_t seq,
		    const struct sb *ours, bool unknown, struct err **err)
{
	AUTO(auto_free) char *key = event_key(run, seq);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);
	char tag[STORE_TAG];
	int found = get_event(journal, run, seq, &text, tag, err);

	if (found <= 0)
		return found < 0 ? -1 : 2;
	if (text.len != ours->len || memcmp(text.text, ours->text, ours->len) != 0)
		return 0;
	/* It arrived, but perhaps not on the disk: only a write that was confirmed
	 * is durable. */
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
	AUTO(auto_free) char *key = event_key(run, seq);
	AUTO(err_freep) struct err *first = NULL;
	struct mono start = mono_now();

	for (int i = 0; i < PUT_TRIES && mono_now().ms - start.ms <= PUT_MS; i++) {
		AUTO(err_freep) struct err *failed = NULL, *unread = NULL;
		int put = store_put_if_absent(journal->store, key, ours->text, ours->len, &failed);
		int found;

		if (put > 0)
			return 1;
		found = find_out(journal, run, seq, ours, put < 0 || first, &unread);
		if (found == 0 || found == 1)
			return found;
		if (!first)
			first = failed ? TAKE(failed) : TAKE(unread);
	}
	if (!first)
		return err_set(err, EXIT_REFUSED, "'%s' in '%s' comes and goes", key,
			       store_url(journal->store));
	*err = TAKE(first);
	return err_wrap(err, "cannot append to the journal of run %s", run);
}

struct leftovers {
	char **keys;
	size_t count;
};

static int note_leftover(void *arg, const struct store_object *object, struct err **err)
{
	struct leftovers *l = arg;

	(void)err;
	l->keys = mem_grow(l->keys, l->count + 2, sizeof *l->keys);
	l->keys[l->count++] = mem_copy(object->key);
	l->keys[l->count] = NULL;
	return 0;
}

/* Events and copies of them; the lease is not one. */
static int note_rest(void *arg, const struct store_object *object, struct err **err)
{
	bool is_one = strstr(object->key, "/events/") || strstr(object->key, "/chunks/");

	return is_one ? note_leftover(arg, object, err) : 0;
}

static void leftovers_release(struct leftovers *l)
{
	auto_strv(&l->keys);
}

/* Without its first event a run is gone; the copies of that go before it. What
 * lies beneath the run's folder is then rests, for the caller to clear away. */
static int dir_forget(void *opened, const char *run, struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(leftovers_release) struct leftovers l = { 0 };
	AUTO(auto_free) char *chunks = mem_format("runs/%s/chunks/", run);
	AUTO(auto_free) char *first = event_key(run, 1);

	journal->recent.first = 0;
	if (store_list(journal->store, chunks, note_leftover, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		if (store_delete(journal->store, l.keys[i], err) < 0)
			return -1;
	return store_delete(journal->store, first, err);
}

/* Before the first event: rests of a run of that id whose removal was cut short. */
static int clear_rests(struct dir_journal *journal, const char *run, struct err **err)
{
	AUTO(leftovers_release) struct leftovers l = { 0 };
	AUTO(auto_free) char *all = mem_format("runs/%s/", run);
	AUTO(auto_free) char *key = event_key(run, 1);
	struct store_object first;
	int begun;

	if (store_list(journal->store, all, note_rest, &l, err) < 0)
		return -1;
	/* Asked after the listing: a run that has begun since then has this one. */
	begun = store_stat(journal->store, key, &first, err);
	if (begun < 0)
		return -1;
	for (size_t i = 0; !begun && i < l.count; i++)
		if (store_delete(journal->store, l.keys[i], err) < 0)
			return -1;
	return 0;
}

/* An event is there, and this is it. */
static void remember(struct dir_journal *journal, const char *run, int64_t seq,
		     const struct sb *text)
{
	struct recent *recent = &journal->recent;

	if ((seq - 1) % CHUNK == 0) {
		snprintf(recent->run, sizeof recent->run, "%s", run);
		recent->first = recent->next = seq;
		sb_clear(&recent->text);
	}
	if (recent->first == 0 || seq != recent->next || strcmp(recent->run, run) != 0) {
		recent->first = 0;
		return;
	}
	sb_add(&recent->text, text->text, text->len);
	recent->next++;
}

static bool is_far(const struct dir_journal *journal)
{
	return !store_directory(journal->store);
}

/* All events of a chunk up to `last`, one behind the other; false: they cannot be had. */
static bool gather(struct dir_journal *journal, const char *run, int64_t last, struct sb *text)
{
	const struct recent *recent = &journal->recent;
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t first = last - (last - 1) % CHUNK;

	if (recent->first == first && recent->next == last + 1 && strcmp(recent->run, run) == 0 &&
	    !recent->text.truncated) {
		sb_add(text, recent->text.text, recent->text.len);
		return true;
	}
	for (int64_t seq = first; seq <= last; seq++)
		if (get_event(journal, run, seq, text, NULL, &ignored) <= 0)
			return false;
	return true;
}

/* Write the chunk that ends with `last`, or so far does. Nothing rests on it, so a failure
 * is nobody's business; nor does it matter who was last, for all of them are beginnings of
 * the same. */
static void write_chunk(struct dir_journal *journal, const char *run, int64_t last)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(CHUNK_BYTES_MAX);
	AUTO(auto_free) char *key = chunk_key(run, last - (last - 1) % CHUNK);

	if (!gather(journal, run, last, &text) || text.truncated)
		return;
	if (last % CHUNK != 0)
		sb_addf(&text, PART_END, (long long)(last % CHUNK));
	if (is_far(journal)) /* over its own beginning */
		(void)!store_put(journal->store, key, text.text, text.len, &err);
	else
		(void)!store_put_if_absent(journal->store, key, text.text, text.len, &err);
}

/* The run rests: whoever reads it from now on is spared a request an event. */
static void dir_settle(void *opened, const char *run, int64_t last)
{
	struct dir_journal *journal = opened;

	if (is_far(journal) && last % PART != 0)
		write_chunk(journal, run, last);
}

static int dir_append(void *opened, const char *run, int64_t seq, const char *body,
		      struct err **err)
{
	struct dir_journal *journal = opened;
	AUTO(sb_release) struct sb ours = SB_INIT_MAX(EVENT_BYTES_MAX);
	unsigned char chance[BY_DIGITS / 2];
	int put;

	random_bytes(chance, sizeof chance);
	sb_adds(&ours, BY_BEGIN);
	for (size_t i = 0; i < sizeof chance; i++)
		sb_addf(&ours, "%02x", chance[i]);
	sb_adds(&ours, EVENT_BEGIN);
	sb_adds(&ours, body);
	sb_adds(&ours, "}\n");
	if (ours.truncated)
		return err_set(err, EXIT_REFUSED, "an event of run %s is too large", run);
	if (seq == 1 && clear_rests(journal, run, err) < 0)
		return -1;
	put = put_event(journal, run, seq, &ours, err);
	if (put > 0)
		remember(journal, run, seq, &ours);
	if (put > 0 && seq % (is_far(journal) ? PART : CHUNK) == 0)
		write_chunk(journal, run, seq);
	return put;
}

struct rows {
	const struct dir_journal *journal; /* for errors, as is `run` */
	const char *run;
	int (*fn)(void *arg, const char *body, size_t len, struct err **err);
	void *arg;
};

static int damaged(const struct rows *rows, int64_t seq, struct err **err)
{
	err_set(err, EXIT_REFUSED, "event %lld of run %s in '%s' is damaged", (long long)seq,
		rows->run, store_url(rows->journal->store));
	return err_hint(err, "bring 'runs/%s/events' back from a copy, or remove that folder",
			rows->run);
}

/* Hand out the lines of `text` from the number `from` on; they begin at `first`.
 * 0 go on, 1 stop, -1. */
static int hand_out(const struct rows *rows, const struct sb *text, int64_t first, int64_t from,
		    struct err **err)
{
	const char *line = text->text, *end = text->text + text->len, *newline;
	int result = 0;

	for (int64_t seq = first; result == 0 && line < end; seq++, line = newline + 1) {
		const char *body;
		size_t len;

		newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline || !unwrap(line, (size_t)(newline - line), &body, &len))
			return damaged(rows, seq, err);
		if (seq >= from)
			result = rows->fn(rows->arg, body, len, err);
	}
	return result;
}

static bool is_part_end(const char *line, int64_t events)
{
	AUTO(auto_free) char *want = mem_format(PART_END, (long long)events);

	return events < CHUNK && strcmp(line, want) == 0;
}

/* The whole chunk, or its beginning, if it can be used: how many events, 0. It is checked
 * whole before a line is used. */
static int64_t get_chunk(struct dir_journal *journal, const char *run, int64_t first,
			 struct sb *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *key = chunk_key(run, first);
	const char *line, *end, *newline, *body;
	int64_t seq = first;
	size_t len;

	if (store_get(journal->store, key, CHUNK_BYTES_MAX, text, NULL, &err) <= 0)
		return 0;
	end = text->text + text->len;
	for (line = text->text; line < end; line = newline + 1, seq++) {
		newline = memchr(line, '\n', (size_t)(end - line));
		if (newline && newline + 1 == end && is_part_end(line, seq - first)) {
			text->len = (size_t)(line - text->text);
			text->text[text->len] = '\0';
			return seq - first;
		}
		if (!newline || !unwrap(line, (size_t)(newline - line), &body, &len))
			return 0;
	}
	return seq == first + CHUNK ? CHUNK : 0;
}

/* What is there does not change; where each look is a request that is worth something. */
static bool is_remembered(const struct dir_journal *journal, const char *run, int64_t seq)
{
	const struct recent *recent = &journal->recent;

	return is_far(journal) && recent->first > 0 && seq >= recent->first && seq < recent->next &&
	       strcmp(recent->run, run) == 0 && !recent->text.truncated;
}

/* Events that came together, from `first` on: as if they had come one by one. */
static void remember_all(struct dir_journal *journal, const char *run, int64_t first, int64_t count,
			 const struct sb *text)
{
	struct recent *recent = &journal->recent;

	snprintf(recent->run, sizeof recent->run, "%s", run);
	recent->first = first;
	recent->next = first + count;
	sb_clear(&recent->text);
	sb_add(&recent->text, text->text, text->len);
}

/* As many as can be had at once of those from `seq` on, with their chunk's others: the
 * number of the first that is not among them; `seq` where none is. */
static int64_t get_many(struct dir_journal *journal, const char *run, int64_t seq, bool ask,
			struct sb *text)
{
	int64_t first = seq - (seq - 1) % CHUNK, count;

	if (is_remembered(journal, run, seq)) {
		/* A copy: whoever gets the rows may read here, too. */
		sb_add(text, journal->recent.text.text, journal->recent.text.len);
		return journal->recent.next;
	}
	count = ask ? get_chunk(journal, run, first, text) : 0;
	if (first + count <= seq)
		return seq;
	remember_all(journal, run, first, count, text);
	return first + count;
}

static int dir_rows(void *opened, const char *run, int64_t from,
		    int (*fn)(void *arg, const char *body, size_t len, struct err **err), void *arg,
		    struct err **err)
{
	struct dir_journal *journal = opened;
	struct rows rows = { journal, run, fn, arg };
	int64_t seq = from < 1 ? 1 : from, singles = 0;
	int result = 0;

	while (result == 0) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX(CHUNK_BYTES_MAX);
		int64_t first = seq - (seq - 1) % CHUNK, next;
		int found;

		/* Who comes again and again for what is new finds nothing or a few. */
		next = get_many(journal, run, seq, seq == first || singles == SINGLES, &text);
		if (next > seq) {
			result = hand_out(&rows, &text, first, seq, err);
			seq = next;
			continue;
		}
		sb_clear(&text);
		found = get_event(journal, run, seq, &text, NULL, err);
		if (found <= 0) {
			result = found < 0 ? -1 : 1;
			break;
		}
		remember(journal, run, seq, &text);
		result = hand_out(&rows, &text, seq, seq, err);
		seq++;
		singles++;
	}
	return result < 0 ? -1 : 0;
}

/* A run and when it began, for sorting. */
struct begun {
	char run[JOURNAL_RUN_MAX];
	char at[UTC_TEXT];
};

struct begun_list {
	struct dir_journal *journal;
	struct begun *list;
	size_t count;
	struct begun *now; /* being read */
};

static int take_time(void *arg, const char *body, size_t len, struct err **err)
{
	struct begun_list *l = arg;
	json_auto_t *row = NULL;
	const char *at;

	if (js_parse(body, len, "a journal row", &row, err) < 0)
		return -1;
	at = js_str(row, "at");
	snprintf(l->now->at, sizeof l->now->at, "%s", at ? at : "");
	return 1;
}

static int add_run(void *arg, const char *name, struct err **err)
{
	struct begun_list *l = arg;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);
	struct rows rows = { l->journal, name, take_time, l };
	int found;

	if (!run_id_valid(name))
		return 0;
	found = get_event(l->journal, name, 1, &text, NULL, err);
	if (found <= 0)
		return found; /* a folder without events: not begun, or removed */
	l->list = mem_grow(l->list, l->count + 1, sizeof *l->list);
	l->now = &l->list[l->count++];
	memset(l->now, 0, sizeof *l->now);
	snprintf(l->now->run, sizeof l->now->run, "%s", name);
	return hand_out(&rows, &text, 1, 1, err) < 0 ? -1 : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct begun *x = a, *y = b;
	int order = strcmp(x->at, y->at);

	return order ? order : strcmp(x->run, y->run);
}

/* An id may be a person's own word, so ids do not sort by age. */
static int dir_runs(void *opened, journal_run_fn fn, void *arg, struct err **err)
{
	struct begun_list l = { .journal = opened };
	int result = store_folders(l.journal->store, "runs/", add_run, &l, err);

	if (l.count > 1)
		qsort(l.list, l.count, sizeof *l.list, by_age);
	for (size_t i = 0; result == 0 && i < l.count; i++)
		result = fn(arg, l.list[i].run, err);
	free(l.list);
	return result < 0 ? -1 : 0;
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
	.rows = dir_rows,
	.runs = dir_runs,
	.forget = dir_forget,
	.settle = dir_settle,
	.objects = dir_objects,
};
