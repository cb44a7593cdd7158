/* Reading the journal on an object store, and the copies that make it cheap: see
 * journal_dir.c. */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/journal/journal_dir_internal.h"

#define SINGLES 4 /* events read from the middle of a chunk before it is asked for */
/* Last line of a partial chunk: the number of events before it. */
#define PART_END "{\"events\":%lld}\n"

bool journal_dir_is_remote(const struct dir_journal *journal)
{
	return !store_directory(journal->store);
}

char *journal_dir_event_key(const char *run, int64_t seq)
{
	return mem_format("runs/%s/events/%012lld.json", run, (long long)seq);
}

char *journal_dir_removed_key(const char *run)
{
	return mem_format("runs/%s/removed", run);
}

static char *chunk_key(const char *run, int64_t first)
{
	return mem_format("runs/%s/chunks/%012lld.jsonl", run, (long long)first);
}

bool journal_dir_unwrap(const char *line, size_t len, const char **ret, size_t *ret_len)
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

void journal_dir_wrap(const char *body, struct sb *ret)
{
	char chance[BY_DIGITS + 1];

	hash_random_hex(BY_DIGITS / 2, chance);
	sb_adds(ret, BY_BEGIN);
	sb_adds(ret, chance);
	sb_adds(ret, EVENT_BEGIN);
	sb_adds(ret, body);
	sb_adds(ret, "}\n");
}

int journal_dir_get_event(struct dir_journal *journal, const char *run, int64_t seq,
			  struct sb *text, char *tag, struct err **err)
{
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);

	return store_get(journal->store, key, EVENT_BYTES_MAX, text, tag, err);
}

bool journal_dir_in_the_way(const struct dir_journal *journal, const char *run, int64_t seq,
			    struct sb *ret)
{
	const char *root = store_directory(journal->store);
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);

	return root && damage_obstacle(root, key, ret, NULL);
}

void journal_dir_remember(struct dir_journal *journal, const char *run, int64_t seq,
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

/* Appends all events of a chunk up to `last` to `text`; false if they cannot be read. */
static bool gather_chunk(struct dir_journal *journal, const char *run, int64_t last,
			 struct sb *text)
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
		if (journal_dir_get_event(journal, run, seq, text, NULL, &ignored) <= 0)
			return false;
	return true;
}

/* Writes the chunk that ends with `last`, or the part of it up to `last`. Nothing depends on it, so
 * a failure is ignored; the order of writers does not matter either, for all versions are prefixes
 * of the same chunk. */
void journal_dir_write_chunk(struct dir_journal *journal, const char *run, int64_t last)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(CHUNK_BYTES_MAX);
	AUTO(auto_free) char *key = chunk_key(run, last - (last - 1) % CHUNK);

	if (!gather_chunk(journal, run, last, &text) || text.truncated)
		return;
	if (last % CHUNK != 0)
		sb_addf(&text, PART_END, (long long)(last % CHUNK));
	if (journal_dir_is_remote(journal)) /* overwrites the shorter part */
		(void)!store_put(journal->store, key, text.text, text.len, &err);
	else
		(void)!store_put_if_absent(journal->store, key, text.text, text.len, &err);
}

struct journal_dir_read_reader {
	const char *run;
	journal_row_fn fn;
	void *arg;
};

/* Hands out the lines of `text`, which begin at event `first`, from number `*seq` on; `*seq` is
 * then the number at which it stopped. */
static enum rows pass_lines(const struct journal_dir_read_reader *reader, const struct sb *text,
			    int64_t first, int64_t *seq, struct err **err)
{
	const char *line = text->text, *end = text->text + text->len, *newline;
	enum rows answer = ROWS_ON;

	for (int64_t at = first; answer == ROWS_ON && line < end; at++, line = newline + 1) {
		const char *body = NULL;
		size_t len = 0;

		newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			newline = end - 1;
		if (at < *seq)
			continue;
		*seq = at;
		if (*newline != '\n' ||
		    !journal_dir_unwrap(line, (size_t)(newline - line), &body, &len))
			body = NULL;
		answer = reader->fn(reader->arg, at, body, len, err);
	}
	if (answer == ROWS_ON)
		++*seq;
	return answer;
}

