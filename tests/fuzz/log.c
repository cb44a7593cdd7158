/* The log readers under fuzzing: see log.h. */
#include "tests/fuzz/log.h"

#include <math.h>

#include "jobs/base/sb.h"
#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/kinds/cursor.h"
#include "tests/fuzz/fuzz.h"

#define NODES      4   /* logs behind the fourth are of the first node again */
#define OTHER_NODE 100 /* and up: nodes that say the same once more */

struct log_fuzz {
	const struct compile_kind *kind;
	bool (*is_key)(const char *text, size_t len);
};

static bool has(struct compile_kind_words words)
{
	return words.len > 0;
}

/* True if the words can be a string. */
static bool no_nul(struct compile_kind_words words)
{
	return !has(words) || !memchr(words.text, '\0', words.len);
}

static bool one_line(struct compile_kind_words words)
{
	return !has(words) || !memchr(words.text, '\n', words.len);
}

static void check_words(const struct log_fuzz *fuzz, const struct graph_note *note)
{
	MUST(one_line(note->key) && one_line(note->name) && one_line(note->why) &&
	     one_line(note->place));
	MUST(no_nul(note->key) && no_nul(note->why) && no_nul(note->place));
	MUST(note->why.len <= WHY_MAX && note->name.len <= GRAPH_NAME_MAX);
	MUST(!has(note->key) || fuzz->is_key(note->key.text, note->key.len));
	MUST(!has(note->place) || fuzz->kind->placed);
	if (has(note->key) && has(note->place)) {
		AUTO(auto_free)
		char *graph = mem_format("%.*s/%.*s", (int)note->place.len, note->place.text,
					 (int)note->key.len, note->key.text);
		AUTO(auto_free) char *prefix = fuzz->kind->prefix(graph);

		MUST(prefix);
	}
}

static void check_sums(const struct graph_note *note)
{
	int said = (note->graphs >= 0) + (note->good >= 0) + (note->bad >= 0);

	if (note->kind == NOTE_TOTALS || note->kind == NOTE_REMAINING)
		MUST(said == 1 && note->graphs <= 1000000000 && note->good <= 1000000000 &&
		     note->bad <= 1000000000);
	else
		MUST(note->graphs == 0 && note->good == 0 && note->bad == 0);
}

/* Checks the members of a note by its kind, as kind.h says them. */
static void check_note(const struct log_fuzz *fuzz, const struct graph_note *note)
{
	bool timed = note->kind == NOTE_COMPILED || note->kind == NOTE_WAITING;

	MUST((int)note->kind >= 0 && note->kind < NOTE_KINDS);
	check_words(fuzz, note);
	check_sums(note);
	MUST(note->seconds >= 0 && note->seconds < 1e10);
	MUST(timed || !(note->seconds > 0));
	MUST(note->stamp_ms >= 0);
	MUST(!note->summary || note->kind == NOTE_COMPILED || note->kind == NOTE_FAILED);
	MUST(!note->killed || note->kind == NOTE_FAILED);
	MUST(!note->bad_form || note->kind == NOTE_READ_ERROR);
	MUST(!note->lasting || note->kind == NOTE_NOT_STORED);
	switch (note->kind) {
	case NOTE_HIT:
	case NOTE_MISS:
	case NOTE_STORED:
	case NOTE_EXTRACTED:
	case NOTE_CACHED_FAILURE:
	case NOTE_WAITING:
		MUST(has(note->key));
		break;
	case NOTE_COMPILED:
		MUST(has(note->key) || has(note->name));
		break;
	case NOTE_FAILED:
		MUST(has(note->key) || has(note->why));
		break;
	case NOTE_NOT_STORED:
	case NOTE_CACHE:
	case NOTE_WORKER_DIED:
		MUST(has(note->why));
		break;
	default:
		break;
	}
}

static bool within(struct compile_kind_words words, struct span piece)
{
	return !has(words) ||
	       (words.text >= piece.text && words.text + words.len <= piece.text + piece.len);
}

/* Scan one piece with either reader (`memory` NULL: scan()), and write all that it
 * said to `said`. */
static void scan_piece(const struct log_fuzz *fuzz, void *memory, struct span piece,
		       struct sb *said)
{
	const struct compile_kind *kind = fuzz->kind;
	struct graph_note note;
	size_t at = 0, before = 0;

