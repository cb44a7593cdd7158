/* The rows of the block: see screen.h. */
#include <math.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/report/row_layout.h"
#include "jobs/report/screen_internal.h"

/* Importance of rows if not all fit: the lowest rank stays the longest. */
enum rank {
	RANK_ALWAYS,
	RANK_STATE,
	RANK_NOW, /* current activity */
	RANK_PHASE,
	RANK_TIME,
	RANK_CHART,
	RANK_ATTEMPT,
	RANK_LOGS,
	RANK_COST,
	RANK_METRICS,
	RANK_PAST, /* phases that are over or not begun */
	RANK_MORE,
};

struct screen_text_view {
	const struct screen *screen;
	const struct screen_frame *frame;
	json_t *status;
	struct row_layout layout;
};

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

/* Whole seconds, so that the text does not flicker. The caller frees it. */
static char *duration(int64_t ms)
{
	int64_t s = ms > 0 ? ms / 1000 : 0;

	return s < 60 ? mem_format("%lld s", (long long)s) : text_format_duration(s * 1000);
}

static int64_t since(const struct screen_text_view *view, int64_t begun_ms, int64_t ended_ms)
{
	return (ended_ms ? ended_ms : view->frame->now.ms) - begun_ms;
}

/* Rotating sign of a running phase or run. */
static void spinner(struct screen_text_view *view)
{
	static const char *const utf8[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" };
	static const char *const ascii[] = { "|", "/", "-", "\\" };
	uint64_t turn = (uint64_t)view->frame->now.ms / SCREEN_SPIN_MS;

	if (view->frame->style.utf8)
		row_layout_raw(&view->layout, MARK_RUN, utf8[turn % STK_LENGTH(utf8)], 1);
	else
		row_layout_raw(&view->layout, MARK_RUN, ascii[turn % STK_LENGTH(ascii)], 1);
	row_layout_add(&view->layout, MARK_NONE, " ");
}

static bool is_member(const struct screen_text_view *view, const char *key)
{
	return json_object_get(view->status, key) != NULL;
}

/* True if the run makes no progress: a speed means nothing. */
static bool halts(const struct screen_text_view *view)
{
	return is_member(view, "stopping") || is_member(view, "stalled");
}

/* Adds the reason for the halt, and its end if known. */
static void add_halt(struct screen_text_view *view)
{
	bool stops = is_member(view, "stopping");
	const json_t *halt = json_object_get(view->status, stops ? "stopping" : "stalled");
	const char *until = js_str(halt, "until"), *reason = js_str(halt, "reason");
	struct row_layout *layout = &view->layout;
	char at[WHEN_TEXT];
	AUTO(auto_free) char *time = NULL;

	if (!halt)
		return;
	time = duration((int64_t)(js_real(halt, "seconds", 0) * 1000));
	row_layout_row(layout, RANK_NOW, stops ? "stopping:" : "stalled:");
	if (stops)
		row_layout_add(layout, MARK_WARN, "for %s, waits for %s", time,
			       or_dash(js_str(halt, "waits_for")));
	else
		row_layout_add(layout, MARK_WARN, "%s for %s", or_dash(reason), time);
	if (until)
		row_layout_add(layout, MARK_NONE, stops ? " until %s" : ", restart at %s",
			       when_text(until, true, at));
	if (stops && reason)
		row_layout_add(layout, MARK_FAINT, ": %s", reason);
}

static void add_head(struct screen_text_view *view)
{
	const char *state = js_str(view->status, "state");
	const struct screen *screen = view->screen;
	int64_t until_ms = screen->status->until.ms;
	enum status_icon mark = text_style_icon_of_state(state, NULL);
	struct row_layout *layout = &view->layout;

	row_layout_row(layout, RANK_ALWAYS, "run:");
	row_layout_add(layout, MARK_NONE, "%s (%s on %s)", js_str(view->status, "run"),
		       or_dash(js_str(view->status, "name")),
		       or_dash(js_str(view->status, "engine")));
	row_layout_row(layout, RANK_STATE, "state:");
	if (mark == MARK_RUN)
		spinner(view);
	else
		row_layout_sign(layout, mark);
	row_layout_add(layout, halts(view) && mark == MARK_RUN ? MARK_WARN : mark, "%s",
		       mark != MARK_RUN              ? or_dash(state)
		       : is_member(view, "stopping") ? "stopping"
		       : is_member(view, "stalled")  ? "stalled"
						     : state);
	if (screen->begun_ms) {
		AUTO(auto_free)
		char *time = duration(since(view, screen->begun_ms, screen->ended_ms));

		row_layout_add(layout, MARK_NONE, ", %s, phase %s", time,
			       or_dash(js_str(view->status, "phase")));
	}
	if (js_str(view->status, "waiting_for")) {
		row_layout_row(layout, RANK_NOW, "waits for:");
		row_layout_add(layout, MARK_WAIT, "%s", js_str(view->status, "waiting_for"));
		if (until_ms > view->frame->now.ms) {
			AUTO(auto_free)
			char *left = duration(until_ms - view->frame->now.ms + 999);

			row_layout_add(layout, MARK_NONE, ", in %s", left);
		}
	}
}

/* --- phases --- */

/* Returns "cache" or "graphs" of the stage whose phase 1 is shown. */
static const json_t *served_member(const struct screen_text_view *view, const char *key)
{
	enum phase served = view->screen->served;
	const json_t *stage = served == PHASE_TRAIN
				      ? view->status
				      : json_object_get(view->status, flow_phase_names[served]);

	return json_object_get(stage, key);
}

/* Adds the facts of a phase besides its state and time. */
static void add_stage_facts(struct screen_text_view *view, enum phase phase)
{
	const struct stage *stage = &view->screen->stages[phase];
	const json_t *cache = served_member(view, "cache");
	const json_t *tasks = json_object_get(view->status, flow_phase_names[phase]);
	struct row_layout *layout = &view->layout;

	if (phase <= PHASE_VERIFY && view->screen->served != PHASE_TRAIN)
		row_layout_add(layout, MARK_NONE, ", for %s",
			       flow_phase_names[view->screen->served]);
	if (phase == PHASE_VERIFY && stage->ended_ms && json_object_get(cache, "done"))
		row_layout_add(layout, MARK_NONE, ", %lld of %lld graphs verified",
			       (long long)js_int(cache, "done", 0),
			       (long long)js_int(cache, "graphs", 0));
	if (flow_phases[phase].has_tasks && json_object_get(tasks, "tasks"))
		row_layout_add(layout, MARK_NONE, ", %lld of %lld tasks done",
			       (long long)js_int(tasks, "done", 0),
			       (long long)js_int(tasks, "tasks", 0));
	if (stage->attempt > 1 || (stage->attempt == 1 && stage->state == SCREEN_STAGE_FAILED))
		row_layout_add(layout, MARK_NONE, ", attempt %lld", (long long)stage->attempt);
}

static void add_stage(struct screen_text_view *view, enum phase phase)
{
	static const struct {
		enum status_icon mark;
		const char *word;
	} words[] = {
		[SCREEN_STAGE_TO_COME] = { MARK_NONE, "to come" },
		[SCREEN_STAGE_UNDER_WAY] = { MARK_RUN, "running for" },
		[SCREEN_STAGE_DONE] = { MARK_GOOD, "done in" },
		[SCREEN_STAGE_FAILED] = { MARK_BAD, "failed after" },
		[SCREEN_STAGE_SKIPPED] = { MARK_GOOD, "not needed: the cache is warm" },
	};
	const struct stage *stage = &view->screen->stages[phase];
	AUTO(auto_free) char *label = mem_format("%s:", flow_phase_names[phase]);
	bool now = stage->state == SCREEN_STAGE_UNDER_WAY;

	if (!stage->is_shown)
		return;
	row_layout_row(&view->layout, now ? RANK_PHASE : RANK_PAST, label);
	if (now)
		spinner(view);
	else
		row_layout_sign(&view->layout, words[stage->state].mark);
	row_layout_add(&view->layout, words[stage->state].mark, "%s", words[stage->state].word);
	if (stage->begun_ms) {
		AUTO(auto_free)
		char *time = duration(since(view, stage->begun_ms, stage->ended_ms));

		row_layout_add(&view->layout, MARK_NONE, " %s", time);
	}
	add_stage_facts(view, phase);
}

/* --- graphs and steps --- */

#define BAR_LEAST 8
#define BAR_MOST  40

/* Adds a progress bar if there is room. */
static void bar(struct screen_text_view *view, double share)
{
	struct row_layout *layout = &view->layout;
	size_t room = row_layout_room(layout), columns;
	AUTO(sb_release) struct sb done = SB_INIT, rest = SB_INIT;
	size_t full;

	if (room < BAR_LEAST + 2)
		return;
	columns = room - 2 < BAR_MOST ? room - 2 : BAR_MOST;
	full = (size_t)(fmin(fmax(share, 0), 1) * (double)columns);
	for (size_t i = 0; i < columns; i++) {
		struct sb *to = i < full ? &done : &rest;

		if (view->frame->style.utf8)
			sb_adds(to, i < full ? "━" : "─");
		else
			sb_adds(to, i < full ? "=" : "-");
	}
	row_layout_add(layout, MARK_NONE, "  ");
	row_layout_raw(layout, MARK_GOOD, done.text, full);
	row_layout_raw(layout, MARK_FAINT, rest.text, columns - full);
}

static void add_graphs(struct screen_text_view *view)
{
	const json_t *graphs = served_member(view, "graphs");
	int64_t named = js_int(graphs, "named", 0), failed = js_int(graphs, "failed", 0);
	int64_t compiled = js_int(graphs, "compiled", 0), hits = js_int(graphs, "hits", 0);
	int64_t done = compiled + hits;
	bool now = view->screen->stages[PHASE_PRECOMPILE].state == SCREEN_STAGE_UNDER_WAY;
	struct row_layout *layout = &view->layout;

	if (!graphs)
		return;
	row_layout_row(layout, now ? RANK_NOW : RANK_PAST, "graphs:");
	row_layout_add(layout, MARK_NONE, "%lld of %lld done", (long long)done, (long long)named);
	if (now && !view->screen->ahead)
		row_layout_add(layout, MARK_NONE, " so far");
	if (failed > 0)
		row_layout_add(layout, MARK_BAD, ", %lld failed", (long long)failed);
	row_layout_add(layout, MARK_NONE, " (%lld compiled, %lld found)", (long long)compiled,
		       (long long)hits);
	if (now && view->screen->ahead && named > 0)
		bar(view, (double)done / (double)named);
}

static void add_jit(struct screen_text_view *view)
{
	const json_t *jit = json_object_get(view->status, "jit");
	int64_t graphs = js_int(jit, "graphs", 0);
	enum status_icon mark = js_is(view->status, "mode", "jit") ? MARK_NONE : MARK_WARN;
	AUTO(auto_free) char *time = NULL;

	if (graphs <= 0)
		return;
	time = duration((int64_t)(js_real(jit, "seconds", 0) * 1000));
	row_layout_row(&view->layout, RANK_ATTEMPT, "phase 2:");
	if (mark == MARK_WARN)
		row_layout_sign(&view->layout, mark);
	row_layout_add(&view->layout, mark, "%lld graph%s compiled in training, %s",
		       (long long)graphs, graphs == 1 ? "" : "s", time);
	if (json_object_get(jit, "cost"))
		row_layout_add(&view->layout, MARK_NONE, ", %.2f USD", js_real(jit, "cost", 0));
}

/* Whole milliseconds; a time without end is a very long one. */
static int64_t time_left_ms(const struct screen_text_view *view, struct step_rate rate)
{
	const struct screen *screen = view->screen;
	double gone = (double)(view->frame->now.ms - screen->step_ms);
	double left = step_rate_ms(rate, (double)(screen->of - screen->step)) - gone;

	return (int64_t)(fmin(fmax(left, 0), 9e15) + 0.5);
}

static void add_time_left(struct screen_text_view *view)
{
	const struct screen *screen = view->screen;
	AUTO(auto_free) char *least = NULL, *most = NULL;
	struct step_rate slow, fast;

	step_rate_window_bounds(&screen->steps, screen->rate, &slow, &fast);
	least = duration(time_left_ms(view, fast));
	if (slow.steps <= 0) {
		row_layout_add(&view->layout, MARK_NONE, "%s left or more", least);
		return;
	}
	most = duration(time_left_ms(view, slow) + 999);
	if (strcmp(least, most) == 0)
		row_layout_add(&view->layout, MARK_NONE, "about %s left", least);
	else
		row_layout_add(&view->layout, MARK_NONE, "%s to %s left", least, most);
}

/* Least width of a terminal with speed and time in one row. */
#define SPEED_COLUMNS 60
static void add_speed(struct screen_text_view *view)
{
	const struct screen *screen = view->screen;
	struct row_layout *layout = &view->layout;
	bool timed = screen->of > screen->step, wide = layout->width >= SPEED_COLUMNS;
	AUTO(auto_free)
	char *speed = text_format_speed(step_rate_per_second(screen->rate), screen->unit);

	if (screen->stages[PHASE_TRAIN].state != SCREEN_STAGE_UNDER_WAY || halts(view) ||
	    !step_rate_is_known(screen->rate))
		return;
	row_layout_row(layout, timed && !wide ? RANK_METRICS : RANK_TIME, "speed:");
	row_layout_add(layout, MARK_NONE, "%s", speed);
	if (screen->samples_per_second > 0 && wide)
		row_layout_add(layout, MARK_NONE, ", %.4g samples/s", screen->samples_per_second);
	if (timed && wide)
		row_layout_add(layout, MARK_NONE, ", ");
	else if (timed)
		row_layout_row(layout, RANK_TIME, "time:");
	if (timed)
		add_time_left(view);
}

static void add_steps(struct screen_text_view *view)
{
	const struct screen *screen = view->screen;
	struct row_layout *layout = &view->layout;

	if (screen->step < 0)
		return;
	row_layout_row(layout, RANK_NOW, "progress:");
	row_layout_add(layout, MARK_NONE, "%s %lld", screen->unit ? screen->unit : "step",
		       (long long)screen->step);
	if (screen->of > 0) {
		double share = (double)screen->step / (double)screen->of;

		row_layout_add(layout, MARK_NONE, " of %lld, %.0f %%", (long long)screen->of,
			       floor(share * 100));
		bar(view, share);
	}
	add_speed(view);
}

static void add_value(struct row_layout *layout, const json_t *value)
{
	if (!value)
		row_layout_add(layout, MARK_NONE, "-");
	else if (json_is_string(value))
		row_layout_add(layout, MARK_WARN, "%s", json_string_value(value));
	else
		row_layout_add(layout, MARK_NONE, "%.4g", json_number_value(value));
}

/* Pads to a fixed column, so that the text after it does not move while numbers change. */
static void pad(struct row_layout *layout, size_t columns)
{
	row_layout_add(layout, MARK_NONE, "  ");
	while (layout->width - row_layout_room(layout) < columns && row_layout_room(layout) > 0)
		row_layout_add(layout, MARK_NONE, " ");
}

#define VALUE_COLUMNS  10
#define SPARKLINE_MOST 48
static void add_metrics(struct screen_text_view *view)
{
	const struct screen *screen = view->screen;
	struct row_layout *layout = &view->layout;
	AUTO(sb_release) struct sb sparkline = SB_INIT;
	const char *name, *gap = "";
	bool begun = false;
	json_t *value;

	if (screen->charted) {
		AUTO(auto_free) char *label = mem_format("%s:", screen->charted);
		size_t room, columns;

		row_layout_row(layout, RANK_CHART,
			       strlen(label) < ROW_LAYOUT_LABEL ? label : "metric:");
		add_value(layout, json_object_get(screen->metrics, screen->charted));
		pad(layout, ROW_LAYOUT_LABEL + VALUE_COLUMNS);
		room = row_layout_room(layout) < SPARKLINE_MOST ? row_layout_room(layout)
								: SPARKLINE_MOST;
		columns = sparkline_draw(&screen->chart, room, view->frame->style.utf8, &sparkline);
		row_layout_raw(layout, MARK_RUN, sparkline.text, columns);
		if (strlen(label) >= ROW_LAYOUT_LABEL)
			row_layout_add(layout, MARK_NONE, " %s", screen->charted);
	}
	json_object_foreach (screen->metrics, name, value) {
		if (strcmp(name, "step") == 0 ||
		    (screen->charted && strcmp(name, screen->charted) == 0))
			continue;
		if (!begun)
			row_layout_row(layout, RANK_METRICS, "metrics:");
		begun = true;
		row_layout_add(layout, MARK_NONE, "%s%s ", gap, name);
		add_value(layout, value);
		gap = "  ";
	}
}

/* --- attempts and the rest --- */

/* Adds the last non-blank line: in a traceback, that one names the error. */
static void add_evidence(struct row_layout *layout, const char *text)
{
	size_t end = text ? strlen(text) : 0, from;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (from = end; from > 0 && text[from - 1] != '\n';)
		from--;
	if (end - from > 4096)
		end = from + 4096; /* more than any row can show */
	if (end > from)
		row_layout_add(layout, MARK_FAINT, ": %.*s", (int)(end - from), text + from);
}

static void add_attempt(struct screen_text_view *view, const json_t *attempt, const char *label)
{
	const char *class = js_str(attempt, "class"), *action = js_str(attempt, "action");
	enum status_icon mark = text_style_icon_of_state(js_str(attempt, "state"), class);
	struct row_layout *layout = &view->layout;

	row_layout_row(layout, RANK_ATTEMPT, label);
	row_layout_sign(layout, mark);
	row_layout_add(layout, MARK_NONE, "%s %lld ", or_dash(js_str(attempt, "phase")),
		       (long long)js_int(attempt, "attempt", 0));
	row_layout_add(layout, mark, "%s", class ? class : or_dash(js_str(attempt, "state")));
	if (json_object_get(attempt, "seconds")) {
		AUTO(auto_free)
		char *time = duration((int64_t)(js_real(attempt, "seconds", 0) * 1000));

		row_layout_add(layout, MARK_NONE, " after %s", time);
	}
	if (action)
		row_layout_add(layout, MARK_NONE, ", %s", action);
	add_evidence(layout, js_str(attempt, "evidence"));
}

/* The newest few attempts that did not end well. */
#define ATTEMPTS_SHOWN 3
static void add_attempts(struct screen_text_view *view)
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
		row_layout_row(&view->layout, RANK_MORE, "");
		row_layout_add(&view->layout, MARK_NONE, "  and %zu before", before);
	}
}