static bool is_part_end(const char *line, int64_t events)
{
	AUTO(auto_free) char *want = mem_format(PART_END, (long long)events);

	return events < CHUNK && strcmp(line, want) == 0;
}

/* Reads the whole chunk, or its part, if it is usable. Returns the number of events, or 0. All of
 * it is checked before a line is used. */
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
		if (!newline || !journal_dir_unwrap(line, (size_t)(newline - line), &body, &len))
			return 0;
	}
	return seq == first + CHUNK ? CHUNK : 0;
}

int journal_dir_cut_chunk(struct dir_journal *journal, const char *run, int64_t first, int64_t good,
			  struct err **err)
{
	AUTO(auto_free) char *key = chunk_key(run, first);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(CHUNK_BYTES_MAX);
	int64_t count = get_chunk(journal, run, first, &text), rest = good - first + 1;
	const char *end = text.text;

	if (rest <= 0 || count < rest)
		return store_delete(journal->store, key, err);
	for (int64_t i = 0; i < rest; i++)
		end = (const char *)memchr(end, '\n', (size_t)(text.text + text.len - end)) + 1;
	text.len = (size_t)(end - text.text);
	text.text[text.len] = '\0';
	sb_addf(&text, PART_END, (long long)rest);
	return store_put(journal->store, key, text.text, text.len, err);
}

/* True if the event can be served from memory: events do not change, and on a remote store that
 * saves a request. */
static bool is_remembered(const struct dir_journal *journal, const char *run, int64_t seq)
{
	const struct recent *recent = &journal->recent;

	return journal_dir_is_remote(journal) && recent->first > 0 && seq >= recent->first &&
	       seq < recent->next && strcmp(recent->run, run) == 0 && !recent->text.truncated;
}

/* Remembers events that were read together, from `first` on, as if they had been read one by
 * one. */
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

/* Reads as many events from `seq` on as one request gives, with the others of their chunk. Returns
 * the number after the last; `seq` if nothing was read. */
static int64_t get_copies(struct dir_journal *journal, const char *run, int64_t seq, bool ask,
			  struct sb *text)
{
	int64_t first = seq - (seq - 1) % CHUNK, count;

	if (is_remembered(journal, run, seq)) {
		/* A copy, because the row callback may read here, too. */
		sb_add(text, journal->recent.text.text, journal->recent.text.len);
		return journal->recent.next;
	}
	count = ask ? get_chunk(journal, run, first, text) : 0;
	if (first + count <= seq)
		return seq;
	remember_all(journal, run, first, count, text);
	return first + count;
}

/* Says why this cannot be the object of an event; NULL if it may be. */
static const char *object_fault(const struct sb *text)
{
	if (text->len == 0)
		return "empty";
	if (memchr(text->text, '\n', text->len) != text->text + text->len - 1)
		return "not a line";
	return NULL;
}

/* Reads the event's own object: a fault in it is damage. */
static enum rows read_one(struct dir_journal *journal, const struct journal_dir_read_reader *reader,
			  int64_t *seq, struct err **err)
{
	AUTO(auto_free) char *file = journal_dir_file(journal, reader->run, *seq);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX), what = SB_INIT;
	const int64_t at = *seq;
	int found = journal_dir_get_event(journal, reader->run, at, &text, NULL, err);
	const char *fault;
	enum rows answer;

	if (found < 0)
		return ROWS_FAIL;
	if (found == 0 && !journal_dir_in_the_way(journal, reader->run, at, &what))
		return ROWS_STOP;
	fault = found == 0 ? what.text : object_fault(&text);
	answer = fault ? reader->fn(reader->arg, at, NULL, 0, err)
		       : pass_lines(reader, &text, at, seq, err);
	/* A salvage goes on with the next event. A folder with an obstacle hides all of them. */
	if (fault && answer == ROWS_ON && found == 0)
		return ROWS_STOP;
	if (fault && answer == ROWS_ON)
		++*seq;
	if (fault && answer == ROWS_DAMAGED) {
		err_freep(err);
		err_set(err, EXIT_REFUSED, "%s", fault);
	}
	if (answer == ROWS_DAMAGED) {
		damage_of_event(err, file, reader->run, at);
		return ROWS_FAIL;
	}
	if (!fault && answer != ROWS_FAIL)
		journal_dir_remember(journal, reader->run, at, &text);
	return answer;
}