	while (memory ? kind->lines->scan(memory, piece.text, piece.len, &at, &note)
		      : kind->scan(piece.text, piece.len, &at, &note)) {
		check_note(fuzz, &note);
		if (memory)
			MUST(has(note.key) && note.summary);
		else
			MUST(within(note.key, piece) && within(note.name, piece) &&
			     within(note.why, piece) && within(note.place, piece));
		MUST(at > before && at <= piece.len);
		before = at;
		if (!said)
			continue;
		sb_addf(said, "%d %a %lld %lld %lld %lld %d%d%d%d", (int)note.kind, note.seconds,
			(long long)note.stamp_ms, (long long)note.graphs, (long long)note.good,
			(long long)note.bad, note.summary, note.killed, note.bad_form,
			note.lasting);
		sb_add(said, note.key.text, note.key.len);
		sb_addc(said, '\n');
		sb_add(said, note.name.text, note.name.len);
		sb_addc(said, '\n');
		sb_add(said, note.why.text, note.why.len);
		sb_addc(said, '\n');
		sb_add(said, note.place.text, note.place.len);
		sb_addc(said, '\n');
	}
	MUST(at == piece.len);
}

static void *new_memory(const struct log_fuzz *fuzz)
{
	return fuzz->kind->lines ? fuzz->kind->lines->memory() : NULL;
}

static void forget(const struct log_fuzz *fuzz, void *memory)
{
	if (memory)
		fuzz->kind->lines->forget(memory);
}

static void check_first_error(const struct log_fuzz *fuzz, struct span log)
{
	struct compile_kind_words words;

	if (!fuzz->kind->first_error)
		return;
	words = fuzz->kind->first_error(log.text, log.len);
	MUST(within(words, log) && one_line(words) && no_nul(words) && words.len <= WHY_MAX);
}

/* No message reaches over the end of a line: read line by line, without the line
 * ends, as the driver does it, a log says what it says as a whole. */
static void check_lines(const struct log_fuzz *fuzz, struct span log)
{
	AUTO(sb_release) struct sb whole = SB_INIT;
	AUTO(sb_release) struct sb whole_memory = SB_INIT;
	AUTO(sb_release) struct sb lines = SB_INIT;
	AUTO(sb_release) struct sb lines_memory = SB_INIT;
	void *of_whole = new_memory(fuzz), *of_lines = new_memory(fuzz);
	struct span rest = log, line;

	scan_piece(fuzz, NULL, log, &whole);
	if (of_whole)
		scan_piece(fuzz, of_whole, log, &whole_memory);
	while (span_next(&rest, '\n', &line)) {
		AUTO(auto_free) char *copy = span_copy(line);

		line.text = copy;
		scan_piece(fuzz, NULL, line, &lines);
		if (of_lines)
			scan_piece(fuzz, of_lines, line, &lines_memory);
	}
	MUST(whole.len == lines.len && memcmp(whole.text, lines.text, lines.len) == 0);
	MUST(whole_memory.len == lines_memory.len &&
	     memcmp(whole_memory.text, lines_memory.text, lines_memory.len) == 0);
	forget(fuzz, of_whole);
	forget(fuzz, of_lines);
}

/* Sums of all graphs, made once more by hand. */
static void check_counts(const struct graph_tally *tally)
{
	struct graph_tally_counts counts, again = { 0 };
	const struct tally_graph *graph;

	graph_tally_counts(tally, &counts);
	for (size_t i = 0; (graph = graph_tally_at(tally, i)); i++) {
		AUTO(auto_free) char *entry = graph_tally_entry(tally, graph);
		size_t key = strlen(graph->key), len = strlen(entry);

		MUST(graph_tally_find(tally, graph->key) == graph);
		MUST(len >= key && strcmp(entry + len - key, graph->key) == 0);
		MUST(graph->seconds >= 0 && graph->waited >= 0);
		again.named++;
		again.hits += graph->hit && !graph->missed;
		again.misses += graph->missed;
		again.stored += graph->stored;
	}
	MUST(counts.named == again.named && counts.hits == again.hits &&
	     counts.misses == again.misses && counts.stored == again.stored);
	MUST(counts.hits + counts.misses <= counts.named);
	MUST(counts.failed <= counts.named && counts.compile_failed <= counts.failed);
	MUST(counts.extracted <= counts.named && counts.cached_failures <= counts.named);
	MUST(counts.waited <= counts.named && (counts.waited > 0) == (counts.waited_seconds > 0));
	MUST(isfinite(counts.seconds) && counts.seconds >= 0);
	MUST(counts.misses > 0 || !(counts.seconds > 0));
	MUST(isfinite(counts.bypassed_seconds) && counts.bypassed_seconds >= 0);
	MUST(counts.dropped == 0);
}

