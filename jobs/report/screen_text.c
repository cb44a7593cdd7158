/* The rows of the block: see screen.h. */
#include <math.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/report/page.h"
#include "jobs/report/screen_inside.h"

/* Which rows stay where there is no room for all: the least number the longest. */
enum rank {
	RANK_ALWAYS,
	RANK_STATE,
	RANK_NOW, /* what is done at the moment */
	RANK_PHASE,
	RANK_TIME,
	RANK_CHART,
	RANK_ATTEMPT,
	RANK_LOGS,
	RANK_COST,
	RANK_METRICS,
	RANK_PAST, /* phases that are over or to come */
	RANK_MORE,
};

struct view {
	const struct screen *screen;
	const struct screen_frame *frame;
	json_t *status;
	struct page page;
};

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

/* Whole seconds, so that nothing flickers that nobody reads. Yours to free. */
static char *duration(int64_t ms)
{
	int64_t s = ms > 0 ? ms / 1000 : 0;

	return s < 60 ? mem_format("%lld s", (long long)s) : text_format_duration(s * 1000);
}

static int64_t since(const struct view *view, int64_t begun_ms, int64_t ended_ms)
{
	return (ended_ms ? ended_ms : view->frame->now.ms) - begun_ms;
}

/* The sign of what is under way turns. */
static void spinner(struct view *view)
{
	static const char *const utf8[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" };
	static const char *const ascii[] = { "|", "/", "-", "\\" };
	uint64_t turn = (uint64_t)view->frame->now.ms / SCREEN_SPIN_MS;

	if (view->frame->look.utf8)
		page_raw(&view->page, MARK_RUN, utf8[turn % STK_LENGTH(utf8)], 1);
	else
		page_raw(&view->page, MARK_RUN, ascii[turn % STK_LENGTH(ascii)], 1);
	page_add(&view->page, MARK_NONE, " ");
}

static void add_head(struct view *view)
{
	const char *state = js_str(view->status, "state");
	const struct screen *screen = view->screen;
	enum look_mark mark = look_of_state(state, NULL);
	struct page *page = &view->page;

	page_row(page, RANK_ALWAYS, "run:");
	page_add(page, MARK_NONE, "%s (%s on %s)", screen->run,
		 or_dash(js_str(view->status, "name")), or_dash(js_str(view->status, "engine")));
	page_row(page, RANK_STATE, "state:");
	if (mark == MARK_RUN)
		spinner(view);
	else
		page_sign(page, mark);
	page_add(page, mark, "%s", or_dash(state));
	if (screen->begun_ms) {
		AUTO(auto_free)
		char *time = duration(since(view, screen->begun_ms, screen->ended_ms));

		page_add(page, MARK_NONE, ", %s, phase %s", time,
			 or_dash(js_str(view->status, "phase")));
	}
	if (js_str(view->status, "waiting_for")) {
		page_row(page, RANK_NOW, "waits for:");
		page_add(page, MARK_WAIT, "%s", js_str(view->status, "waiting_for"));
		if (screen->until_ms > view->frame->now.ms) {
			AUTO(auto_free)
			char *left = duration(screen->until_ms - view->frame->now.ms + 999);

			page_add(page, MARK_NONE, ", in %s", left);
		}
	}
}

/* --- phases --- */

/* What there is to say of a phase besides its state and time. */
static void add_stage_facts(struct view *view, enum phase phase)
{
	const struct stage *stage = &view->screen->stages[phase];
	const json_t *cache = json_object_get(view->status, "cache");
	struct page *page = &view->page;

	if (phase == PHASE_VERIFY && stage->ended_ms && json_object_get(cache, "done"))
		page_add(page, MARK_NONE, ", %lld of %lld graphs proved",
			 (long long)js_int(cache, "done", 0),
			 (long long)js_int(cache, "graphs", 0));
	if (stage->attempt > 1 || (stage->attempt == 1 && stage->state == STAGE_FAILED))
		page_add(page, MARK_NONE, ", attempt %lld", (long long)stage->attempt);
}

static void add_stage(struct view *view, enum phase phase)
{
	static const struct {
		enum look_mark mark;
		const char *word;
	} words[] = {
		[STAGE_TO_COME] = { MARK_NONE, "to come" },
		[STAGE_UNDER_WAY] = { MARK_RUN, "running for" },
		[STAGE_DONE] = { MARK_GOOD, "done in" },
		[STAGE_FAILED] = { MARK_BAD, "failed after" },
		[STAGE_SKIPPED] = { MARK_GOOD, "not needed: the cache is warm" },
	};
	const struct stage *stage = &view->screen->stages[phase];
	AUTO(auto_free) char *label = mem_format("%s:", phase_names[phase]);
	bool now = stage->state == STAGE_UNDER_WAY;

	if (!stage->wanted)
		return;
	page_row(&view->page, now ? RANK_PHASE : RANK_PAST, label);
	if (now)
		spinner(view);
	else
		page_sign(&view->page, words[stage->state].mark);
	page_add(&view->page, words[stage->state].mark, "%s", words[stage->state].word);
	if (stage->begun_ms) {
		AUTO(auto_free)
		char *time = duration(since(view, stage->begun_ms, stage->ended_ms));

		page_add(&view->page, MARK_NONE, " %s", time);
	}
	add_stage_facts(view, phase);
}

/* --- graphs and steps --- */

#define BAR_LEAST 8
#define BAR_MOST  40

/* How much of it is done, where there is room. */
static void bar(struct view *view, double part)
{
	struct page *page = &view->page;
	size_t room = page_room(page), columns;
	AUTO(sb_release) struct sb done = SB_INIT, rest = SB_INIT;
	size_t full;

	if (room < BAR_LEAST + 2)
		return;
	columns = room - 2 < BAR_MOST ? room - 2 : BAR_MOST;
	full = (size_t)(fmin(fmax(part, 0), 1) * (double)columns);
	for (size_t i = 0; i < columns; i++) {
		struct sb *to = i < full ? &done : &rest;

		if (view->frame->look.utf8)
			sb_adds(to, i < full ? "━" : "─");
		else
			sb_adds(to, i < full ? "=" : "-");
	}
	page_add(page, MARK_NONE, "  ");
	page_raw(page, MARK_GOOD, done.text, full);
	page_raw(page, MARK_FAINT, rest.text, columns - full);
}

static void add_graphs(struct view *view)
{
	const json_t *graphs = json_object_get(view->status, "graphs");
	int64_t named = js_int(graphs, "named", 0), failed = js_int(graphs, "failed", 0);
	int64_t compiled = js_int(graphs, "compiled", 0), hits = js_int(graphs, "hits", 0);
	int64_t done = compiled + hits;
	bool now = view->screen->stages[PHASE_PRECOMPILE].state == STAGE_UNDER_WAY;
	struct page *page = &view->page;

	if (!graphs)
		return;
	page_row(page, now ? RANK_NOW : RANK_PAST, "graphs:");
	page_add(page, MARK_NONE, "%lld of %lld done", (long long)done, (long long)named);
	if (now && !view->screen->ahead)
		page_add(page, MARK_NONE, " so far");
	if (failed > 0)
		page_add(page, MARK_BAD, ", %lld failed", (long long)failed);
	page_add(page, MARK_NONE, " (%lld compiled, %lld found)", (long long)compiled,
		 (long long)hits);
	if (now && view->screen->ahead && named > 0)
		bar(view, (double)done / (double)named);
}

static void add_jit(struct view *view)
{
	const json_t *jit = json_object_get(view->status, "jit");
	int64_t graphs = js_int(jit, "graphs", 0);
	enum look_mark mark = view->screen->jit ? MARK_NONE : MARK_WARN;
	AUTO(auto_free) char *time = NULL;

	if (graphs <= 0)
		return;
	time = duration((int64_t)(js_real(jit, "seconds", 0) * 1000));
	page_row(&view->page, RANK_ATTEMPT, "phase 2:");
	if (mark == MARK_WARN)
		page_sign(&view->page, mark);
	page_add(&view->page, mark, "%lld graph%s compiled in training, %s", (long long)graphs,
		 graphs == 1 ? "" : "s", time);
	if (json_object_get(jit, "cost"))
		page_add(&view->page, MARK_NONE, ", %.2f USD", js_real(jit, "cost", 0));
}

static void add_rate(struct page *page, double rate)
{
	if (rate >= 1)
		page_add(page, MARK_NONE, "%.1f steps/s", rate);
	else
		page_add(page, MARK_NONE, "%.1f s/step", 1 / rate);
}

/* Neither bound is more than what was seen lately. */
static void add_time_left(struct view *view, const struct course_rate *rate)
{
	const struct screen *screen = view->screen;
	double steps = (double)(screen->of - screen->step) * 1000;
	double gone = (double)(view->frame->now.ms - screen->step_ms);
	AUTO(auto_free) char *least = NULL, *most = NULL;

	least = duration((int64_t)fmin(fmax(steps / rate->high - gone, 0), 9e15));
	if (rate->low <= 0) {
		page_add(&view->page, MARK_NONE, "%s left or more", least);
		return;
	}
	most = duration((int64_t)fmin(fmax(steps / rate->low - gone, 0) + 999, 9e15));
	if (strcmp(least, most) == 0)
		page_add(&view->page, MARK_NONE, "about %s left", least);
	else
		page_add(&view->page, MARK_NONE, "%s to %s left", least, most);
}

/* Of a terminal on which speed and time go into one row. */
#define SPEED_COLUMNS 60
static void add_speed(struct view *view)
{
	const struct screen *screen = view->screen;
	struct page *page = &view->page;
	bool timed, wide = page->width >= SPEED_COLUMNS;
	struct course_rate rate;

	if (screen->stages[PHASE_TRAIN].state != STAGE_UNDER_WAY)
		return;
	if (!course_rate(&screen->course, &rate)) {
		if (screen->rate <= 0)
			return;
		rate.mean = screen->rate;
		rate.high = 0;
	}
	timed = rate.high > 0 && screen->of > screen->step;
	page_row(page, timed && !wide ? RANK_METRICS : RANK_TIME, "speed:");
	add_rate(page, rate.mean);
	if (timed && wide)
		page_add(page, MARK_NONE, ", ");
	else if (timed)
		page_row(page, RANK_TIME, "time:");
	if (timed)
		add_time_left(view, &rate);
}

static void add_steps(struct view *view)
{
	const struct screen *screen = view->screen;
	struct page *page = &view->page;

	if (screen->step < 0)
		return;
	page_row(page, RANK_NOW, "progress:");
	page_add(page, MARK_NONE, "step %lld", (long long)screen->step);
	if (screen->of > 0) {
		double part = (double)screen->step / (double)screen->of;

		page_add(page, MARK_NONE, " of %lld, %.0f %%", (long long)screen->of,
			 floor(part * 100));
		bar(view, part);
	}
	add_speed(view);
}

static void add_value(struct page *page, const json_t *value)
{
	if (json_is_string(value))
		page_add(page, MARK_WARN, "%s", json_string_value(value));
	else
		page_add(page, MARK_NONE, "%.4g", json_number_value(value));
}

/* So that what follows stands still while numbers change. */
static void pad(struct page *page, size_t columns)
{
	page_add(page, MARK_NONE, "  ");
	while (page->width - page_room(page) < columns && page_room(page) > 0)
		page_add(page, MARK_NONE, " ");
}

#define VALUE_COLUMNS 10
#define SPARK_MOST    48
static void add_metrics(struct view *view)
{
	const struct screen *screen = view->screen;
	struct page *page = &view->page;
	AUTO(sb_release) struct sb spark = SB_INIT;
	const char *name, *gap = "";
	bool begun = false;
	json_t *value;

	if (screen->charted) {
		AUTO(auto_free) char *label = mem_format("%s:", screen->charted);
		size_t room, columns;

		page_row(page, RANK_CHART, strlen(label) < PAGE_LABEL ? label : "metric:");
		add_value(page, json_object_get(screen->metrics, screen->charted));
		pad(page, PAGE_LABEL + VALUE_COLUMNS);
		room = page_room(page) < SPARK_MOST ? page_room(page) : SPARK_MOST;
		columns = course_spark(&screen->course, room, view->frame->look.utf8, &spark);
		page_raw(page, MARK_RUN, spark.text, columns);
		if (strlen(label) >= PAGE_LABEL)
			page_add(page, MARK_NONE, " %s", screen->charted);
	}
	json_object_foreach (screen->metrics, name, value) {
		if (strcmp(name, "step") == 0 ||
		    (screen->charted && strcmp(name, screen->charted) == 0))
			continue;
		if (!begun)
			page_row(page, RANK_METRICS, "metrics:");
		begun = true;
		page_add(page, MARK_NONE, "%s%s ", gap, name);
		add_value(page, value);
		gap = "  ";
	}
}

/* --- attempts and the rest --- */

/* The last line that says something: of a traceback the one that counts. */
static void add_evidence(struct page *page, const char *text)
{
	size_t end = text ? strlen(text) : 0, from;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (from = end; from > 0 && text[from - 1] != '\n';)
		from--;
	if (end - from > 4096)
		end = from + 4096; /* of a line that no row can show */
	if (end > from)
		page_add(page, MARK_FAINT, ": %.*s", (int)(end - from), text + from);
}

static void add_attempt(struct view *view, const json_t *attempt, const char *label)
{
	const char *class = js_str(attempt, "class"), *action = js_str(attempt, "action");
	enum look_mark mark = look_of_state(js_str(attempt, "state"), class);
	struct page *page = &view->page;

	page_row(page, RANK_ATTEMPT, label);
	page_sign(page, mark);
	page_add(page, MARK_NONE, "%s %lld ", or_dash(js_str(attempt, "phase")),
		 (long long)js_int(attempt, "attempt", 0));
	page_add(page, mark, "%s", class ? class : or_dash(js_str(attempt, "state")));
	if (json_object_get(attempt, "seconds")) {
		AUTO(auto_free)
		char *time = duration((int64_t)(js_real(attempt, "seconds", 0) * 1000));

		page_add(page, MARK_NONE, " after %s", time);
	}
	if (action)
		page_add(page, MARK_NONE, ", %s", action);
	add_evidence(page, js_str(attempt, "evidence"));
}

/* Those that ended otherwise than well, the newest few. */
#define ATTEMPTS_SHOWN 3
static void add_attempts(struct view *view)
{
	const json_t *attempts = json_object_get(view->status, "attempts");
	size_t first = json_array_size(attempts), shown = 0, before = 0;
	const json_t *attempt;
	size_t i;

	for (i = first; i-- > 0;) {
		const char *class = js_str(json_array_get(attempts, i), "class");

		if (!class || strcmp(class, "none") == 0)
			continue;
		if (shown < ATTEMPTS_SHOWN) {
			first = i;
			shown++;
		} else {
			before++;
		}
	}
	for (i = first; i < json_array_size(attempts); i++) {
		const char *class;

		attempt = json_array_get(attempts, i);
		class = js_str(attempt, "class");
		if (!class || strcmp(class, "none") == 0)
			continue;
		add_attempt(view, attempt, i == first ? "attempts:" : "");
	}
	if (before) {
		page_row(&view->page, RANK_MORE, "");
		page_add(&view->page, MARK_NONE, "  and %zu before", before);
	}
}

static void add_rest(struct view *view)
{
	const json_t *checkpoint = json_object_get(view->status, "checkpoint");
	const json_t *cost = json_object_get(view->status, "cost");
	const struct screen *screen = view->screen;
	struct page *page = &view->page;

	if (checkpoint) {
		page_row(page, RANK_METRICS, "checkpoint:");
		page_add(page, MARK_NONE, "step %lld", (long long)js_int(checkpoint, "step", 0));
	}
	if (cost) {
		page_row(page, RANK_COST, "cost:");
		page_add(page, MARK_NONE, "%.2f USD so far", js_real(cost, "accrued", 0));
		if (json_object_get(cost, "estimated"))
			page_add(page, MARK_NONE, ", %.2f at the end",
				 js_real(cost, "estimated", 0));
	}
	page_row(page, RANK_LOGS, "logs:");
	page_add(page, MARK_NONE, "stoker logs -f %s", screen->run);
	/* The folder only as a whole: of a part nobody can make use. */
	if (screen->folder && strlen(screen->folder) + 2 <= page_room(page))
		page_add(page, MARK_FAINT, "  %s", screen->folder);
}

static void add_question(struct view *view)
{
	const char *question = view->frame->question;

	if (!question)
		return;
	if (strlen(question) > view->page.width)
		question = view->frame->question_short;
	page_row(&view->page, RANK_ALWAYS, NULL);
	page_add(&view->page, MARK_WARN, "%s", question);
}

void screen_render(const struct screen *screen, const struct screen_frame *frame, struct sb *out)
{
	json_auto_t *status = status_json(screen->status, frame->now, true);
	struct view view = { .screen = screen, .frame = frame, .status = status };

	page_init(&view.page, &frame->look, frame->width);
	add_head(&view);
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		add_stage(&view, (enum phase)phase);
		if (phase == PHASE_PRECOMPILE)
			add_graphs(&view);
	}
	add_jit(&view);
	add_steps(&view);
	add_metrics(&view);
	add_attempts(&view);
	add_rest(&view);
	add_question(&view);
	page_finish(&view.page, frame->height, out);
	page_release(&view.page);
}
