/*
 * Hostile text for the readers of the kind neuron: real lines, cut, joined, with
 * bytes changed, fed in pieces; names of cache objects alike. Whatever comes, what is
 * read lies within what was given, and names only what may be a graph. The seeds are
 * fixed; STOKER_TEST_SEED moves on to others.
 */
#include "tests/unit/cache/neuron.h"

#include "jobs/cache/neuron.h"

#define ROUNDS 4000

static uint64_t first_seed(void)
{
	const char *base = getenv("STOKER_TEST_SEED");

	return base ? (strtoull(base, NULL, 10) - 1) * ROUNDS : 0;
}

/* SplitMix64, by Steele, Lea and Flood. */
static uint64_t next(uint64_t *seed)
{
	uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t below(uint64_t *seed, size_t limit)
{
	return (size_t)(next(seed) % limit);
}

static const char *const lines[] = {
	N_HIT(MOD_A),
	N_MISS(MOD_B),
	N_MISS_2023(MOD_A),
	N_DONE(MOD_B),
	N_EXTRACTED(MOD_C),
	N_CACHED_FAILURE(MOD_D),
	N_FAILED(MOD_A, "2024 [TEN404] no: ['a']: b"),
	N_WAITING(MOD_C, "12.5"),
	N_NOTHING,
	N_CACHE("s3://bucket/prefix"),
	N_ROW("", MOD_A, "true", N_TIME("12.5")),
	N_ROW("[rank1]: ", MOD_B, "false", N_TIME("1e3")),
	N_TOTALS("3", "2", "1"),
	"CalledProcessError: Command '['neuronx-cc', 'model." MOD_A
	".hlo.pb']' returned non-zero exit status 70.\n",
	"error.Received error code: -9\n",
	"sub-process 3 got exception: BrokenProcessPool: x\n",
	"RunNeuronCCImpl: error condition error != 0: <class 'x'>: NCC_EVRF009\n",
	"Compilation failed for x/model." MOD_A ".hlo.pb: why\n",
	MID("00:00"),
	NEW("59:59"),
	"[1,mpirank:3]<stdout>:",
	"99999999999999999999999999999999999",
	"\"",
	"}",
	"{",
	"\r",
	"\n",
};

/* Joined lines, each perhaps cut, with bytes changed, dropped and doubled. */
static void make_text(uint64_t *seed, struct sb *text)
{
	size_t pieces = 1 + below(seed, 24), changes = below(seed, 12);

	sb_clear(text);
	for (size_t i = 0; i < pieces; i++) {
		const char *line = lines[below(seed, STK_LENGTH(lines))];
		size_t len = strlen(line), from = 0;

		if (below(seed, 3) == 0)
			from = below(seed, len + 1);
		if (below(seed, 3) == 0)
			len = from + below(seed, len - from + 1);
		sb_add(text, line + from, len - from);
	}
	for (size_t i = 0; i < changes && text->len > 0; i++)
		text->text[below(seed, text->len)] = (char)next(seed);
}

static bool within(struct words words, const char *text, size_t len)
{
	return words.len == 0 || (words.text >= text && words.text + words.len <= text + len);
}

static void check_note(const struct graph_note *note)
{
	assert_true((int)note->kind >= 0 && note->kind < NOTE_KINDS);
	assert_true(note->seconds >= 0 && note->seconds < 1e10);
	assert_true(note->stamp_ms >= 0);
	if (note->key.len > 0)
		assert_int_equal(neuron_module(note->key.text, note->key.len), note->key.len);
	if (note->place.len > 0)
		assert_true(neuron_is_place(note->place.text, note->place.len));
}

static void scan_piece(const char *text, size_t len, void *memory)
{
	struct graph_note note;
	size_t at = 0, before = 0;

	while (neuron()->scan(text, len, &at, &note)) {
		check_note(&note);
		assert_true(within(note.key, text, len) && within(note.place, text, len) &&
			    within(note.why, text, len));
		assert_true(at > before && at <= len);
		before = at;
	}
	assert_int_equal(at, len);
	at = before = 0;
	while (neuron()->lines->scan(memory, text, len, &at, &note)) {
		check_note(&note);
		assert_true(note.key.len > 0 && note.summary);
		assert_true(at > before && at <= len);
		before = at;
	}
	assert_int_equal(at, len);
}

/* In a block of its own size, so that a read behind its end is seen. */
static void scan_exactly(const char *text, size_t len, void *memory)
{
	AUTO(auto_free) char *copy = mem_alloc(len + (len == 0));
	struct words words;

	if (len > 0)
		memcpy(copy, text, len);
	scan_piece(copy, len, memory);
	words = neuron()->first_error(copy, len);
	assert_true(within(words, copy, len));
}

static void hostile_logs_are_read_within_their_bounds(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	void *memory = neuron()->lines->memory();
	uint64_t first = first_seed();

	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t seed = first + round;
		size_t at = 0;

		make_text(&seed, &text);
		while (at < text.len) {
			size_t len = 1 + below(&seed, text.len - at);

			scan_exactly(text.text + at, len, memory);
			at += len;
		}
	}
	neuron()->lines->forget(memory);
}

