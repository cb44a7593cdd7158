/* The messages of the kind neuron: three generations, 32 ranks, cut, merged, and
 * the front-end's summary over lines of several processes. */
#include "tests/unit/cache/neuron.h"

static bool first(const char *text, struct graph_note *ret)
{
	size_t at = 0;

	return neuron()->scan(text, strlen(text), &at, ret);
}

static bool same(struct compile_kind_words words, const char *text)
{
	return words.len == strlen(text) &&
	       memcmp(words.text ? words.text : "", text, words.len) == 0;
}

static void every_message_gives_its_parts(void **state)
{
	static const struct {
		const char *line;
		enum note_kind kind;
		const char *key, *place;
	} rows[] = {
		{ N_HIT(MOD_A), NOTE_HIT, MOD_A, PLACE },
		{ "Using a cached neff at " PATH_OF(
			  "s3://bucket/my cache",
			  MOD_C) "/model.neff. "
				 "Exiting with a successfully compiled graph.",
		  NOTE_HIT, MOD_C, PLACE },
		{ N_MISS(MOD_A), NOTE_MISS, MOD_A, "" },
		{ N_MISS_2023(MOD_B), NOTE_MISS, MOD_B, "" },
		{ "No candidate found under " PATH_OF("/cache", MOD_A) ".\n", NOTE_MISS, MOD_A,
		  PLACE },
		{ N_DONE(MOD_A), NOTE_COMPILED, MOD_A, "" },
		{ N_EXTRACTED(MOD_A), NOTE_EXTRACTED, MOD_A, PLACE },
		{ N_CACHED_FAILURE(MOD_A), NOTE_CACHED_FAILURE, MOD_A, PLACE },
		{ N_WAITING(MOD_A, "2.5"), NOTE_WAITING, MOD_A, PLACE },
		{ N_FAILED(MOD_A, "ERROR: no"), NOTE_FAILED, MOD_A, "" },
		{ "Compilation failed for /tmp/x/model." MOD_A ".hlo_module.pb after 0 retries.",
		  NOTE_FAILED, MOD_A, "" },
		{ "subprocess.CalledProcessError: Command '['neuronx-cc', '/tmp/model." MOD_A
		  ".hlo_module.pb']' returned non-zero exit status 70.",
		  NOTE_FAILED, MOD_A, "" },
		{ N_NOTHING, NOTE_NOTHING, "", "" },
		{ "sub-process 3 got exception: [Errno 2] No such file", NOTE_WORKER_DIED, "", "" },
		{ "concurrent.futures.process.BrokenProcessPool: A process in the pool",
		  NOTE_WORKER_DIED, "", "" },
		{ "There was an error in the training script.", NOTE_SCRIPT_FAILED, "", "" },
		{ N_CACHE("/cache"), NOTE_CACHE, "", "" },
		{ "Current remaining items are 3, locked are 1, failed are 0, done are 2, total is "
		  "6",
		  NOTE_REMAINING, "", "" },
	};
	static const char *const prefixes[] = {
		"",
		OLD("00:00"),
		MID("00:00"),
		NEW("00:00"),
		"INFO: " MID("00:00"),
		"[1,mpirank:17,algo-1]<stdout>:" NEW("00:00"),
		"(RankWorker pid=7, ip=1.2.3.4) ",
		"\xff\x80\x1b[0m",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		for (size_t p = 0; p < STK_LENGTH(prefixes); p++) {
			AUTO(auto_free) char *line = mem_format("%s%s", prefixes[p], rows[i].line);
			struct graph_note note;

			if (!first(line, &note))
				fail_msg("'%s' was not read", line);
			if (note.kind != rows[i].kind || !same(note.key, rows[i].key) ||
			    !same(note.place, rows[i].place))
				fail_msg("'%s' was read as kind %d", line, (int)note.kind);
		}
}

static void details_of_messages_are_read(void **state)
{
	struct graph_note note;

	(void)state;
	assert_true(first(N_WAITING(MOD_A, "2.5"), &note));
	assert_true(note.seconds == 150);
	assert_true(first(N_FAILED(MOD_A, "2024-01-01T00:00:00Z [TEN404] Internal error"), &note));
	assert_true(same(note.why, "2024-01-01T00:00:00Z [TEN404] Internal error"));
	assert_true(first("parallel compilation with neuronx-cc exited with error.Received error "
			  "code: -9",
			  &note));
	assert_int_equal(note.kind, NOTE_FAILED);
	assert_true(note.killed);
	assert_int_equal(note.key.len, 0);
	assert_true(first("[ERROR]: Subprocess 17 encountered error: [Errno 28] No space left on "
			  "device",
			  &note));
	assert_int_equal(note.kind, NOTE_FAILED);
	assert_true(same(note.why, "[Errno 28] No space left on device"));
	assert_true(first("error.Received error code: 70", &note));
	assert_false(note.killed);
	assert_true(first("2026 [ERROR]: [NCC_EVRF001] Operator is not supported", &note));
	assert_true(same(note.why, "NCC_EVRF001] Operator is not supported"));
	assert_true(first("CalledProcessError: Command 'neuronx-cc model." MOD_A
			  ".hlo.pb' died with <Signals.SIGKILL: 9>.",
			  &note));
	assert_true(note.killed);
	assert_true(first(N_CACHE("s3://bucket/neuron cache/"), &note));
	assert_true(same(note.why, "s3://bucket/neuron cache/"));
	assert_true(first("Total graphs: 12\n", &note));
	assert_int_equal(note.graphs, 12);
	assert_int_equal(note.good, -1);
	assert_true(first("Total failed compilations: 3\n", &note));
	assert_int_equal(note.bad, 3);
	assert_int_equal(note.graphs, -1);
}

static void time_stamps_of_all_generations_are_read(void **state)
{
	struct graph_note note;
	int64_t begin;

	(void)state;
	assert_true(first("2024-02-29 23:59:59.000250:  1  INFO ||X||: " N_MISS(MOD_A), &note));
	begin = note.stamp_ms;
	assert_int_equal(begin % 1000, 250);
	assert_true(first("2024-03-01 00:00:01.000750:  1  [INFO]: " N_DONE(MOD_A), &note));
	assert_int_equal(note.stamp_ms - begin, 2500 - 0);
	assert_true(first("1970-01-02 00:00:00: " N_DONE(MOD_A), &note));
	assert_int_equal(note.stamp_ms, INT64_C(24) * 3600 * 1000);
	assert_true(first("2024-03-01 00:00:01.000750\n" N_DONE(MOD_A), &note));
	assert_int_equal(note.stamp_ms, 0); /* of another line */
}

static void what_only_looks_like_a_message_is_none(void **state)
{
	static const char *const lines[] = {
		"Using a cached neff at /cache/MODULE_12/model.neff",
		"Using a cached neff at /cache/SUBMODULE_1+abcdef01/model.neff",
		"Using a cached neff at /cache/\nMODULE_1+abcdef01/model.neff",
		"Call compiler with cmd: gcc -O2",
		"Another process must be compiling " MOD_A,
		"Another process must be compiling " MOD_A ", been waiting for: long minutes",
		"Compile cache path: ",
		"Total graphs: many",
		"Total graphs: -1",
		"sub-process x got exception: y",
		"Received error code: 0",
		"step: 1 loss: 2.5",
		MOD_A,
	};
	struct graph_note note;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(lines); i++)
		if (first(lines[i], &note))
			fail_msg("'%s' was read as kind %d", lines[i], (int)note.kind);
}

