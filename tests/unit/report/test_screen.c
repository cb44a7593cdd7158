/* The promises of jobs/report/screen.h: what is on the block, and that it fits. */
#include "jobs/report/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/text/columns.h"
#include "jobs/base/text/js.h"

#define BEGAN INT64_C(1795000000000)

static const struct text_style plain = { .utf8 = true }, ascii = { 0 },
			       colored = { .utf8 = true, .color = true };

static struct utc second(int64_t s)
{
	return (struct utc){ BEGAN + s * 1000 };
}

static struct event at(enum event_kind kind, int64_t s)
{
	return (struct event){ .kind = kind, .at = second(s) };
}

static void created(struct screen *screen, const char *name, const char *mode)
{
	json_auto_t *plan =
		json_pack("{s:s, s:{s:s}, s:[{s:s}, {s:s}, {s:s}], s:{s:f}, s:i}", "workspace",
			  "/w", "compile", "mode", mode, "phases", "phase", "precompile", "phase",
			  "verify", "phase", "train", "limits", "price", 36.0, "nodes", 2);
	struct event ev = at(EV_RUN_CREATED, 0);

	EVENT_SET_STR(&ev, name, name);
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "0");
	EVENT_SET(&ev, seed, 1);
	screen_add(screen, &ev);
}

static void began(struct screen *screen, enum phase phase, int64_t attempt, int64_t s)
{
	struct event ev = at(EV_ATTEMPT_INTENDED, s);

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET_STR(&ev, job, "stk-r-1");
	EVENT_SET_STR(&ev, nonce, "n");
	screen_add(screen, &ev);
	ev = at(EV_ATTEMPT_CLAIMED, s);
	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	screen_add(screen, &ev);
}

static void ended(struct screen *screen, enum phase phase, int64_t attempt, int64_t s,
		  enum failure_class class, const char *evidence)
{
	struct event ev = at(EV_ATTEMPT_ENDED, s);

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, class, class);
	EVENT_SET_STR(&ev, evidence, evidence);
	screen_add(screen, &ev);
}

static void compiling(struct screen *screen, int64_t s, int64_t named, int64_t compiled)
{
	struct event ev = at(EV_COMPILE_PROGRESS, s);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, graphs, named);
	EVENT_SET(&ev, compiled, compiled);
	EVENT_SET(&ev, hits, 1);
	screen_add(screen, &ev);
}

static void verified(struct screen *screen, int64_t s, int64_t graphs)
{
	struct event ev = at(EV_CACHE_VERIFIED, s);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, complete, true);
	EVENT_SET(&ev, graphs, graphs);
	EVENT_SET(&ev, done, graphs);
	screen_add(screen, &ev);
}

static struct event progress(int64_t s, int64_t step, json_t *metrics)
{
	struct event ev = at(EV_TRAIN_PROGRESS, s);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, step, step);
	EVENT_SET(&ev, of, 1000);
	EVENT_SET(&ev, metrics, metrics);
	return ev;
}

static void trained(struct screen *screen, int64_t s, int64_t step, double loss)
{
	json_auto_t *metrics = json_pack("{s:f, s:I, s:f}", "loss", loss, "step", (json_int_t)step,
					 "accuracy", 0.5);
	struct event ev = progress(s, step, metrics);

	EVENT_SET(&ev, rate, 10);
	screen_add(screen, &ev);
}

/* The run is in training, after a precompile, a first attempt that failed, and a minute of
 * steps. */
static struct screen *in_training(void)
{
	struct screen *screen = screen_new("run1");

	created(screen, "job", "aot");
	began(screen, PHASE_PRECOMPILE, 1, 1);
	compiling(screen, 10, 12, 3);
	ended(screen, PHASE_PRECOMPILE, 1, 41, CLASS_NONE, NULL);
	verified(screen, 43, 12);
	began(screen, PHASE_TRAIN, 1, 44);
	ended(screen, PHASE_TRAIN, 1, 54, CLASS_SPOT,
	      "Traceback:\nHost terminated by the provider\n");
	began(screen, PHASE_TRAIN, 2, 60);
	for (int i = 0; i <= 60; i++)
		trained(screen, 60 + i, i * 10, 2.0 - i / 60.0);
	return screen;
}

static char *rendered(const struct screen *screen, struct text_style style, size_t width,
		      size_t height, int64_t s)
{
	struct screen_frame frame = { .style = style, .width = width, .height = height };
	struct sb out = SB_INIT;

	frame.now = second(s);
	screen_render(screen, &frame, &out);
	return sb_take(&out);
}

static void shows(const char *text, const char *row)
{
	if (!strstr(text, row))
		fail_msg("'%s' is not in:\n%s", row, text);
}