/* The newest checkpoint that will not be used, unless a newer one will. */
static void add_passed(struct screen_text_view *view)
{
	const json_t *rows = json_object_get(view->status, "passed_over");
	const json_t *row = json_array_get(rows, json_array_size(rows) - 1);
	const char *url = js_str(row, "url");
	int64_t step = js_int(row, "step", INT64_MAX);

	if (!row || step < js_int(json_object_get(view->status, "checkpoint"), "step", -1))
		return;
	row_layout_row(&view->layout, RANK_ATTEMPT, "not used:");
	row_layout_add(&view->layout, MARK_WARN, "%s: %s",
		       url && strrchr(url, '/') ? strrchr(url, '/') + 1 : or_dash(url),
		       or_dash(js_str(row, "reason")));
}

static void add_bottom_rows(struct screen_text_view *view)
{
	const json_t *checkpoint = json_object_get(view->status, "checkpoint");
	const json_t *cost = json_object_get(view->status, "cost");
	const struct screen *screen = view->screen;
	struct row_layout *layout = &view->layout;

	if (checkpoint) {
		row_layout_row(layout, RANK_METRICS, "checkpoint:");
		row_layout_add(layout, MARK_NONE, "step %lld",
			       (long long)js_int(checkpoint, "step", 0));
	}
	add_passed(view);
	if (cost) {
		row_layout_row(layout, RANK_COST, "cost:");
		row_layout_add(layout, MARK_NONE, "%.2f USD so far", js_real(cost, "accrued", 0));
		if (json_object_get(cost, "estimated"))
			row_layout_add(layout, MARK_NONE, ", %.2f at the end",
				       js_real(cost, "estimated", 0));
	}
	row_layout_row(layout, RANK_LOGS, "logs:");
	row_layout_add(layout, MARK_NONE, "stoker logs -f %s", js_str(view->status, "run"));
	/* The folder is shown in full or not at all: a cut path is useless. */
	if (screen->folder && strlen(screen->folder) + 2 <= row_layout_room(layout))
		row_layout_add(layout, MARK_FAINT, "  %s", screen->folder);
}

static void add_question(struct screen_text_view *view)
{
	const char *question = view->frame->question;

	if (!question)
		return;
	if (strlen(question) > view->layout.width)
		question = view->frame->question_short;
	row_layout_row(&view->layout, RANK_ALWAYS, NULL);
	row_layout_add(&view->layout, MARK_WARN, "%s", question);
}

void screen_render(const struct screen *screen, const struct screen_frame *frame, struct sb *out)
{
	json_auto_t *status = status_json(screen->status, frame->now, true);
	struct screen_text_view view = { .screen = screen, .frame = frame, .status = status };

	row_layout_init(&view.layout, &frame->style, frame->width);
	add_head(&view);
	add_halt(&view);
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		add_stage(&view, (enum phase)phase);
		if (phase == PHASE_PRECOMPILE)
			add_graphs(&view);
	}
	add_jit(&view);
	add_steps(&view);
	add_metrics(&view);
	add_attempts(&view);
	add_bottom_rows(&view);
	add_question(&view);
	row_layout_finish(&view.layout, frame->height, out);
	row_layout_release(&view.layout);
}
