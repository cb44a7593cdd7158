/* What a reader of a journal is told of gaps, and in which of its events it begins; which run a
 * name means, also in a damaged journal. See jobs/run/journal/journal.h. */
#include "sqlite_fixture.h"

#include "faulty_store.h"
#include "jobs/run/journal/journal_dir_internal.h"

static struct journal *objects; /* beside the database of the fixture */
static struct faulty_store *between;

static int open_both(void **state)
{
	AUTO(auto_free) char *url = NULL;
	AUTO(auto_free) char *folder = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct dir_journal *inner;

	if (set_up(state) < 0)
		return -1;
	folder = fs_join(dir, "objects");
	url = mem_format("dir:%s", folder);
	if (journal_open(url, JOURNAL_WRITE, &objects, &err) < 0)
		return -1;
	inner = objects->store;
	store_freep(&inner->store);
	put_text(dir, "runs/r/" LEASE_LOCK, ""); /* as its driver leaves it */
	between = faulty_new(folder);
	inner->store = &between->base;
	return 0;
}

static int close_both(void **state)
{
	journal_freep(&objects);
	return tear_down(state);
}

static void append_to(struct journal *to, const char *run, int64_t first, int64_t last)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .at = { 5000 } };
	struct err *err = NULL;

	for (ev.seq = first; ev.seq <= last; ev.seq++) {
		journal_append(to, run, &ev, &err);
		assert_no_error(err);
	}
}

/* ---- reads from any event on ---- */

static int64_t first_seen, last_seen;
static int seen;

static int see(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row, (void)err;
	if (seen++ == 0)
		first_seen = ev->seq;
	last_seen = ev->seq;
	return arg && seen == *(int *)arg;
}

static int read_from(struct journal *of, int64_t from, int *stop_after, struct err **err)
{
	seen = 0;
	first_seen = last_seen = 0;
	return journal_read(of, "r", from, see, stop_after, err);
}

static void assert_seen(struct journal *of, int64_t from, int64_t first, int64_t last)
{
	struct err *err = NULL;

	assert_int_equal(read_from(of, from, NULL, &err), 0);
	assert_no_error(err);
	assert_int_equal(first_seen, first);
	assert_int_equal(last_seen, last);
}

static void assert_gap(struct journal *of, int64_t from, int count, const char *words)
{
	AUTO(err_freep) struct err *err = NULL;

	if (read_from(of, from, NULL, &err) != -1)
		fail_msg("%s: from %d, %d seen", of == objects ? "objects" : "database", (int)from,
			 seen);
	assert_int_equal(seen, count);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_true(err->damage);
	assert_contains(err->message, words);
	assert_contains(err->hint, "stoker resume r --salvage");
}

static void forget_position(struct journal *of)
{
	of->at = (struct journal_position){ 0 };
	if (of == objects)
		((struct dir_journal *)of->store)->recent.first = 0;
}

static void remove_event(int64_t seq)
{
	AUTO(auto_free)
	char *sql = mem_format("DELETE FROM event WHERE run='r' AND seq=%lld", (long long)seq);
	AUTO(auto_free)
	char *path = mem_format("objects/runs/r/events/%012lld.json", (long long)seq);

	change_beside(sql);
	drop(dir, path);
	forget_position(journal);
	forget_position(objects);
}

static void reading_goes_on_from_any_event(void **state)
{
	struct journal *const both[] = { journal, objects };
	int stop_after = 2;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct journal *of = both[i];
		AUTO(err_freep) struct err *err = NULL;

		append_to(of, "r", 1, 5);
		forget_position(of);
		assert_seen(of, 3, 3, 5); /* what comes before is known by event 2 alone */
		assert_seen(of, 6, 0, 0);
		forget_position(of);
		assert_seen(of, 6, 0, 0);
		forget_position(of);
		assert_seen(of, 9, 0, 0);
		assert_seen(of, 1, 1, 5);
		assert_seen(of, 0, 1, 5);
		assert_true(of->at.whole);
		/* who stops has not seen the end */
		forget_position(of);
		assert_int_equal(read_from(of, 1, &stop_after, &err), 0);
		assert_int_equal(last_seen, 2);
		assert_false(of->at.whole);
		assert_int_equal(of->at.chain.seq, 2);
		assert_seen(of, 3, 3, 5);
		assert_true(of->at.whole);
		/* what was read before is not forgotten for it */
		assert_int_equal(read_from(of, 1, &stop_after, &err), 0);
		assert_int_equal(of->at.chain.seq, 5);
		assert_true(of->at.whole);
		assert_seen(of, 6, 0, 0);
		append_to(of, "r", 6, 6);
		assert_seen(of, 6, 6, 6);
	}
}

