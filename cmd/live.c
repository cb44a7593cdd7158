/* Drawing on a terminal: see live.h. */
#include "cmd/live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/out.h"
#include "jobs/report/screen.h"

#define FRAME_LEAST_MS 100               /* between two frames */
#define LINES_MAX      ((size_t)1 << 20) /* kept while the terminal takes nothing */

#define CURSOR_HIDE "\x1b[?25l"
#define CURSOR_SHOW "\x1b[?25h"
#define WRAP_OFF    "\x1b[?7l" /* where its widths are not ours, a row must not become two */
#define WRAP_ON     "\x1b[?7h"
#define ERASE_LINE  "\x1b[K"
#define ERASE_BELOW "\x1b[J"

struct live {
	struct loop *loop;
	struct screen *screen;
	struct watch *timer, *resize, *suspend, *resume;
	struct mono drawn_at;
	struct sb lines;        /* to go above the block with the next frame */
	struct sb rows;         /* of the block as it is shown */
	size_t columns, height; /* of the terminal then */
	bool shown;             /* the terminal is ours, rows are on it */
	bool anew;              /* what is on it cannot be relied on */
	const char *question, *brief;
	struct termios before; /* what the terminal did before it was ours */
};

/* --- every way out --- */

/* What a signal handler needs to put the terminal back; `on` is set last. */
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
	raise(signo); /* its usual effect: the handler was for once */
}

/* Only where a signal would end us without a word: others know what they do. */
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

static void put_terminal(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* A driver must not wait for a terminal that was stopped with Ctrl-S. */
static bool takes_text(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT);
}

/* A terminal that does not control us has no background. */
static bool in_foreground(void)
{
	pid_t group = tcgetpgrp(STDERR_FILENO);

	return group < 0 || group == getpgrp();
}

/* What is typed: unseen, and while a question is open key by key. */
static void set_keys(const struct live *live)
{
	struct termios keys = live->before;

	keys.c_lflag &= ~(tcflag_t)ECHO;
	if (live->question) {
		keys.c_lflag &= ~(tcflag_t)ICANON;
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
	}
	tcsetattr(STDERR_FILENO, TCSADRAIN, &keys);
}

/* The terminal is ours from here on. */
static void enter(struct live *live)
{
	if (tcgetattr(STDERR_FILENO, &live->before) < 0)
		return;
	rescue.before = live->before;
	live->shown = live->anew = true;
	sb_clear(&live->rows);
	set_handlers(on_fatal, SIG_DFL);
	set_keys(live);
}

/* How the cursor comes out of the block, with the block left as it is. */
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

/* It is the user's again; `erase`: without the block. */
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
	put_terminal(out.text, out.len);
	tcsetattr(STDERR_FILENO, TCSADRAIN, &live->before);
	set_handlers(SIG_DFL, on_fatal);
}

/* --- frames --- */

/* Move from row to row of a block, writing what has changed. The cursor is in its first
 * row, and there it ends. */
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
	if (old) { /* it has become shorter */
		for (; at < row; at++)
			sb_adds(out, "\r\n");
		sb_adds(out, ERASE_BELOW);
	}
	if (at > 0)
		sb_addf(out, "\x1b[%zuA", at);
	if (out->len > start)
		sb_adds(out, "\r");
}

static void render(struct live *live, struct sb *out)
{
	struct screen_frame frame = {
		.look = *out_look_err(),
		/* The last column stays free: there terminals differ in when they wrap, and
		 * of rows one stays for what scrolls. */
		.width = live->columns > 1 ? live->columns - 1 : 1,
		.height = live->height > 1 ? live->height - 1 : 1,
		.now = utc_now(),
		.question = live->question,
		.question_short = live->brief,
	};

	screen_render(live->screen, &frame, out);
}

/* All of it in one write. */
static void draw(struct live *live)
{
	AUTO(sb_release) struct sb out = SB_INIT_MAX(2 * LINES_MAX), rows = SB_INIT;
	size_t columns, height, empty;

	out_size(&columns, &height);
	if (columns != live->columns || height != live->height)
		live->anew = true;
	live->columns = columns;
	live->height = height;
	render(live, &rows);
	if (live->anew || live->lines.len)
		sb_adds(&out, CURSOR_HIDE "\r" ERASE_BELOW);
	sb_add(&out, live->lines.text, live->lines.len);
	if (live->anew || live->lines.len)
		sb_clear(&live->rows);
	sb_adds(&out, WRAP_OFF);
	empty = out.len;
	draw_changes(&live->rows, &rows, &out);
	if (out.len == empty)
		return;
	sb_adds(&out, WRAP_ON);
	set_rescue(&rows);
	put_terminal(out.text, out.len);
	sb_clear(&live->lines);
	sb_release(&live->rows);
	live->rows = rows;
	rows = SB_INIT;
	live->anew = false;
}

static void on_frame(void *arg)
{
	struct live *live = arg;

	live->timer = loop_after(live->loop, SCREEN_SPIN_MS, on_frame, live);
	if (!takes_text())
		return;
	live->drawn_at = mono_now();
	if (!in_foreground()) {
		/* Messages are still told, as a program in the background does. */
		put_terminal(live->lines.text, live->lines.len);
		sb_clear(&live->lines);
		live->shown = false;
		return;
	}
	if (!live->shown)
		enter(live);
	if (live->shown)
		draw(live);
}

/* As soon as the last frame is old enough. */
static void draw_soon(struct live *live)
{
	int64_t age = mono_now().ms - live->drawn_at.ms;

	loop_remove(live->loop, live->timer);
	live->timer = loop_after(live->loop, age < FRAME_LEAST_MS ? FRAME_LEAST_MS - age : 0,
				 on_frame, live);
}

static void take_line(void *arg, const char *line, size_t len)
{
	struct live *live = arg;

	sb_add(&live->lines, line, len);
	draw_soon(live);
}

/* --- signals --- */

static void on_resize(void *arg)
{
	struct live *live = arg;

	live->anew = true;
	draw_soon(live);
}

static void on_suspend(void *arg)
{
	leave(arg, false);
	(void)!kill(getpid(), SIGSTOP);
}

/* The shell has written where our block was. */
static void on_resume(void *arg)
{
	struct live *live = arg;

	if (live->shown)
		leave(live, false);
	draw_soon(live);
}

/* --- its life --- */

/* Without job control it is ignored, and must stay so. */
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

int live_open(struct live **ret, struct journal *journal, const char *run, struct loop *loop,
	      struct err **err)
{
	struct live *live;

	*ret = NULL;
	if (!out_draws())
		return 0;
	live = mem_zero(1, sizeof *live);
	live->loop = loop;
	live->lines = SB_INIT_MAX(LINES_MAX);
	live->rows = SB_INIT;
	live->screen = screen_new(run);
	*ret = live;
	if (journal_read(journal, run, 1, add_event, live->screen, err) < 0) {
		live_close(ret);
		return -1;
	}
	live->resize = loop_on_signal(loop, SIGWINCH, on_resize, live);
	if (may_suspend())
		live->suspend = loop_on_signal(loop, SIGTSTP, on_suspend, live);
	live->resume = loop_on_signal(loop, SIGCONT, on_resume, live);
	out_divert(take_line, live);
	draw_soon(live);
	return 0;
}

void live_close(struct live **live)
{
	struct live *l = *live;

	if (!l)
		return;
	out_divert(NULL, NULL);
	leave(l, true);
	put_terminal(l->lines.text, l->lines.len);
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

void live_glimpse(struct live *live, const struct event *ev)
{
	if (!live)
		return;
	screen_glimpse(live->screen, ev);
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