#define CYCLE(p)                                                                                   \
	p N_CACHE("/cache") p N_HIT(MOD_A)                                                         \
	p N_MISS(MOD_B)                                                                            \
	p N_DONE(MOD_B)                                                                            \
	p N_EXTRACTED(MOD_C)                                                                       \
	p N_WAITING(MOD_D, "1.0")

static void hits_and_misses_are_counted_once_over_32_ranks_of_every_generation(void **state)
{
	static const char *const generations[] = {
		CYCLE(OLD("00:00")),
		CYCLE(MID("00:00")),
		CYCLE(NEW("00:00")),
	};

	(void)state;
	for (size_t g = 0; g < STK_LENGTH(generations); g++) {
		AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
		struct graph_tally_counts counts;

		for (int rank = 0; rank < 32; rank++)
			neuron_scan_text(tally, rank / 8, generations[g]);
		/* Others found what one had to compile. */
		for (int rank = 0; rank < 31; rank++)
			neuron_scan_text(tally, rank / 8, NEW("00:09") N_HIT(MOD_B));
		counts = neuron_counts(tally);
		assert_int_equal(counts.named, 4);
		assert_int_equal(counts.hits, 1);
		assert_int_equal(counts.misses, 1);
		assert_int_equal(counts.extracted, 1);
		assert_int_equal(counts.waited, 1);
		assert_true(counts.waited_seconds == 60);
		assert_int_equal(counts.failed, 0);
	}
}

