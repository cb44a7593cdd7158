/* Drawing on a terminal: see live.h. */
#include "cmd/screen/live.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/screen/out.h"
#include "jobs/report/screen.h"

#define FRAME_LEAST_MS 100               /* ms between two frames */
#define LINES_MAX      ((size_t)1 << 20) /* bytes kept while the terminal is blocked */

#define CURSOR_HIDE "\x1b[?25l"
#define CURSOR_SHOW "\x1b[?25h"
#define WRAP_OFF    "\x1b[?7l" /* if widths differ from ours, a row must not become two */
#define WRAP_ON     "\x1b[?7h"
#define ERASE_LINE  "\x1b[K"
#define ERASE_BELOW "\x1b[J"

struct live {
	struct loop *loop;
	struct screen *screen; /* NULL: the block is of another kind */
	live_render_fn render;
	void *arg;
	struct watch *timer, *resize, *suspend, *resume;
	struct mono drawn_at;
	struct sb lines;        /* to be written above the block with the next frame */
	struct sb rows;         /* rows of the block on the screen */
	size_t columns, height; /* size of the terminal at that time */
	bool shown;             /* the terminal is ours, rows are on it */
	bool content_unknown;   /* the screen's content is unknown */
	const char *question, *brief;
	struct termios before; /* terminal settings to restore */
};

/* --- restoring the terminal --- */

/* State for a signal handler that restores the terminal; `on` is set last. */
static struct {
	volatile sig_atomic_t on;
	struct termios before;
	char text[32];
	size_t len;
} rescue;

static const int fatal_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGSEGV,
				     SIGBUS, SIGILL, SIGFPE,  SIGABRT };

static void on_fatal(int signo)
{
	if (rescue.on) {
		rescue.on = 0;
		(void)!write(STDERR_FILENO, rescue.text, rescue.len);
		tcsetattr(STDERR_FILENO, TCSANOW, &rescue.before);
	}
	raise(signo); /* default action: the handler was reset */
}

/* Replaces only default handlers, which would end the process silently. */
static void set_handlers(void (*handler)(int), void (*where)(int))
{
	for (size_t i = 0; i < STK_LENGTH(fatal_signals); i++) {
		struct sigaction old, new = { .sa_handler = handler };

		new.sa_flags = handler == SIG_DFL ? 0 : (int)SA_RESETHAND;
		if (sigaction(fatal_signals[i], NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
		    old.sa_handler == where)
			sigaction(fatal_signals[i], &new, NULL);
	}
}

static size_t row_count(const struct sb *rows)
{
	size_t count = 1;

	if (rows->len == 0)
		return 0;
	for (size_t i = 0; i < rows->len; i++)
		count += rows->text[i] == '\n';
	return count;
}

/* A terminal that is not the controlling one has no background. */
static bool in_foreground(void)
{
	pid_t group = tcgetpgrp(STDERR_FILENO);

	return group < 0 || group == getpgrp();
}

/* Turns echo off and, while a question is open, reads key by key. */
static void set_keys(const struct live *live)
{
	struct termios keys = live->before;

	keys.c_lflag &= ~(tcflag_t)ECHO;
	if (live->question) {
		keys.c_lflag &= ~(tcflag_t)ICANON;
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
	}
	tcsetattr(STDERR_FILENO, TCSANOW, &keys);
}

/* Takes over the terminal. */
static void enter(struct live *live)
{
	if (tcgetattr(STDERR_FILENO, &live->before) < 0)
		return;
	rescue.before = live->before;
	live->shown = live->content_unknown = true;
	sb_clear(&live->rows);
	set_handlers(on_fatal, SIG_DFL);
	set_keys(live);
}

/* Moves the cursor below the block, which stays on the screen. */
static void step_out(const struct sb *rows, struct sb *out)
{
	size_t count = row_count(rows);

	if (count > 1)
		sb_addf(out, "\x1b[%zuB", count - 1);
	sb_adds(out, count ? "\r\n" CURSOR_SHOW : CURSOR_SHOW);
}

static void set_rescue(const struct sb *rows)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	rescue.on = 0;
	step_out(rows, &out);
	rescue.len = out.len < sizeof rescue.text ? out.len : sizeof rescue.text;
	memcpy(rescue.text, out.text, rescue.len);
	rescue.on = 1;
}

