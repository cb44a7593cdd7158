/* A book that is put down after any line, and taken up again by another process, ends up knowing
 * the same as one that read the log in one go. */
#include "tests/unit/cache/neuron.h"

#include <string.h>

static const char neuron_log[] = N_CACHE("/cache") N_CACHE("/cache") NEW("00:01") N_MISS(MOD_A) NEW(
	"00:02") N_EXTRACTED(MOD_B) NEW("00:03") N_DONE(MOD_A) N_HIT(MOD_C) N_WAITING(MOD_D, "2.5")
	N_CACHED_FAILURE(MOD_D) N_FAILED(MOD_B, "[TEN404] Internal error")
		N_ROW("[rank1]: ", MOD_A, "true", N_TIME("12.5")) N_ROW(
			"", MOD_B, "false",
			"") "sub-process 3 got exception: no memory\n"
			    "There was an error in the training script\n" N_TOTALS("3", "2", "1")
				    N_NOTHING
	"parallel compilation exited with error.Received error code: -9\n";

static char *words_of(const struct graph_tally *tally)
{
	json_auto_t *json = graph_tally_json(tally, 1000);
	struct graph_tally_front_end said;
	struct graph_tally_counts counts;
	struct graph_tally_cache cache = { 0 };
	AUTO(auto_free) char *graphs = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);

	graph_tally_front_end(tally, &said);
	graph_tally_counts(tally, &counts);
	graph_tally_cache_at(tally, 0, &cache);
	return mem_format(
		"%s front end: %lld %lld %lld %lld %lld %lld %lld %s %s %d %d counts: %lld "
		"%lld %lld %g %lld %g %s cache: %s %lld exit 1: %d",
		graphs, (long long)said.nodes, (long long)said.blocks, (long long)said.nothing,
		(long long)said.graphs, (long long)said.good, (long long)said.bad,
		(long long)said.workers_died, said.worker_why ? said.worker_why : "-",
		said.first_error ? said.first_error : "-", said.killed, said.script_failed,
		(long long)counts.made, (long long)counts.stored, (long long)counts.waited,
		counts.waited_seconds, (long long)counts.bypassed, counts.bypassed_seconds,
		counts.bypass_why ? counts.bypass_why : "-", cache.url ? cache.url : "-",
		(long long)cache.times, graph_tally_explains_exit(tally, 1));
}

/* Through the very text that is written down. */
static void put_down_and_take_up(struct graph_tally **tally, const struct compile_kind *kind)
{
	json_auto_t *kept = graph_tally_keep(*tally), *read = NULL;
	AUTO(auto_free) char *text = js_line(kept);
	struct err *err = NULL;

	assert_non_null(kept);
	assert_int_equal(js_parse(text, strlen(text), "a book", &read, &err), 0);
	graph_tally_freep(tally);
	*tally = graph_tally_restore(read, kind);
	assert_non_null(*tally);
}

static void expect_same(const struct compile_kind *kind, const char *log)
{
	AUTO(graph_tally_freep) struct graph_tally *whole = graph_tally_new();
	AUTO(auto_free) char *wanted = NULL;
	size_t lines = 0;

	for (const char *at = log, *end; (end = strchr(at, '\n')); at = end + 1, lines++)
		graph_tally_scan(whole, kind, 0, at, (size_t)(end - at));
	wanted = words_of(whole);
	assert_true(lines > 10);
	for (size_t stop = 0; stop <= lines; stop++) {
		AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
		AUTO(auto_free) char *found = NULL;
		size_t line = 0;

		for (const char *at = log, *end; (end = strchr(at, '\n')); at = end + 1, line++) {
			if (line == stop)
				put_down_and_take_up(&tally, kind);
			graph_tally_scan(tally, kind, 0, at, (size_t)(end - at));
		}
		put_down_and_take_up(&tally, kind);
		found = words_of(tally);
		assert_string_equal(found, wanted);
	}
}

static void nothing_of_neurons_messages_is_lost(void **state)
{
	(void)state;
	expect_same(neuron(), neuron_log);
}

static void nothing_of_jaxs_messages_is_lost(void **state)
{
	static const char *const files[] = { "cold.txt",     "warm.txt",     "off.txt",
					     "quick.txt",    "callback.txt", "twice.txt",
					     "truncated.txt" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		AUTO(sb_release) struct sb text = data(files[i]);

		expect_same(jax(), text.text);
	}
}

/* The kept tally lies in a file that others may have written. */
static void what_leads_out_of_the_cache_is_not_taken_up(void **state)
{
	static const char *const keys[] = { "../../etc", ".hidden", "a/b", "" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(N_HIT(MOD_A));
		json_auto_t *kept = graph_tally_keep(tally);
		json_t *row = json_array_get(json_object_get(kept, "graphs"), 0);

		json_array_set_new(row, 0, json_string(keys[i]));
		assert_null(graph_tally_restore(kept, neuron()));
	}
}

static void any_damage_is_refused_or_harmless(void **state)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(neuron_log);
	json_auto_t *kept = graph_tally_keep(tally);
	AUTO(auto_free) char *text = js_line(kept);
	size_t len = strlen(text);

	(void)state;
	for (size_t at = 0; at < len; at++) {
		AUTO(err_freep) struct err *err = NULL;
		AUTO(graph_tally_freep) struct graph_tally *other = NULL;
		json_auto_t *read = NULL;
		char before = text[at];

		text[at] = before == '1' ? '9' : '1';
		if (js_parse(text, len, "a book", &read, &err) == 0)
			other = graph_tally_restore(read, neuron());
		if (other) {
			neuron_scan_text(other, 0, neuron_log);
			free(words_of(other));
		}
		text[at] = before;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_neurons_messages_is_lost),
		cmocka_unit_test(nothing_of_jaxs_messages_is_lost),
		cmocka_unit_test(what_leads_out_of_the_cache_is_not_taken_up),
		cmocka_unit_test(any_damage_is_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