static void a_wait_is_neither_hit_nor_miss_and_the_longest_counts(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(N_WAITING(MOD_A, "1.0") N_WAITING(MOD_A, "3.0")
							   N_WAITING(MOD_A, "2.0"));
	struct graph_tally_counts counts = neuron_counts(tally);

	(void)state;
	assert_int_equal(counts.named, 1);
	assert_int_equal(counts.hits + counts.misses, 0);
	assert_true(counts.waited_seconds == 180);
}

static void a_replayed_failure_is_no_compilation_although_its_log_is_shown(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally =
		neuron_book_of(N_CACHED_FAILURE(MOD_A) N_FAILED(MOD_A, "ERROR: old"));
	struct graph_tally_counts counts = neuron_counts(tally);

	(void)state;
	assert_int_equal(counts.cached_failures, 1);
	assert_int_equal(counts.misses, 0);
	assert_string_equal(graph_tally_find(tally, MOD_A)->failed, "ERROR: old");
}

static void compile_time_is_what_lies_between_the_stamps_of_one_node(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	neuron_scan_text(tally, 0, MID("00:10") N_MISS(MOD_A));
	neuron_scan_text(tally, 1, MID("00:00") N_MISS(MOD_B)); /* another clock */
	neuron_scan_text(tally, 0, MID("00:20") N_MISS(MOD_A)); /* another rank's line */
	neuron_scan_text(tally, 0, MID("00:40") N_DONE(MOD_A));
	neuron_scan_text(tally, 1, MID("00:05") N_DONE(MOD_B));
	neuron_scan_text(tally, 1, MID("00:55") N_DONE(MOD_A)); /* it did not begin there */
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 30);
	assert_true(graph_tally_find(tally, MOD_B)->seconds == 5);
	assert_true(neuron_counts(tally).seconds == 35);
}

#define BLOCK(launcher)                                                                            \
	launcher MID("00:00") "{\n" launcher "    \"compilation_summary\": {\n" launcher           \
			      "        \"true\": 2,\n" launcher "        \"false\": 1\n" launcher  \
			      "    },\n" launcher "    \"compilation_report\": {\n" N_ROW(         \
				      launcher, MOD_A, "true", N_TIME("12.5"))                     \
				      N_ROW(launcher, MOD_B, "false", N_TIME("3.0"))               \
					      N_ROW(launcher, MOD_C, "true", N_TIME("40"))         \
						      launcher                                     \
		"    },\n" launcher "    \"start_time\": 1.5,\n" launcher                          \
		"    \"compilation_time\": 55.5\n" launcher "}\n" N_TOTALS("3", "2", "1")

static void check_block(const struct graph_tally *tally)
{
	struct graph_tally_counts counts = neuron_counts(tally);

	assert_int_equal(counts.named, 3);
	assert_int_equal(counts.misses, 3);
	assert_int_equal(counts.compile_failed, 1);
	assert_true(graph_tally_find(tally, MOD_A)->reported_good);
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 12.5);
	assert_string_equal(graph_tally_find(tally, MOD_A)->place, PLACE);
	assert_true(graph_tally_find(tally, MOD_B)->reported_failed);
	assert_true(graph_tally_find(tally, MOD_C)->seconds == 40);
}

static void a_summary_is_read_behind_a_launchers_prefix(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *plain = neuron_book_of(BLOCK(""));
	AUTO(graph_tally_freep)
	struct graph_tally *prefixed = neuron_book_of(BLOCK("[1,mpirank:0,algo-1]<stdout>:"));
	struct graph_tally_front_end said;

	(void)state;
	check_block(plain);
	check_block(prefixed);
	graph_tally_front_end(plain, &said);
	assert_int_equal(said.nodes, 1);
	assert_int_equal(said.blocks, 1);
	assert_int_equal(said.graphs, 3);
	assert_int_equal(said.good, 2);
	assert_int_equal(said.bad, 1);
	assert_int_equal(said.largest, 3);
	assert_true(graph_tally_explains_exit(plain, 1));
	assert_false(graph_tally_explains_exit(plain, 2));
}