/* Gives the terminal back; `erase` removes the block. */
static void leave(struct live *live, bool erase)
{
	AUTO(sb_release) struct sb out = SB_INIT_MAX(2 * LINES_MAX);

	if (!live->shown)
		return;
	live->shown = false;
	if (!in_foreground())
		return;
	if (erase) {
		sb_adds(&out, "\r" ERASE_BELOW);
		sb_add(&out, live->lines.text, live->lines.len);
		sb_clear(&live->lines);
		sb_adds(&out, CURSOR_SHOW);
	} else {
		step_out(&live->rows, &out);
	}
	rescue.on = 0;
	out_terminal(out.text, out.len);
	tcsetattr(STDERR_FILENO, TCSANOW, &live->before);
	set_handlers(SIG_DFL, on_fatal);
}

/* --- frames --- */

/* Moves from row to row of a block and writes the changes. The cursor starts and ends in its
 * first row. */
static void draw_changes(const struct sb *before, const struct sb *after, struct sb *out)
{
	const char *old = before->len ? before->text : NULL, *new = after->text;
	size_t row = 0, at = 0, start = out->len;

	for (; new; row++) {
		size_t len = strcspn(new, "\n"), old_len = old ? strcspn(old, "\n") : 0;

		if (!old || len != old_len || memcmp(old, new, len) != 0) {
			for (; at < row; at++)
				sb_adds(out, "\r\n");
			sb_add(out, new, len);
			sb_adds(out, ERASE_LINE "\r");
		}
		old = old && old[old_len] ? old + old_len + 1 : NULL;
		new = new[len] ? new + len + 1 : NULL;
	}
	if (old) { /* the block has become shorter */
		for (; at < row; at++)
			sb_adds(out, "\r\n");
		sb_adds(out, ERASE_BELOW);
	}
	if (at > 0)
		sb_addf(out, "\x1b[%zuA", at);
	if (out->len > start)
		sb_adds(out, "\r");
}

static void render_frame(struct live *live, struct sb *out)
{
	struct screen_frame frame = {
		.style = *out_style_err(),
		/* The last column stays free, because terminals differ in when they wrap; one row
		 * stays free for scrolling messages. */
		.width = live->columns > 1 ? live->columns - 1 : 1,
		.height = live->height > 1 ? live->height - 1 : 1,
		.now = clock_utc_now(),
		.question = live->question,
		.question_short = live->brief,
	};

	live->render(live->arg, &frame, out);
}

/* Writes a whole frame in one write. */
static void draw(struct live *live)
{
	AUTO(sb_release) struct sb out = SB_INIT_MAX(2 * LINES_MAX), rows = SB_INIT;
	size_t columns, height, empty;

	out_size(&columns, &height);
	if (columns != live->columns || height != live->height)
		live->content_unknown = true;
	live->columns = columns;
	live->height = height;
	render_frame(live, &rows);
	if (live->content_unknown || live->lines.len)
		sb_adds(&out, CURSOR_HIDE "\r" ERASE_BELOW);
	sb_add(&out, live->lines.text, live->lines.len);
	if (live->content_unknown || live->lines.len)
		sb_clear(&live->rows);
	sb_adds(&out, WRAP_OFF);
	empty = out.len;
	draw_changes(&live->rows, &rows, &out);
	if (out.len == empty)
		return;
	sb_adds(&out, WRAP_ON);
	set_rescue(&rows);
	out_terminal(out.text, out.len);
	sb_clear(&live->lines);
	sb_release(&live->rows);
	live->rows = rows;
	rows = SB_INIT;
	live->content_unknown = false;
}

static void on_frame(void *arg)
{
	struct live *live = arg;

	live->timer = loop_after(live->loop, SCREEN_SPIN_MS, on_frame, live);
	if (!out_terminal_is_ready())
		return;
	live->drawn_at = clock_mono_now();
	if (!in_foreground()) {
		/* Messages are still shown, like those of any background program. */
		out_terminal(live->lines.text, live->lines.len);
		sb_clear(&live->lines);
		live->shown = false;
		return;
	}
	if (!live->shown)
		enter(live);
	if (live->shown)
		draw(live);
}