static void hides(const char *text, const char *row)
{
	if (strstr(text, row))
		fail_msg("'%s' is in:\n%s", row, text);
}

/* Colours take no column; nothing else may begin with an escape. */
static void check_fit(const char *text, size_t width, size_t height)
{
	AUTO(sb_release) struct sb bare = SB_INIT;
	size_t rows = 0;

	for (const char *c = text; *c; c++) {
		if (*c == '\x1b') {
			assert_int_equal(c[1], '[');
			c += 2 + strspn(c + 2, "0123456789;");
			assert_int_equal(*c, 'm');
			continue;
		}
		sb_addc(&bare, *c);
	}
	for (const char *row = bare.text; row; rows++) {
		size_t len = strcspn(row, "\n");

		if (columns_width(row, len, true) > width)
			fail_msg("wider than %zu: %.*s", width, (int)len, row);
		row = row[len] ? row + len + 1 : NULL;
	}
	if (rows > height)
		fail_msg("%zu rows in %zu:\n%s", rows, height, text);
}

static void all_of_it_is_there_where_there_is_room(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	AUTO(auto_free) char *text = rendered(screen, plain, 119, 39, 120);

	(void)state;
	shows(text, "run:        run1 (job on local)\n");
	shows(text, "running, 2m 00s, phase train\n");
	shows(text, "precompile: ✓ done in 40 s\n");
	shows(text, "verify:     ✓ done in 2 s, 12 of 12 graphs verified\n");
	shows(text, "running for 1m 16s, attempt 2\n");
	shows(text, "progress:   step 600 of 1000, 60 %  ━━━");
	shows(text, "speed:      10.0 steps/s, about 40 s left\n");
	shows(text, "loss:       1         █");
	shows(text, "metrics:    accuracy 0.5\n");
	shows(text, "attempts:   ✗ train 1 spot after 10 s: Host terminated by the provider\n");
	shows(text, "cost:       "); /* two nodes of 36 USD an hour */
	shows(text, "logs:       stoker logs -f run1  /w/runs/run1");
	check_fit(text, 119, 39);
}

static void the_least_wanted_rows_go_first_where_it_is_low(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	AUTO(auto_free) char *text = rendered(screen, plain, 39, 9, 120);
	AUTO(auto_free) char *least = rendered(screen, plain, 39, 2, 120);

	(void)state;
	check_fit(text, 39, 9);
	shows(text, "run:  ");
	shows(text, "step 600 of 1000");
	shows(text, "loss: ");
	shows(text, "time:       about 40 s left\n");
	hides(text, "speed:");
	hides(text, "verify:");
	check_fit(least, 39, 2);
	shows(least, "run:  ");
	shows(least, "state: ");
}

static void it_fits_every_terminal(void **state)
{
	static const struct text_style *const looks[] = { &plain, &ascii, &colored };
	AUTO(screen_freep) struct screen *screen = in_training();

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(looks); i++)
		for (size_t width = 1; width <= 130; width++)
			for (size_t height = 1; height <= 40; height += 13) {
				AUTO(auto_free)
				char *text = rendered(screen, *looks[i], width, height, 120);

				check_fit(text, width, height);
			}
}

static void without_utf8_and_colour_it_is_printable_ascii(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	AUTO(auto_free) char *text = rendered(screen, ascii, 80, 24, 120);

	(void)state;
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
	shows(text, "precompile: + done in 40 s\n");
	shows(text, "x train 1 spot");
	shows(text, "====");
}

static void colours_are_of_the_basic_sixteen_and_end_with_their_word(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	AUTO(auto_free) char *text = rendered(screen, colored, 80, 24, 120);
	AUTO(auto_free) char *bare = rendered(screen, plain, 80, 24, 120);
	size_t on = 0, off = 0;

	(void)state;
	for (const char *c = strchr(text, '\x1b'); c; c = strchr(c + 1, '\x1b')) {
		int code = 0;

		assert_int_equal(sscanf(c, "\x1b[%dm", &code), 1);
		assert_true(code == 0 || code == 2 || (code >= 31 && code <= 36));
		if (code == 0)
			off++;
		else
			on++;
	}
	assert_true(on > 5);
	assert_int_equal(on, off);
	assert_null(strchr(bare, '\x1b'));
}

static const char hostile[] = "\x1b[2J\x1b]0;x\x07\u202eevil\xc2\x9b"
			      "31m\r\n漢字\u0301\u0301\xff\xfe";