/* Feed text to the book a line at a time, as a log's follower does. */
static void feed_lines(struct graph_tally *tally, int node, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		graph_tally_scan(tally, neuron(), node, text, len);
		text += len + (text[len] == '\n');
	}
}

static void a_summary_is_read_line_by_line(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	feed_lines(tally, 0, BLOCK("algo-2  | "));
	check_block(tally);
}

static void the_old_form_without_times_is_read(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(
		N_ROW("", MOD_A, "true", "") N_ROW("", MOD_B, "false", "") N_TOTALS("2", "1", "1"));

	(void)state;
	assert_true(graph_tally_find(tally, MOD_A)->reported_good);
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 0);
	assert_true(graph_tally_find(tally, MOD_B)->reported_failed);
}

static void the_front_ends_own_time_beats_the_stamps(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(MID("00:00") N_MISS(MOD_A) MID("00:50") N_DONE(
		MOD_A) N_ROW("", MOD_A, "true", N_TIME("20.5")));

	(void)state;
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 20.5);
}

/* Two processes' rows, their lines taking turns. */
static void rows_of_two_ranks_that_take_turns_are_kept_apart(void **state)
{
	static const char a[] = N_ROW("[rank0]: ", MOD_A, "false", N_TIME("1.5"));
	static const char b[] = N_ROW("[rank1]: ", MOD_B, "true", N_TIME("2.5"));
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	const char *at_a = a, *at_b = b;

	(void)state;
	while (*at_a && *at_b) {
		size_t len_a = strcspn(at_a, "\n") + 1, len_b = strcspn(at_b, "\n") + 1;
		AUTO(auto_free) char *line_a = mem_copy_n(at_a, len_a);
		AUTO(auto_free) char *line_b = mem_copy_n(at_b, len_b);

		/* compile_time has no prefix in this macro's rows: it goes with its own. */
		feed_lines(tally, 0, line_a);
		feed_lines(tally, 0, line_b);
		at_a += len_a;
		at_b += len_b;
	}
	assert_true(graph_tally_find(tally, MOD_A)->reported_failed);
	assert_false(graph_tally_find(tally, MOD_A)->reported_good);
	assert_true(graph_tally_find(tally, MOD_B)->reported_good);
	assert_false(graph_tally_find(tally, MOD_B)->reported_failed);
}

static void a_launchers_changing_time_does_not_part_a_row(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	feed_lines(
		tally, 0,
		"12:00:01.5 | \"" PATH_OF("/cache", MOD_A) "/model.hlo_module.pb\": {\n"
							   "noise from elsewhere\n"
							   "12:00:02.75 |     \"status\": false,\n"
							   "12:00:03 |     \"retry\": 0\n"
							   "12:00:04 | },\n"
							   "12:00:05 | \"status\": true\n");
	assert_true(graph_tally_find(tally, MOD_A)->reported_failed);
	assert_false(graph_tally_find(tally, MOD_A)->reported_good);
}

static void a_row_whose_end_was_lost_is_judged_once(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

	(void)state;
	feed_lines(
		tally, 0,
		"\"" PATH_OF(
			"/cache",
			MOD_A) "/model.hlo_module.pb\": {\n"
			       "  \"status\": false,\n"
			       "{\"status\": true, \"compile_time\": 7}\n"); /* the script's own */
	assert_true(graph_tally_find(tally, MOD_A)->reported_failed);
	assert_false(graph_tally_find(tally, MOD_A)->reported_good);
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 0);
}

static void a_summary_on_one_line_is_read(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(NEW(
		"00:00") "{\"compilation_summary\": {\"true\": 1}, \"compilation_report\": "
			 "{\"" PATH_OF("/c",
				       MOD_A) "/model.hlo.pb\": {\"status\": true, \"retry\": 0, "
					      "\"compile_time\": 4.5}, \"" PATH_OF(
						      "/c", MOD_B) "/model.hlo.pb\": {\"status\": "
								   "false}}}\n");

	(void)state;
	assert_true(graph_tally_find(tally, MOD_A)->seconds == 4.5);
	assert_true(graph_tally_find(tally, MOD_B)->reported_failed);
}