static void a_gap_is_named_by_its_first_event(void **state)
{
	struct journal *const both[] = { journal, objects };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		append_to(both[i], "r", 1, 6);
	remove_event(5);
	for (size_t i = 0; i < 2; i++) {
		assert_gap(both[i], 1, 4, "event 5 of run r");
		assert_gap(both[i], 1, 4, "missing, although event 6 exists");
		forget_position(both[i]);
		assert_gap(both[i], 4, 1, "missing, although event 6 exists");
	}
	/* what is behind it is left */
	for (size_t i = 0; i < 2; i++) {
		struct err *err = NULL;
		int count = 0;

		assert_int_equal(journal_salvage(both[i], "r", count_event, &count, &err), 0);
		assert_no_error(err);
		assert_int_equal(count, 5);
	}
	remove_event(6);
	/* The mark of the end tells of the lost event in a database. */
	assert_gap(journal, 1, 4, "event 5 of run r");
	assert_seen(objects, 1, 1, 4);
	remove_event(1);
	forget_position(journal);
	assert_gap(journal, 1, 0, "event 1 of run r");
	assert_gap(objects, 1, 0, "missing, although event 2 exists");
}

/* A copy of its first event shows that there was one. */
static void a_run_without_any_event_is_damaged_where_it_had_one(void **state)
{
	struct journal *const both[] = { journal, objects };

	(void)state;
	append_to(journal, "r", 1, 1);
	append_to(objects, "r", 1, 1);
	remove_event(1);
	drop(dir, "runs/r/journal.end");
	for (size_t i = 0; i < 2; i++) {
		AUTO(err_freep) struct err *damage = NULL;
		struct err *err = NULL;
		int64_t good = -7;

		assert_int_equal(journal_find_damage(both[i], "r", &good, &damage, &err), 1);
		assert_no_error(err);
		assert_int_equal(good, 0);
		assert_true(damage->damage);
		assert_contains(damage->message, "missing, although '" JOURNAL_FIRST "' is there");
		assert_contains(damage->message, "event 1 of run r in '");
		/* of a run that never was there is none */
		assert_int_equal(journal_find_damage(both[i], "never", &good, &damage, &err), 0);
	}
}

/* A call that is not answered, whichever it is, is not taken for one that found nothing. */
static void a_service_that_does_not_answer_shows_no_end(void **state)
{
	int after = 0;

	(void)state;
	append_to(objects, "r", 1, 3);
	for (bool lost = true; lost; after++) {
		AUTO(err_freep) struct err *err = NULL;
		int before = between->calls_lost, result;

		forget_position(objects);
		faulty_lose(between, after, 1);
		result = read_from(objects, 1, NULL, &err);
		lost = between->calls_lost > before;
		between->calls_to_lose = 0;
		if (result == 0) {
			assert_no_error(err);
			assert_int_equal(seen, 3);
		} else {
			assert_int_equal(result, -1);
			assert_contains(err->message, "the network is gone");
			assert_true(lost);
		}
	}
	assert_in_range(after, 5, 20);
}

/* No event is read behind one that is missing. */
static void the_event_before_the_first_must_be_there(void **state)
{
	(void)state;
	append_to(journal, "r", 1, 6);
	append_to(objects, "r", 1, 6);
	remove_event(3);
	assert_gap(journal, 4, 0, "event 3 of run r");
	assert_gap(journal, 4, 0, "missing, although event 4 exists");
	/* an event of another number in its place */
	change_beside("UPDATE event SET body=replace(body, '\"seq\":2', '\"seq\":7') WHERE seq=2");
	forget_position(journal);
	assert_gap(journal, 3, 0, "event 2 of run r");
	assert_seen(objects, 5, 5, 6);
}

static void nothing_is_appended_behind_a_gap(void **state)
{
	struct journal *const both[] = { journal, objects };
	struct event ev = { .kind = EV_REQUEST_STOP, .at = { 5000 }, .seq = 5 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		AUTO(err_freep) struct err *err = NULL;

		append_to(both[i], "r", 1, 2);
		assert_int_equal(journal_append(both[i], "r", &ev, &err), -1);
		assert_contains(err->message, "event 4 of run r");
		assert_contains(err->message, "missing, although event 5 exists");
		err_freep(&err);
		/* to another run neither, whatever this one's position */
		ev.seq = 3;
		assert_int_equal(journal_append(both[i], "s", &ev, &err), -1);
		assert_contains(err->message, "event 2 of run s");
		ev.seq = 5;
	}
}