static void hostile_text_is_shown_and_steers_nothing(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("run1");
	AUTO(sb_release) struct sb evidence = SB_INIT;
	json_auto_t *metrics = json_object();
	AUTO(auto_free) char *text = NULL, *narrow = NULL;
	struct event ev;

	(void)state;
	for (int i = 0; i < 40000; i++)
		sb_add(&evidence, hostile, sizeof hostile - 1);
	js_put(metrics, "loss", js_text(hostile, sizeof hostile - 1));
	js_put(metrics, "\x1b[31m", json_real(1));
	created(screen, "\x1b[2J漢字\u202e", "aot");
	began(screen, PHASE_TRAIN, 1, 1);
	ended(screen, PHASE_TRAIN, 1, 2, CLASS_USER_CODE, evidence.text);
	began(screen, PHASE_TRAIN, 2, 3);
	ev = progress(5, 7, metrics);
	screen_add(screen, &ev);
	text = rendered(screen, colored, 79, 23, 10);
	check_fit(text, 79, 23);
	shows(text, "\\x1b[2J漢字\\u202e");
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		assert_true(*c >= 0x20 || *c == '\n' || *c == '\x1b');
	hides(text, "\u202e");
	hides(text, "\xc2\x9b");
	hides(text, "\x1b[2J");
	narrow = rendered(screen, ascii, 39, 9, 10);
	check_fit(narrow, 39, 9);
}

static void graphs_have_a_bar_where_all_of_them_are_known(void **state)
{
	AUTO(screen_freep) struct screen *ahead = screen_new("a"), *later = screen_new("l");
	AUTO(auto_free) char *known = NULL, *unknown = NULL;

	(void)state;
	created(ahead, "job", "aot");
	began(ahead, PHASE_PRECOMPILE, 1, 1);
	compiling(ahead, 5, 10, 4);
	known = rendered(ahead, plain, 80, 24, 6);
	shows(known, "graphs:     5 of 10 done (4 compiled, 1 found)  ━━");
	shows(known, "verify:       to come\n");
	created(later, "job", "aot");
	began(later, PHASE_PRECOMPILE, 1, 1);
	compiling(later, 5, 5, 4);
	unknown = rendered(later, plain, 80, 24, 6);
	shows(unknown, "graphs:     5 of 5 done so far (4 compiled, 1 found)\n");
}

static void a_verification_runs_from_the_end_of_the_first_phase(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	began(screen, PHASE_PRECOMPILE, 1, 1);
	ended(screen, PHASE_PRECOMPILE, 1, 20, CLASS_NONE, NULL);
	text = rendered(screen, ascii, 80, 24, 25);
	shows(text, "precompile: + done in 19 s\n");
	shows(text, "running for 5 s\ntrain:        to come\n");
}

static void a_warm_cache_needs_no_first_phase(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	struct event ev = at(EV_CACHE_CHECKED, 1);
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	EVENT_SET(&ev, verdict, CACHE_WARM);
	screen_add(screen, &ev);
	began(screen, PHASE_TRAIN, 1, 2);
	text = rendered(screen, plain, 80, 24, 3);
	shows(text, "precompile: ✓ not needed: the cache is warm\n");
	shows(text, "verify:     ✓ not needed");
}

static void a_glimpse_counts_once(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	began(screen, PHASE_TRAIN, 1, 1);
	for (int i = 1; i <= 4; i++) {
		json_auto_t *metrics = json_pack("{s:f}", "loss", (double)i);
		struct event ev = progress(i, i, metrics);

		screen_progress_update(screen, &ev);
		if (i % 2 == 0) /* and journalled */
			screen_add(screen, &ev);
	}
	text = rendered(screen, ascii, 80, 24, 5);
	shows(text, "loss:       4         _:+#\n");
	shows(text, "step 4 of 1000");
}

static void the_range_of_the_time_left_is_that_of_the_speed(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	began(screen, PHASE_TRAIN, 1, 0);
	for (int s = 0; s <= 60; s++)
		trained(screen, s, s <= 30 ? s * 10 : 300 + (s - 30) * 5, 1);
	text = rendered(screen, plain, 80, 24, 60);
	/* 550 steps at 10 and at 5 a second; the speed is what the event says */
	shows(text, "speed:      10.0 steps/s, 55 s to 1m 50s left\n");
}

static void the_question_stays_to_the_last(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	struct screen_frame frame = { .style = plain,
				      .width = 39,
				      .height = 3,
				      .question = "what is to be done with what is running now?",
				      .question_short = "now what?" };
	AUTO(sb_release) struct sb narrow = SB_INIT, wide = SB_INIT;

	(void)state;
	frame.now = second(120);
	screen_render(screen, &frame, &narrow);
	shows(narrow.text, "\nnow what?");
	check_fit(narrow.text, 39, 3);
	frame.width = 60;
	screen_render(screen, &frame, &wide);
	shows(wide.text, "\nwhat is to be done with what is running now?");
}

