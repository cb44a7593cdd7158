/* A driver before a terminal, and an id that is taken, with each of its calls failing in turn: see
 * strikes.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/mem.h"
#include "jobs/base/process/loop.h"
#include "jobs/run/driver.h"
#include "jobs/run/journal/journal.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/operators.h"
#include "tests/world/play.h"
#include "tests/world/strikes.h"
#include "tests/world/tree.h"

#define WORKSPACE "/srv/user/work"

/* ---- a terminal ---- */

/* The events at the terminal, once the first numbers of the training are shown. */
struct terminal {
	int signo;                /* comes to the driver; 0: none */
	enum interrupt reaction;  /* of who looks on */
	const char *stop_file;    /* lies in the workspace; NULL: none */
	bool disk_is_full;        /* for the journal */
	enum event_kind recorded; /* what comes of it, and the reason that is told */
	const char *reason;
};

static const struct terminal *terminal;
static bool disk_is_full; /* for the journal, from then on */

/* Of one driver. */
struct look {
	struct loop *loop;
	bool shown;
};

static void on_loop(void *arg, struct loop *loop)
{
	((struct look *)arg)->loop = loop;
}

static void on_numbers(void *arg, const struct event *ev)
{
	struct look *look = arg;

	if (look->shown || !EVENT_HAS(ev, step))
		return;
	look->shown = true;
	disk_is_full = terminal->disk_is_full;
	if (terminal->stop_file) {
		AUTO(auto_free)
		char *path = mem_format(WORKSPACE "/runs/%s/stop.json", self->argv[2]);

		tree_put(self->machine, path, terminal->stop_file, strlen(terminal->stop_file),
			 0600);
	}
	if (terminal->signo)
		kill(getpid(), terminal->signo);
}

static void lose_patience(void *arg)
{
	(void)arg;
	kill(getpid(), terminal->signo);
}

/* A user who asked for a stop, and hears that something does not answer, waits no longer than
 * that. */
static void on_away(void *arg, const struct err *why)
{
	const struct look *look = arg;

	(void)why;
	if (terminal->disk_is_full)
		(void)!loop_after(look->loop, 20000, lose_patience, NULL);
}

static enum interrupt on_interrupt(void *arg, int signo)
{
	(void)arg;
	return signo == terminal->signo ? terminal->reaction : INTERRUPT_GO_ON;
}

/* A letter at a time: y. */
static enum interrupt on_answer(void *arg)
{
	char letter = 0;

	(void)arg;
	if (read(0, &letter, 1) < 0)
		return INTERRUPT_ASK;
	return letter == 'y' ? INTERRUPT_STOP : INTERRUPT_ASK;
}

static int drive_before(const char *run, const struct terminal *given, struct err **err)
{
	struct look look = { 0 };
	const struct driver_options options = {
		.run = run,
		.on_loop = on_loop,
		.on_progress_update = on_numbers,
		.on_away = on_away,
		.on_interrupt = given->reaction == INTERRUPT_DETACH ? NULL : on_interrupt,
		.on_answer = on_answer,
		.arg = &look,
	};
	int result;

	terminal = given;
	result = operator_drive(&options, STRIKES_SPEC, err);
	disk_is_full = false;
	if (look.loop) {
		err_freep(err);
		return err_set(err, EXIT_DEFECT, "its loop is gone, and nobody was told");
	}
	return result;
}

/* The answer lies on the terminal: a letter that says nothing, and yes. */
static int be_asked(const char *run, struct err **err)
{
	static const struct terminal asks = { .signo = SIGINT,
					      .reaction = INTERRUPT_ASK,
					      .recorded = EV_REQUEST_STOP,
					      .reason = "interrupted" };
	int result, ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, EXIT_REFUSED, "there is no terminal");
	(void)!write(ends[1], "?y", 2);
	dup2(ends[0], 0);
	close(ends[0]);
	result = drive_before(run, &asks, err);
	close(ends[1]);
	return result;
}

static int hang_up(const char *run, struct err **err)
{
	static const struct terminal hangs_up = {
		.signo = SIGHUP,
		.reaction = INTERRUPT_HAND_OVER,
		.recorded = EV_DRIVER_LEFT,
		.reason = "the terminal hung up: a driver in the background follows",
	};

	return drive_before(run, &hangs_up, err);
}