/* The part that is set aside lies beside the journal, under the name by which others open it. */
static void behind_event_1_it_goes_on_too(void **state)
{
	struct journal *const both[] = { journal, objects };

	(void)state;
	append_to(journal, "r", 1, 4);
	append_to(objects, "r", 1, 4);
	remove_event(2);
	for (size_t i = 0; i < 2; i++) {
		struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 5000 } };
		struct journal *of = both[i];
		AUTO(auto_free) char *place = NULL;
		struct err *err = NULL;

		EVENT_SET_STR(&ev, reason, "by a test");
		if (of == objects) {
			of->is_remote = true;
			free(of->url);
			of->url = mem_copy("s3://bucket/state");
		}
		assert_int_equal(journal_set_aside(of, "r", 1, &ev, &err), 0);
		assert_no_error(err);
		assert_int_equal(ev.seq, 2);
		assert_int_equal(ev.put_aside, 2);
		place = mem_format("%s/runs/r/damaged/", of == objects ? of->url : of->dir);
		assert_string_equal(js_str(journal_appended(of), "url"), place);
		assert_seen(of, 1, 1, 2);
	}
}

static void assert_nothing_fails(struct journal *of, const char *run, int least)
{
	struct err *err = NULL;
	int count = 0;

	assert_int_equal(journal_salvage(of, run, count_event, &count, &err), 0);
	assert_no_error(err);
	assert_true(count >= least);
}

/* Each append of the first event tells that nothing follows it. */
static void a_run_that_begins_here_is_known_to_its_end(void **state)
{
	(void)state;
	append_to(journal, "r", 1, 1);
	assert_true(journal->at.whole);
	append_to(journal, "r", 2, 2);
	assert_true(journal->at.whole);
	append_to(journal, "s", 1, 1);
	assert_string_equal(journal->at.run, "s");
	forget_position(journal);
	append_to(journal, "r", 3, 3);
	assert_false(journal->at.whole);
	assert_int_equal(journal->at.chain.seq, 3);
	assert_int_equal(js_int(journal_appended(journal), "seq", -1), 3);
}

static int append_beside(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row, (void)err;
	append_to(arg, "s", ev->seq, ev->seq);
	return 0;
}

/* A reader of one run may write to another. */
static void a_reader_may_write_to_another_run(void **state)
{
	struct err *err = NULL;

	(void)state;
	append_to(journal, "r", 1, 3);
	journal_read(journal, "r", 1, append_beside, journal, &err);
	assert_no_error(err);
	assert_seen(journal, 1, 1, 3);
	assert_events("s", 3);
}

/* A part of a chunk is written when no event is expected for a while. */
static void where_reads_are_requests_an_end_is_kept_with_what_is_before_it(void **state)
{
	static const struct {
		enum event_kind kind;
		bool chunk;
	} rows[] = { { EV_REQUEST_STOP, false }, { EV_DRIVER_LEFT, true }, { EV_RUN_ENDED, true } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *run = mem_format("r%zu", i);
		AUTO(auto_free)
		char *chunk = mem_format("%s/objects/runs/%s/chunks/000000000001.jsonl", dir, run);
		struct event ev = { .kind = rows[i].kind, .seq = 2, .at = { 5000 } };
		struct err *err = NULL;

		append_to(objects, run, 1, 1);
		EVENT_SET_STR(&ev, reason, "x");
		if (ev.kind == EV_RUN_ENDED) {
			ev.present = 0;
			EVENT_SET(&ev, state, OUTCOME_SUCCEEDED);
			EVENT_SET(&ev, exit_code, 0);
		}
		assert_false(fs_exists(chunk));
		journal_append(objects, run, &ev, &err);
		assert_no_error(err);
		assert_int_equal(fs_exists(chunk), rows[i].chunk);
	}
}

/* ---- runs by name ---- */

static void assert_resolves(const char *ref, const char *want)
{
	char run[JOURNAL_RUN_MAX] = "";
	struct err *err = NULL;

	journal_resolve(journal, ref, run, &err);
	assert_no_error(err);
	assert_string_equal(run, want);
}