static void json_of_the_script_is_no_summary(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally =
		neuron_book_of("{\"status\": false, \"compile_time\": 3}\n"
			       "\"/data/model.pb\": {\n \"status\": false\n}\n" N_HIT(MOD_A));

	(void)state;
	assert_int_equal(neuron_counts(tally).named, 1);
	assert_int_equal(neuron_counts(tally).compile_failed, 0);
}

static void one_block_a_node_is_counted_and_a_graph_of_one_node_only_is_named(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	struct graph_tally_front_end said;

	(void)state;
	for (int node = 0; node < 4; node++) {
		neuron_scan_text(tally, node, N_EXTRACTED(MOD_A));
		if (node == 3)
			neuron_scan_text(tally, node, N_EXTRACTED(MOD_B) N_TOTALS("2", "2", "0"));
		else if (node == 1)
			neuron_scan_text(tally, node, N_NOTHING);
		else
			neuron_scan_text(tally, node, N_TOTALS("1", "1", "0"));
	}
	graph_tally_front_end(tally, &said);
	assert_int_equal(said.nodes, 4);
	assert_int_equal(said.blocks, 3);
	assert_int_equal(said.nothing, 1);
	assert_int_equal(said.graphs, 4);
	assert_int_equal(said.largest, 2);
	assert_int_equal(neuron_counts(tally).named, 2);
}

/* If a log is cut into two anywhere, and the halves are merged with another line, no graph is
 * invented, none is counted as what it is not. */
static void lines_cut_anywhere_and_merged_give_only_what_they_say(void **state)
{
	static const char line[] = MID("00:00") N_HIT(MOD_A);
	static const char other[] =
		NEW("00:00") "Call compiler with cmd: neuronx-cc compile model." MOD_B
			     ".hlo_module.pb --output x\n";

	(void)state;
	for (size_t cut = 0; cut <= sizeof line - 1; cut++) {
		AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
		AUTO(auto_free)
		char *merged = mem_format("%.*s%s%s", (int)cut, line, other, line + cut);
		const struct tally_graph *b;

		feed_lines(tally, 0, merged);
		assert_int_equal(neuron_counts(tally).named,
				 graph_tally_find(tally, MOD_A) ? 2 : 1);
		b = graph_tally_find(tally, MOD_B);
		if (!b || b->hit || !b->missed)
			fail_msg("cut at %zu: '%s'", cut, merged);
		if (graph_tally_find(tally, MOD_A))
			assert_true(graph_tally_find(tally, MOD_A)->hit &&
				    !graph_tally_find(tally, MOD_A)->missed);
	}
}

static void a_cut_line_never_names_half_a_graph(void **state)
{
	static const char line[] = N_EXTRACTED(MOD_A);

	(void)state;
	for (size_t cut = 0; cut < sizeof line; cut++) {
		AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

		graph_tally_scan(tally, neuron(), 0, line, cut);
		assert_int_equal(neuron_counts(tally).named,
				 graph_tally_find(tally, MOD_A) ? 1 : 0);
	}
}

static void a_place_is_that_of_the_first_word_or_the_only_one(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(N_MISS(MOD_A));
	AUTO(auto_free) char *unknown = graph_tally_entry(tally, graph_tally_find(tally, MOD_A));
	AUTO(auto_free) char *only = NULL;
	AUTO(auto_free) char *own = NULL;
	AUTO(auto_free) char *open = NULL;

	(void)state;
	assert_string_equal(unknown, MOD_A);
	neuron_scan_text(tally, 0, N_HIT(MOD_B));
	only = graph_tally_entry(tally, graph_tally_find(tally, MOD_A));
	assert_string_equal(only, PLACE "/" MOD_A);
	neuron_scan_text(tally, 0,
			 "Using a cached neff at /c/neuronxcc-3.0+aa/" MOD_C "/model.neff");
	own = graph_tally_entry(tally, graph_tally_find(tally, MOD_C));
	assert_string_equal(own, "neuronxcc-3.0+aa/" MOD_C);
	open = graph_tally_entry(tally, graph_tally_find(tally, MOD_A));
	assert_string_equal(open, MOD_A);
}

