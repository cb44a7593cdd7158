/* JAX's messages: lines as real runs printed them, cut, merged, forged, huge. */
#include "tests/unit/cache/support.h"

#include "jobs/cache/kinds/jax.h"

static bool first(const char *text, struct graph_note *note)
{
	size_t at = 0;

	return jax_scan(text, strlen(text), &at, note);
}

static void assert_words(struct compile_kind_words words, const char *text)
{
	assert_int_equal(words.len, strlen(text));
	if (words.len > 0)
		assert_memory_equal(words.text, text, words.len);
}

static size_t count_notes(const char *text, size_t len, size_t by_kind[NOTE_KINDS])
{
	struct graph_note note;
	size_t at = 0, notes = 0;

	memset(by_kind, 0, NOTE_KINDS * sizeof *by_kind);
	while (jax_scan(text, len, &at, &note)) {
		assert_true(at <= len);
		by_kind[note.kind]++;
		notes++;
	}
	assert_int_equal(at, len);
	return notes;
}

static void assert_file(const char *name, size_t hits, size_t misses, size_t stored,
			size_t compiled)
{
	AUTO(sb_release) struct sb text = data(name);
	size_t kinds[NOTE_KINDS];

	count_notes(text.text, text.len, kinds);
	assert_int_equal(kinds[NOTE_HIT], hits);
	assert_int_equal(kinds[NOTE_MISS], misses);
	assert_int_equal(kinds[NOTE_STORED], stored);
	assert_int_equal(kinds[NOTE_COMPILED], compiled);
}

static void real_logs_are_read_with_and_without_log_prefixes(void **state)
{
	(void)state;
	assert_file("cold.txt", 0, 5, 5, 5);
	assert_file("bare.txt", 0, 5, 5, 5);
	assert_file("warm.txt", 5, 0, 0, 5);
	assert_file("twice.txt", 10, 0, 0, 10); /* every line by two handlers */
	assert_file("truncated.txt", 4, 1, 1, 5);
	assert_file("quick.txt", 0, 5, 0, 5);
	assert_file("off.txt", 0, 0, 0, 5);
}

static void every_message_gives_its_parts(void **state)
{
	struct graph_note note;

	(void)state;
	assert_true(first("x " HIT("jit_f", KEY_F), &note));
	assert_int_equal(note.kind, NOTE_HIT);
	assert_words(note.name, "jit_f");
	assert_words(note.key, KEY_F);
	assert_true(first("WARNING:2026:jax:125: " MISS("jit_f", KEY_F), &note));
	assert_int_equal(note.kind, NOTE_MISS);
	assert_words(note.key, KEY_F);
	assert_true(first(WRITING("jit_f", KEY_F), &note));
	assert_int_equal(note.kind, NOTE_STORED);
	assert_words(note.name, "jit_f");
	assert_true(first(FINISHED("f", "0.041103840"), &note));
	assert_int_equal(note.kind, NOTE_COMPILED);
	assert_words(note.name, "jit(f)");
	assert_true(note.seconds > 0.0411 && note.seconds < 0.0412);
	assert_true(first(FINISHED("<unnamed wrapped function>", "1.5"), &note));
	assert_words(note.name, "jit(<unnamed wrapped function>)");
	assert_true(
		first(READ_ERROR("jit_f", "error: Error -5 while decompressing data: x"), &note));
	assert_int_equal(note.kind, NOTE_READ_ERROR);
	assert_words(note.why, "error: Error -5 while decompressing data: x");
	assert_true(note.bad_form);
	assert_true(first(READ_ERROR("jit_f", "JaxRuntimeError: INTERNAL: no"), &note));
	assert_false(note.bad_form);
	assert_true(
		first(WRITE_ERROR("jit_f", "OSError: [Errno 28] No space left on device"), &note));
	assert_int_equal(note.kind, NOTE_WRITE_ERROR);
	assert_words(note.why, "OSError: [Errno 28] No space left on device");
	assert_true(first("compile_or_get_cached: unable to generate cache key, skipping the "
			  "cache: UNIMPLEMENTED \r\n",
			  &note));
	assert_int_equal(note.kind, NOTE_BYPASS);
	assert_words(note.why, "UNIMPLEMENTED");
}

static void reasons_for_not_storing_are_told_apart(void **state)
{
	struct graph_note note;

	(void)state;
	assert_true(first("Not writing persistent cache entry with key '" KEY_F
			  "' since its size (2455 bytes) is less than threshold (3000 bytes)\n",
			  &note));
	assert_int_equal(note.kind, NOTE_NOT_STORED);
	assert_words(note.key, KEY_F);
	assert_words(note.why, "its size (2455 bytes) is less than threshold (3000 bytes)");
	assert_false(note.lasting);
	assert_true(first("Not writing persistent cache entry since process_id != 0\n", &note));
	assert_int_equal(note.key.len + note.name.len, 0);
	assert_words(note.why, "process_id != 0");
	assert_true(first("Not writing persistent cache entry for 'jit_f' because it uses host "
			  "callbacks (e.g. from jax.debug.print or breakpoint)\n",
			  &note));
	assert_words(note.name, "jit_f");
	assert_true(note.lasting);
}

static void a_key_in_double_quotes_is_a_key(void **state)
{
	struct graph_note note;

	(void)state;
	assert_true(first("Persistent compilation cache hit for 'jit_f' with key \"" KEY_F "\"",
			  &note));
	assert_words(note.key, KEY_F);
}