static void assert_unresolved(const char *ref, bool damage, const char *words)
{
	AUTO(err_freep) struct err *err = NULL;
	char run[JOURNAL_RUN_MAX] = "";

	assert_int_equal(journal_resolve(journal, ref, run, &err), -1);
	assert_int_equal(err->code, damage                     ? EXIT_REFUSED
				    : strstr(words, "no run ") ? EXIT_NOT_FOUND
							       : EXIT_USAGE);
	assert_int_equal(err->damage, damage);
	assert_contains(err->message, words);
	assert_non_null(err->hint);
}

static void a_name_means_one_run(void **state)
{
	AUTO(auto_free) char *unknown = mem_format("no run 'x' in '%s'", dir);
	char longest[JOURNAL_RUN_MAX];

	(void)state;
	assert_unresolved("@last", false, "no run '@last' in '");
	append("alpha", 1, "x");
	append("alphabet", 1, "x");
	append("beta", 1, "x");
	assert_resolves("alpha", "alpha");
	assert_resolves("alphab", "alphabet");
	assert_resolves("b", "beta");
	assert_unresolved("alp", false,
			  "'alp' is the beginning of 2 run ids, among them alpha and alphabet");
	assert_unresolved("x", false, unknown);
	assert_unresolved("", false, "no run '' in '");
	assert_unresolved("betaa", false, "no run 'betaa' in '");
	/* the only one, and yet not meant by nothing */
	assert_int_equal(journal_forget(journal, "alpha", &(struct err *){ NULL }), 0);
	assert_int_equal(journal_forget(journal, "alphabet", &(struct err *){ NULL }), 0);
	assert_unresolved("", false, "no run '' in '");
	assert_resolves("@last", "beta");
	memset(longest, 'c', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	append(longest, 1, "x");
	assert_resolves(longest, longest);
	assert_resolves("c", longest);
}

/* A page that holds the beginning of one of them cannot be read: what is asked for may be there. */
static void in_a_damaged_journal_only_what_is_certain_is_found(void **state)
{
	static const char *const runs[] = { "aa", "ab", "mm", "zz", "zyx" };
	AUTO(sb_release) struct sb bytes = SB_INIT;
	const char *at;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(runs); i++) {
		AUTO(auto_free) char *lock = mem_format("runs/%s/" LEASE_LOCK, runs[i]);
		AUTO(auto_free) char *text = mem_format("plan%*s", 700, ".");

		put_text(dir, lock, "");
		append(runs[i], 1, text);
		for (int64_t seq = 2; seq <= 40; seq++)
			append(runs[i], seq, text);
	}
	journal_freep(&journal);
	bytes = get_bytes(dir, JOURNAL_SQLITE_FILE);
	at = memmem(bytes.text, bytes.len, "\"run\":\"mm\",\"seq\":1,", 19);
	assert_non_null(at);
	memset(bytes.text + (at - bytes.text) / 4096 * 4096, 0xff, 4096);
	put_bytes(dir, JOURNAL_SQLITE_FILE, bytes.text, bytes.len);
	open_as(JOURNAL_READ);
	{
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *ids = json_array();

		/* those with a folder are listed with it */
		assert_int_equal(journal_runs(journal, ids, &err), -1);
		assert_true(err->damage);
		assert_int_equal(json_array_size(ids), 5);
	}
	assert_resolves("aa", "aa");
	assert_resolves("zy", "zyx");
	assert_unresolved("m", true, "cannot read");
	assert_unresolved("@last", true, "cannot read");
	assert_unresolved("a", true, "cannot read");
	assert_unresolved("zz-not", true, "cannot read");
	assert_unresolved("", true, "cannot read");
	/* what is left of it is read, as far as it can be */
	assert_nothing_fails(journal, "mm", 0);
	assert_nothing_fails(journal, "aa", 40);
}

#define BOTH(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(reading_goes_on_from_any_event),
		BOTH(a_gap_is_named_by_its_first_event),
		BOTH(a_run_without_any_event_is_damaged_where_it_had_one),
		BOTH(a_service_that_does_not_answer_shows_no_end),
		BOTH(the_event_before_the_first_must_be_there),
		BOTH(nothing_is_appended_behind_a_gap),
		BOTH(behind_event_1_it_goes_on_too),
		OF(a_run_that_begins_here_is_known_to_its_end),
		OF(a_reader_may_write_to_another_run),
		BOTH(where_reads_are_requests_an_end_is_kept_with_what_is_before_it),
		OF(a_name_means_one_run),
		OF(in_a_damaged_journal_only_what_is_certain_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