static void a_wait_says_for_what_and_how_long(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	struct event ev = at(EV_RETRY_SCHEDULED, 12);
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	began(screen, PHASE_TRAIN, 1, 1);
	ended(screen, PHASE_TRAIN, 1, 11, CLASS_COMM, "EFA: timed out");
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, delay, 30000);
	EVENT_SET(&ev, until, second(42).ms);
	EVENT_SET(&ev, action, ACTION_RETRY);
	screen_add(screen, &ev);
	text = rendered(screen, plain, 80, 24, 20);
	shows(text, "state:      · waiting, 20 s, phase train\n");
	shows(text, "waits for:  the next attempt, in 22 s\n");
	shows(text, "attempts:   ✗ train 1 comm after 10 s, retry: EFA: timed out\n");
}

static void of_many_attempts_the_newest_are_shown(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	for (int i = 1; i <= 9; i++) {
		began(screen, PHASE_TRAIN, i, 10 * i);
		ended(screen, PHASE_TRAIN, i, 10 * i + 5, CLASS_SPOT, "gone");
	}
	text = rendered(screen, plain, 80, 24, 200);
	hides(text, "train 6 spot");
	shows(text, "attempts:   ✗ train 7 spot");
	shows(text, "            ✗ train 9 spot");
	shows(text, "and 6 before");
}

static void a_new_attempt_has_made_no_step_yet(void **state)
{
	AUTO(screen_freep) struct screen *screen = in_training();
	AUTO(auto_free) char *fresh = NULL, *resumed = NULL;
	struct event ev = at(EV_ATTEMPT_INTENDED, 140);

	(void)state;
	ended(screen, PHASE_TRAIN, 2, 130, CLASS_SPOT, "gone");
	began(screen, PHASE_TRAIN, 3, 131);
	fresh = rendered(screen, plain, 80, 24, 132);
	hides(fresh, "progress:");
	hides(fresh, "speed:");
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 4);
	EVENT_SET(&ev, step, 400);
	screen_add(screen, &ev);
	resumed = rendered(screen, plain, 80, 24, 141);
	shows(resumed, "step 400 of 1000");
}

static void an_event_that_is_known_already_is_left_out(void **state)
{
	AUTO(screen_freep) struct screen *screen = screen_new("r");
	json_auto_t *metrics = json_pack("{s:f}", "loss", 1.0);
	struct event ev = progress(3, 5, metrics);
	AUTO(auto_free) char *text = NULL;

	(void)state;
	created(screen, "job", "aot");
	ev.seq = 7;
	screen_add(screen, &ev);
	ev.seq = 6;
	ev.step = 99;
	screen_add(screen, &ev);
	text = rendered(screen, plain, 80, 24, 5);
	shows(text, "step 5 of 1000");
}

static void what_the_block_says_does_not_scroll(void **state)
{
	enum status_icon mark;
	struct event ev = at(EV_TRAIN_PROGRESS, 1);

	(void)state;
	assert_false(screen_scrolls(&ev, &mark));
	ev = at(EV_ATTEMPT_ENDED, 1);
	EVENT_SET(&ev, class, CLASS_USER_CODE);
	assert_true(screen_scrolls(&ev, &mark));
	assert_int_equal(mark, MARK_BAD);
	ev = at(EV_CHECKPOINT_COMPLETE, 1);
	assert_true(screen_scrolls(&ev, &mark));
	assert_int_equal(mark, MARK_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_is_there_where_there_is_room),
		cmocka_unit_test(the_least_wanted_rows_go_first_where_it_is_low),
		cmocka_unit_test(it_fits_every_terminal),
		cmocka_unit_test(without_utf8_and_colour_it_is_printable_ascii),
		cmocka_unit_test(colours_are_of_the_basic_sixteen_and_end_with_their_word),
		cmocka_unit_test(hostile_text_is_shown_and_steers_nothing),
		cmocka_unit_test(graphs_have_a_bar_where_all_of_them_are_known),
		cmocka_unit_test(a_verification_runs_from_the_end_of_the_first_phase),
		cmocka_unit_test(a_warm_cache_needs_no_first_phase),
		cmocka_unit_test(a_glimpse_counts_once),
		cmocka_unit_test(the_range_of_the_time_left_is_that_of_the_speed),
		cmocka_unit_test(the_question_stays_to_the_last),
		cmocka_unit_test(a_wait_says_for_what_and_how_long),
		cmocka_unit_test(of_many_attempts_the_newest_are_shown),
		cmocka_unit_test(a_new_attempt_has_made_no_step_yet),
		cmocka_unit_test(an_event_that_is_known_already_is_left_out),
		cmocka_unit_test(what_the_block_says_does_not_scroll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