static void a_message_cut_anywhere_is_none_or_whole(void **state)
{
	static const char line[] = "node 3: " MISS("jit_f", KEY_F);
	struct graph_note note;
	size_t whole = strlen(line) - 1; /* the newline is not needed */

	(void)state;
	for (size_t len = 0; len <= strlen(line); len++) {
		AUTO(auto_free) char *copy = mem_copy_n(line, len);
		size_t at = 0;
		bool found = jax_scan(copy, len, &at, &note);

		assert_int_equal(found, len >= whole);
		if (found)
			assert_words(note.key, KEY_F);
	}
	for (size_t from = 9; from < strlen(line); from++)
		assert_false(first(line + from, &note));
}

static void merged_lines_give_every_whole_message(void **state)
{
	/* Two ranks writing into each other, a progress bar, a message cut by the
	 * beginning of the next one. */
	static const char text[] =
		"Writing checkpoint 12\rrank 1: PERSISTENT COMPILATION CACHE MISS for 'jit_f' with "
		"key '" KEY_F "'Persistent compilation cache hit for 'jit_g' with key '" KEY_G
		"' Finished XLA compilation of jit(fFinished XLA compilation of jit(g) in 0.5 sec "
		"Persistent compilation cache hit for 'jit_h' with key 'jit_h-cccc"
		"Writing jit_h to persistent compilation cache with key '" KEY_H "'\n";
	struct graph_note note;
	size_t at = 0;

	(void)state;
	assert_true(jax_scan(text, strlen(text), &at, &note));
	assert_int_equal(note.kind, NOTE_MISS);
	assert_words(note.key, KEY_F);
	assert_true(jax_scan(text, strlen(text), &at, &note));
	assert_int_equal(note.kind, NOTE_HIT);
	assert_words(note.key, KEY_G);
	assert_true(jax_scan(text, strlen(text), &at, &note));
	assert_int_equal(note.kind, NOTE_COMPILED);
	assert_words(note.name, "jit(g)");
	assert_true(jax_scan(text, strlen(text), &at, &note));
	assert_int_equal(note.kind, NOTE_STORED);
	assert_words(note.key, KEY_H);
	assert_false(jax_scan(text, strlen(text), &at, &note));
}

static void what_only_looks_like_a_message_is_none(void **state)
{
	static const char *const lines[] = {
		"",
		"TRACING CACHE MISS at /src/toy.py:7:21 (<module>):",
		"Compiling jit(f) with global shapes and types (ShapedArray(float32[8,8]),).",
		"Finished tracing f for jit in 0.008895159 sec",
		"Finished jaxpr to MLIR module conversion jit(f) in 0.018041849 sec",
		"Finished XLA compilation of jit(f) in a moment sec",
		"Finished XLA compilation of jit(f) in 0.5 s",
		"Finished XLA compilation of jit(f) in -1 sec",
		"Finished XLA compilation of jit(f) in nan sec",
		"persistent compilation cache hit for 'jit_f' with key '" KEY_F "'",
		"Persistent compilation cache hit for 'jit_f'",
		"Persistent compilation cache hit for 'jit_f' with key 'short'",
		"Persistent compilation cache hit for 'jit_f' with key 'jit_f-" HEX_A "a'",
		"Persistent compilation cache hit for 'jit_f' with key '../jit_f-" HEX_A "'",
		"Persistent compilation cache hit for 'jit_f' with key '.f-" HEX_A "'",
		"Persistent compilation cache hit for 'jit_\nf' with key '" KEY_F "'",
		"Writing a novel to persistent compilation cache with key '" KEY_F "'",
	};
	struct graph_note note;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(lines); i++)
		if (first(lines[i], &note))
			fail_msg("'%s' was read as a message", lines[i]);
}

static void noise_and_nul_bytes_around_a_message_do_not_hide_it(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	unsigned seed = 7;
	size_t kinds[NOTE_KINDS];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		seed = seed * 1103515245u + 12345u;
		sb_addc(&text, (char)(seed >> 16));
		if (i % 1000 == 500)
			sb_adds(&text, HIT("jit_f", KEY_F));
	}
	count_notes(text.text, text.len, kinds);
	assert_int_equal(kinds[NOTE_HIT], 5);
}

/* Every place of a hostile line that begins a message reads only so far. */
static void huge_lines_are_read_in_linear_time(void **state)
{
	static const char *const pieces[] = {
		"Writing ",
		"Persistent compilation cache hit for '",
		"PERSISTENT COMPILATION CACHE MISS for 'a' with key '",
		"Finished XLA compilation of ",
		"PPPPPPPPPP",
		"ShapedArray(float32[8,8]), ",
	};
	size_t kinds[NOTE_KINDS];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(pieces); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		while (text.len < (size_t)1 << 20)
			sb_adds(&text, pieces[i]);
		sb_adds(&text, HIT("jit_f", KEY_F));
		count_notes(text.text, text.len, kinds);
		assert_int_equal(kinds[NOTE_HIT], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_logs_are_read_with_and_without_log_prefixes),
		cmocka_unit_test(every_message_gives_its_parts),
		cmocka_unit_test(reasons_for_not_storing_are_told_apart),
		cmocka_unit_test(a_key_in_double_quotes_is_a_key),
		cmocka_unit_test(a_message_cut_anywhere_is_none_or_whole),
		cmocka_unit_test(merged_lines_give_every_whole_message),
		cmocka_unit_test(what_only_looks_like_a_message_is_none),
		cmocka_unit_test(noise_and_nul_bytes_around_a_message_do_not_hide_it),
		cmocka_unit_test(huge_lines_are_read_in_linear_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