/* Nothing that a log says makes the book's sums contradict each other. */
static void hostile_logs_keep_the_book_in_order(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	uint64_t first = first_seed();

	(void)state;
	for (uint64_t round = 0; round < ROUNDS / 4; round++) {
		AUTO(book_freep) struct graph_book *book = book_new();
		uint64_t seed = first + round;
		struct book_counts counts;
		json_t *json;

		for (int node = 0; node < 3; node++) {
			make_text(&seed, &text);
			book_scan(book, neuron(), node, text.text, text.len);
		}
		counts = neuron_counts(book);
		assert_true(counts.hits + counts.misses <= counts.named);
		assert_true(counts.compile_failed <= counts.failed);
		for (size_t i = 0; i < (size_t)counts.named; i++) {
			AUTO(auto_free) char *entry = book_entry(book, book_at(book, i));
			AUTO(auto_free) char *prefix = neuron()->prefix(entry);

			assert_true(prefix || !strchr(entry, '/'));
		}
		json = book_json(book, 100);
		assert_int_equal(js_int(json, "named", -1), counts.named);
		json_decref(json);
	}
}

static void hostile_names_of_objects_are_read_within_their_bounds(void **state)
{
	static const char *const parts[] = {
		PLACE,
		MOD_A,
		MOD_C,
		"/",
		"model.neff",
		"model.done",
		"model.log",
		".lock",
		"..",
		"neuronxcc-",
		"MODULE_",
		"+",
		"3cc9a3cb",
		"0",
		"a",
		"//",
		"stoker/",
		"-cache",
		"compile_flags.txt",
	};
	AUTO(sb_release) struct sb key = SB_INIT;
	uint64_t first = first_seed();

	(void)state;
	for (uint64_t round = 0; round < ROUNDS * 4; round++) {
		uint64_t seed = first + round;
		size_t count = 1 + below(&seed, 7);
		struct entry_object object;
		AUTO(auto_free) char *prefix = NULL;
		AUTO(auto_free) char *graph = NULL;

		sb_clear(&key);
		for (size_t i = 0; i < count; i++)
			sb_adds(&key, parts[below(&seed, STK_LENGTH(parts))]);
		if (below(&seed, 4) == 0)
			key.text[below(&seed, key.len)] = (char)(1 + below(&seed, 255));
		if (!neuron()->object(key.text, &object))
			continue;
		assert_ptr_equal(object.graph.text, key.text);
		assert_true(object.graph.len < key.len && key.text[object.graph.len] == '/');
		assert_true(object.role != 0 &&
			    (!(object.role & ROLE_COMPILED) || object.role == ROLE_COMPILED));
		assert_true(!strstr(key.text, "//") && !strstr(key.text, "/../"));
		graph = mem_copy_n(object.graph.text, object.graph.len);
		prefix = neuron()->prefix(graph);
		assert_non_null(prefix);
		assert_true(strncmp(key.text, prefix, strlen(prefix)) == 0);
		assert_true(neuron()->state(object.role, next(&seed)) < ENTRY_STATES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_logs_are_read_within_their_bounds),
		cmocka_unit_test(hostile_logs_keep_the_book_in_order),
		cmocka_unit_test(hostile_names_of_objects_are_read_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