/* Hands out copies of events. A damaged copy says nothing about the event: the event's own object
 * is read then, and this chunk is not used again. */
static enum rows read_copies(struct dir_journal *journal,
			     const struct journal_dir_read_reader *reader, int64_t *seq,
			     const struct sb *text, int64_t *bad, struct err **err)
{
	int64_t first = *seq - (*seq - 1) % CHUNK;
	enum rows answer = pass_lines(reader, text, first, seq, err);

	if (answer != ROWS_DAMAGED)
		return answer;
	err_freep(err);
	*bad = first;
	journal->recent.first = 0;
	return ROWS_ON;
}

int journal_dir_rows(void *opened, const char *run, int64_t from, journal_row_fn fn, void *arg,
		     struct err **err)
{
	struct dir_journal *journal = opened;
	const struct journal_dir_read_reader reader = { run, fn, arg };
	int64_t seq = from < 1 ? 1 : from, singles = 0, bad = 0;
	enum rows answer = ROWS_ON;

	while (answer == ROWS_ON) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX(CHUNK_BYTES_MAX);
		int64_t first = seq - (seq - 1) % CHUNK;

		/* A reader that polls for new events finds few or no events, so a chunk is not
		 * asked for at once. */
		if (first != bad && get_copies(journal, run, seq,
					       seq == first || singles == SINGLES, &text) > seq) {
			answer = read_copies(journal, &reader, &seq, &text, &bad, err);
			continue;
		}
		answer = read_one(journal, &reader, &seq, err);
		singles++;
	}
	return answer == ROWS_FAIL ? -1 : 0;
}

struct journal_dir_read_search {
	int64_t from, found;
};

static int take_number(void *arg, const struct store_object *object, struct err **err)
{
	struct journal_dir_read_search *search = arg;
	char *end = NULL;
	long long seq = strtoll(strrchr(object->key, '/') + 1, &end, 10);

	(void)err;
	if (strcmp(end, ".json") != 0 || seq < search->from)
		return 0;
	search->found = seq;
	return 1;
}

static int next_number(struct dir_journal *journal, const char *run, int64_t from, int64_t *ret,
		       struct err **err)
{
	AUTO(auto_free) char *events = mem_format("runs/%s/events/", run);
	struct journal_dir_read_search search = { from, 0 };

	if (store_list(journal->store, events, take_number, &search, err) < 0)
		return -1;
	*ret = search.found;
	return search.found > 0;
}

/* True if the object under that number is an event of the run. */
static bool is_event(struct dir_journal *journal, const char *run, int64_t seq)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(EVENT_BYTES_MAX);
	json_auto_t *row = NULL;
	const char *body;
	size_t len;

	return journal_dir_get_event(journal, run, seq, &text, NULL, &ignored) > 0 &&
	       text.len > 0 && journal_dir_unwrap(text.text, text.len - 1, &body, &len) &&
	       js_parse(body, len, "it", &row, &ignored) == 0 && js_is(row, "run", run) &&
	       js_int(row, "seq", 0) == seq;
}

/* A run without its first event exists if one of its other events does, and it is not being
 * removed. Anything else in its folder is left over. */
static int next_without_first(struct dir_journal *journal, const char *run, int64_t *ret,
			      struct err **err)
{
	AUTO(auto_free) char *removed = journal_dir_removed_key(run);
	struct store_object mark;
	int64_t at = 0;
	int found, marked;

	while ((found = next_number(journal, run, at + 1, &at, err)) > 0)
		if (is_event(journal, run, at))
			break;
	if (found <= 0)
		return found;
	*ret = at;
	marked = store_stat(journal->store, removed, &mark, err);
	return marked < 0 ? -1 : !marked;
}

int journal_dir_next(void *opened, const char *run, int64_t from, int64_t *ret, struct err **err)
{
	return from == 1 ? next_without_first(opened, run, ret, err)
			 : next_number(opened, run, from, ret, err);
}

char *journal_dir_file(void *opened, const char *run, int64_t seq)
{
	struct dir_journal *journal = opened;
	AUTO(auto_free) char *key = journal_dir_event_key(run, seq);

	return mem_format("%s/%s", store_url(journal->store), key);
}