static void check_front_end(const struct graph_tally *tally)
{
	struct graph_tally_front_end sums;
	struct graph_tally_cache cache, other;

	graph_tally_front_end(tally, &sums);
	MUST(sums.nodes <= NODES && sums.blocks >= 0 && sums.nothing >= 0);
	MUST(sums.largest <= sums.graphs && sums.most_bad <= sums.bad && sums.good >= 0);
	MUST(sums.graphs == 0 || sums.blocks > 0);
	MUST(sums.nodes > 0 || (sums.blocks == 0 && sums.nothing == 0 && sums.bad == 0));
	MUST(sums.most_bad == 0 || graph_tally_explains_exit(tally, (int)(sums.most_bad % 256)));
	MUST((sums.workers_died > 0) == (sums.worker_why != NULL));
	MUST(!sums.first_error || sums.first_error[0]);
	for (size_t i = 0; graph_tally_cache_at(tally, i, &cache); i++) {
		MUST(cache.times > 0);
		for (size_t n = 0; n < i; n++)
			MUST(graph_tally_cache_at(tally, n, &other) &&
			     strcmp(cache.url, other.url) != 0);
	}
}

/* Output about the book is JSON that anybody can read back. */
static void check_told(const struct graph_tally *tally)
{
	json_auto_t *told = graph_tally_json(tally, 3);
	AUTO(auto_free) char *line = js_line(told);
	json_auto_t *read = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *after = NULL;
	int64_t named = js_int(told, "named", -1);
	size_t listed = json_array_size(json_object_get(told, "graphs"));

	MUST(js_parse(line, strlen(line), "the book", &read, &err) == 0);
	after = js_line(read); /* members keep their order */
	MUST(strcmp(line, after) == 0);
	MUST(listed == (named < 3 ? (size_t)named : 3));
}

/* Read all logs, in their pieces, into the book. */
static void fill(const struct log_fuzz *fuzz, struct span all, int first_node,
		 struct graph_tally *tally)
{
	struct span log, piece;

	for (int n = 0; span_next(&all, FUZZ_PART, &log); n++) {
		while (span_next(&log, FUZZ_CUT, &piece)) {
			AUTO(auto_free) char *copy = span_copy(piece);

			graph_tally_scan(tally, fuzz->kind, first_node + n % NODES, copy,
					 piece.len);
		}
	}
}

/* A graph is counted once, however many nodes say the same of it. */
static void check_once(const struct log_fuzz *fuzz, struct span all, struct graph_tally *tally)
{
	struct graph_tally_counts once, twice;

	graph_tally_counts(tally, &once);
	fill(fuzz, all, OTHER_NODE, tally);
	graph_tally_counts(tally, &twice);
	MUST(once.named == twice.named && once.hits == twice.hits && once.misses == twice.misses);
	MUST(once.stored == twice.stored && once.extracted == twice.extracted);
	MUST(once.compile_failed == twice.compile_failed &&
	     once.cached_failures == twice.cached_failures);
	MUST(once.waited == twice.waited && once.bypassed == twice.bypassed);
	MUST(!(once.seconds < twice.seconds) && !(once.seconds > twice.seconds));
}

void log_check(const struct compile_kind *kind, bool (*is_key)(const char *text, size_t len),
	       const char *text, size_t len)
{
	const struct log_fuzz fuzz = { kind, is_key };
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	struct span all = { text, len }, log, piece;

	while (span_next(&all, FUZZ_PART, &log)) {
		void *memory = new_memory(&fuzz);

		check_lines(&fuzz, log);
		while (span_next(&log, FUZZ_CUT, &piece)) {
			AUTO(auto_free) char *copy = span_copy(piece);

			piece.text = copy;
			scan_piece(&fuzz, NULL, piece, NULL);
			if (memory)
				scan_piece(&fuzz, memory, piece, NULL);
			check_first_error(&fuzz, piece);
		}
		forget(&fuzz, memory);
	}
	all = (struct span){ text, len };
	fill(&fuzz, all, 0, tally);
	check_counts(tally);
	check_front_end(tally);
	check_told(tally);
	check_once(&fuzz, all, tally);
}