static void the_compilers_first_error_is_found_in_its_log(void **state)
{
	static const struct {
		const char *log, *want;
	} rows[] = {
		{ "", "" },
		{ "\n\n***\n", "" },
		{ "Starting\n2024 ERROR 7 [job]: ****\nERROR: first\nERROR: second\n",
		  "ERROR: first" },
		{ "Error: summary of it\nERROR [TEN404]: (_add.1) Internal tensorizer error\n",
		  "ERROR [TEN404]: (_add.1) Internal tensorizer error" },
		{ "exception\n[NCC_EVRF009] too large\n", "[NCC_EVRF009] too large" },
		{ "OSError: [Errno 28] No space left on device\n",
		  "OSError: [Errno 28] No space left on device" },
		{ "Something went on\nand on\n", "Something went on" },
		{ "Failed compilation with ['neuronx-cc', '/a/long/path/model." MOD_A
		  ".hlo_module.pb']: 2026 [NCC_EVRF001] not supported\nmore\n",
		  "2026 [NCC_EVRF001] not supported" },
		{ "Failed compilation with ['neuronx-cc', 'x']: \nERROR: why\n", "ERROR: why" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct compile_kind_words words =
			neuron()->first_error(rows[i].log, strlen(rows[i].log));

		if (!same(words, rows[i].want))
			fail_msg("row %zu gives '%.*s'", i, (int)words.len, words.text);
	}
}

/* Every place of a hostile line that begins a message reads only so far. */
static void huge_lines_are_read_in_bounded_time(void **state)
{
	static const char *const pieces[] = {
		"Using a cached neff at ",
		"Call compiler with cmd: ",
		"MODULE_",
		"Total graphs: ",
		"CalledProcessError: Command ",
		"\"",
		"\"}\"",
		"UUUU",
		"2024-01-01 00:00:00 ",
		"Failed compilation with ['" MOD_A,
		"\"a.pb\": {\"status\": ",
		N_CACHE("/x"),
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(pieces); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;
		AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();

		while (text.len < (size_t)1 << 18)
			sb_adds(&text, pieces[i]);
		sb_adds(&text, "\n" N_HIT(MOD_D));
		graph_tally_scan(tally, neuron(), 0, text.text, text.len);
		assert_non_null(graph_tally_find(tally, MOD_D));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_gives_its_parts),
		cmocka_unit_test(details_of_messages_are_read),
		cmocka_unit_test(time_stamps_of_all_generations_are_read),
		cmocka_unit_test(what_only_looks_like_a_message_is_none),
		cmocka_unit_test(
			hits_and_misses_are_counted_once_over_32_ranks_of_every_generation),
		cmocka_unit_test(a_wait_is_neither_hit_nor_miss_and_the_longest_counts),
		cmocka_unit_test(a_replayed_failure_is_no_compilation_although_its_log_is_shown),
		cmocka_unit_test(compile_time_is_what_lies_between_the_stamps_of_one_node),
		cmocka_unit_test(a_summary_is_read_behind_a_launchers_prefix),
		cmocka_unit_test(a_summary_is_read_line_by_line),
		cmocka_unit_test(the_old_form_without_times_is_read),
		cmocka_unit_test(the_front_ends_own_time_beats_the_stamps),
		cmocka_unit_test(rows_of_two_ranks_that_take_turns_are_kept_apart),
		cmocka_unit_test(a_launchers_changing_time_does_not_part_a_row),
		cmocka_unit_test(a_row_whose_end_was_lost_is_judged_once),
		cmocka_unit_test(a_summary_on_one_line_is_read),
		cmocka_unit_test(json_of_the_script_is_no_summary),
		cmocka_unit_test(one_block_a_node_is_counted_and_a_graph_of_one_node_only_is_named),
		cmocka_unit_test(lines_cut_anywhere_and_merged_give_only_what_they_say),
		cmocka_unit_test(a_cut_line_never_names_half_a_graph),
		cmocka_unit_test(a_place_is_that_of_the_first_word_or_the_only_one),
		cmocka_unit_test(the_compilers_first_error_is_found_in_its_log),
		cmocka_unit_test(huge_lines_are_read_in_bounded_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