static int detach(const char *run, struct err **err)
{
	static const struct terminal detaches = { .signo = SIGTERM,
						  .reaction = INTERRUPT_DETACH,
						  .recorded = EV_DRIVER_LEFT,
						  .reason = "interrupted: the job runs on" };

	return drive_before(run, &detaches, err);
}

static int be_told(const char *run, struct err **err)
{
	static const struct terminal tells = {
		.signo = SIGUSR1,
		.reaction = INTERRUPT_GO_ON,
		.recorded = EV_REQUEST_STOP,
		.reason = "'stoker stop', which could not journal it",
	};

	return drive_before(run, &tells, err);
}

static int find_stop(const char *run, struct err **err)
{
	static const struct terminal finds = { .signo = SIGHUP,
					       .reaction = INTERRUPT_GO_ON,
					       .stop_file = "{\"v\":1,\"reason\":\"enough\"}",
					       .recorded = EV_REQUEST_STOP,
					       .reason = "enough" };

	return drive_before(run, &finds, err);
}

/* A stop that the journal does not take, and the user's second Ctrl-C. */
static int give_up(const char *run, struct err **err)
{
	static const struct terminal gives_up = { .signo = SIGINT,
						  .reaction = INTERRUPT_STOP,
						  .disk_is_full = true,
						  .recorded = EV_RUN_ENDED };
	int result = drive_before(run, &gives_up, err);

	if (result >= 0 || !strstr((*err)->message, "the stop could not be recorded yet"))
		return self->refused > 0 || result < 0
			       ? result
			       : err_set(err, EXIT_REFUSED, "the user was not heard: %d", result);
	err_freep(err);
	return 0;
}

static int refuse_journal(enum call_id id, const char *path)
{
	return disk_is_full && id == CALL_pwrite && path && strstr(path, "journal.db") ? ENOSPC : 0;
}

struct seen_end {
	bool ended, recorded;
};

static int see_end(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct seen_end *seen = arg;

	(void)row, (void)err;
	if (!ev)
		return 0;
	seen->ended |= ev->kind == EV_RUN_ENDED;
	seen->recorded |= ev->kind == terminal->recorded &&
			  (!terminal->reason ||
			   (EVENT_HAS(ev, reason) && strcmp(ev->reason, terminal->reason) == 0));
	return 0;
}

static int check_end(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(auto_free) char *stop_file = mem_format(WORKSPACE "/runs/%s/stop.json", run);
	struct seen_end seen = { 0 };

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_end, &seen, err) < 0)
		return -1;
	if (!seen.ended)
		return err_set(err, EXIT_REFUSED, "the run has not ended");
	if (!seen.recorded && !strikes_have_hit())
		return err_set(err, EXIT_REFUSED, "nobody was heard");
	if (!strikes_have_hit() && access(stop_file, F_OK) == 0)
		return err_set(err, EXIT_REFUSED, "the request for a stop is left");
	return 0;
}

/* ---- an id that is taken ---- */

static void keep_data(struct schedule *places)
{
	AUTO(auto_free) char *path = mem_format("/srv/user/state/runs/%s/kept.json", places->run);

	tree_put(places->hosts[0], path, "{}", 2, 0600);
}

static int begin_anew(const char *run, struct err **err)
{
	if (operator_begin(run, STRIKES_SPEC, err) == 0)
		return err_set(err, EXIT_DEFECT, "its kept data would be taken for the new run's");
	if ((*err)->code == EXIT_SPEC && strstr((*err)->message, "was removed"))
		err_freep(err);
	return *err ? -1 : 0;
}

static const struct strike_action actions[] = {
#define TERMINAL(called, ...)                                                                      \
	{                                                                                          \
		.name = called, .scenario = "sqlite", .act = __VA_ARGS__, .again = strikes_drive,  \
		.check = check_end, .share = 20                                                    \
	}
	TERMINAL("asked", be_asked),
	TERMINAL("hung up", hang_up),
	TERMINAL("detached", detach),
	TERMINAL("told to stop", be_told),
	TERMINAL("stop found", find_stop),
	TERMINAL("stop unrecorded", give_up, .refused = refuse_journal),
#undef TERMINAL
	{ .name = "begin anew",
	  .scenario = "sqlite",
	  .before = keep_data,
	  .act = begin_anew,
	  .share = 5 },
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