/* Schedules a frame for when the last one is old enough. */
static void draw_soon(struct live *live)
{
	int64_t age = clock_mono_now().ms - live->drawn_at.ms;

	loop_remove(live->loop, live->timer);
	live->timer = loop_after(live->loop, age < FRAME_LEAST_MS ? FRAME_LEAST_MS - age : 0,
				 on_frame, live);
}

static void buffer_line(void *arg, const char *line, size_t len)
{
	struct live *live = arg;

	sb_add(&live->lines, line, len);
	draw_soon(live);
}

/* --- signals --- */

static void on_resize(void *arg)
{
	struct live *live = arg;

	live->content_unknown = true;
	draw_soon(live);
}

static void on_suspend(void *arg)
{
	leave(arg, false);
	(void)!kill(getpid(), SIGSTOP);
}

/* The shell has written over the block. */
static void on_resume(void *arg)
{
	struct live *live = arg;

	if (live->shown)
		leave(live, false);
	draw_soon(live);
}

/* --- opening and closing --- */

/* False if SIGTSTP is ignored (no job control); it must stay ignored. */
static bool may_suspend(void)
{
	struct sigaction old;

	return sigaction(SIGTSTP, NULL, &old) == 0 && old.sa_handler != SIG_IGN;
}

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev)
		screen_add(arg, ev);
	return 0;
}

static void render_screen(void *arg, const struct screen_frame *frame, struct sb *out)
{
	screen_render(arg, frame, out);
}

static struct live *live_new(struct loop *loop, live_render_fn render, void *arg)
{
	struct live *live = mem_zero(1, sizeof *live);

	live->loop = loop;
	live->lines = SB_INIT_MAX(LINES_MAX);
	live->rows = SB_INIT;
	live->render = render;
	live->arg = arg;
	return live;
}

static void begin(struct live *live)
{
	live->resize = loop_on_signal(live->loop, SIGWINCH, on_resize, live);
	if (may_suspend())
		live->suspend = loop_on_signal(live->loop, SIGTSTP, on_suspend, live);
	live->resume = loop_on_signal(live->loop, SIGCONT, on_resume, live);
	out_divert(buffer_line, live);
	draw_soon(live);
}

int live_open(struct live **ret, struct journal *journal, const char *run, struct loop *loop,
	      struct err **err)
{
	struct screen *screen;

	*ret = NULL;
	if (!out_draws())
		return 0;
	screen = screen_new(run);
	*ret = live_new(loop, render_screen, screen);
	(*ret)->screen = screen;
	if (journal_read(journal, run, 1, add_event, screen, err) < 0) {
		live_close(ret);
		return -1;
	}
	begin(*ret);
	return 0;
}

void live_open_with(struct live **ret, struct loop *loop, live_render_fn render, void *arg)
{
	*ret = NULL;
	if (!out_draws())
		return;
	*ret = live_new(loop, render, arg);
	begin(*ret);
}

void live_close(struct live **live)
{
	struct live *l = *live;

	if (!l)
		return;
	out_divert(NULL, NULL);
	leave(l, true);
	out_terminal(l->lines.text, l->lines.len);
	loop_remove(l->loop, l->timer);
	loop_remove(l->loop, l->resize);
	loop_remove(l->loop, l->suspend);
	loop_remove(l->loop, l->resume);
	sb_release(&l->lines);
	sb_release(&l->rows);
	screen_freep(&l->screen);
	free(l);
	*live = NULL;
}

void live_event(struct live *live, const struct event *ev)
{
	if (!live)
		return;
	screen_add(live->screen, ev);
	draw_soon(live);
}

void live_progress_update(struct live *live, const struct event *ev)
{
	if (!live)
		return;
	screen_progress_update(live->screen, ev);
	draw_soon(live);
}

void live_ask(struct live *live, const char *question, const char *brief)
{
	if (!live)
		return;
	live->question = question;
	live->brief = brief;
	if (live->shown)
		set_keys(live);
	draw_soon(live);
}
