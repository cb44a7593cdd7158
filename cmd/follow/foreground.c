/* Driving in the foreground: see foreground.h. */
#include "cmd/follow/foreground.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd/follow/run_show.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/live.h"
#include "cmd/screen/out.h"
#include "jobs/run/background.h"

/* --- interrupts --- */

struct interrupts {
	bool stop;   /* --on-interrupt stop */
	bool asking; /* a question is on the screen */
	enum interrupt on_hangup;
	bool hung_up;    /* to be continued by another driver */
	bool must_leave; /* a signal asked this process to end: a slow reader must not delay it */
};

/* State of the driver in the foreground; the `arg` of its callbacks. */
struct foreground {
	struct interrupts interrupts;
	bool shown; /* an event was shown */
	struct journal *journal;
	const char *run;
	struct live *live; /* NULL: nothing is drawn */
};

static void on_event(void *arg, const struct event *ev, json_t *row)
{
	struct foreground *foreground = arg;

	foreground->shown = true;
	if (ev)
		live_event(foreground->live, ev);
	run_show_event(NULL, ev, row);
	if (js_int(row, "seq", 0) % CMD_RUN_SUMMARISE_EVERY == 0)
		cmd_run_summarise(foreground->journal, foreground->run);
}

static void on_progress_update(void *arg, const struct event *ev)
{
	live_progress_update(((struct foreground *)arg)->live, ev);
}

static void on_away(void *arg, const struct err *why)
{
	AUTO(auto_free) char *text = err_format(why);

	(void)arg;
	out_note("%s; trying again", text);
	if (why->hint && !out_is_json())
		out_hint("%s", why->hint);
}

/* Opens the block for this loop; the run goes on without one if that fails. */
static void on_loop(void *arg, struct loop *loop)
{
	struct foreground *foreground = arg;
	AUTO(err_freep) struct err *unreadable = NULL;

	live_close(&foreground->live);
	out_keep_with(loop);
	if (loop)
		(void)!live_open(&foreground->live, foreground->journal, foreground->run, loop,
				 &unreadable);
}

static void ask_user(struct foreground *foreground)
{
	static const char question[] = "leave the job running, stop it, or go on? [l/s/g]";

	foreground->interrupts.asking = true;
	if (foreground->live)
		live_ask(foreground->live, question, "[l]eave it running, [s]top it, [g]o on?");
	else
		out_note("%s", question);
}

static enum interrupt on_hangup(struct interrupts *interrupts)
{
	interrupts->hung_up = interrupts->on_hangup == INTERRUPT_HAND_OVER;
	return interrupts->on_hangup;
}

static enum interrupt on_interrupt(void *arg, int signo)
{
	struct foreground *foreground = arg;
	struct interrupts *interrupts = &foreground->interrupts;
	enum interrupt policy = interrupts->stop ? INTERRUPT_STOP : INTERRUPT_DETACH;

	if (signo == SIGHUP)
		return on_hangup(interrupts);
	interrupts->must_leave = true;
	if (signo != SIGINT || out_is_json() || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return policy;
	/* A second Ctrl-C is an answer too. */
	if (interrupts->asking)
		return policy;
	ask_user(foreground);
	return INTERRUPT_ASK;
}

static enum interrupt on_answer(void *arg)
{
	struct foreground *foreground = arg;
	char answer[64];
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	/* SIGHUP may arrive after the end of the input. */
	bool gone = poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR));
	ssize_t len = read(STDIN_FILENO, answer, sizeof answer);
	enum interrupt what = INTERRUPT_ASK;

	if (len <= 0 && gone)
		what = on_hangup(&foreground->interrupts);
	else if (len <= 0 || answer[0] == 'l' || answer[0] == 'L')
		what = INTERRUPT_DETACH;
	else if (answer[0] == 's' || answer[0] == 'S')
		what = INTERRUPT_STOP;
	else if (answer[0] == 'g' || answer[0] == 'G')
		what = INTERRUPT_GO_ON;
	else
		ask_user(foreground);
	foreground->interrupts.asking = what == INTERRUPT_ASK;
	if (what != INTERRUPT_ASK)
		live_ask(foreground->live, NULL, NULL);
	return what;
}

/* --- driving --- */

/* Returns the effect of SIGHUP: none under nohup. */
static enum interrupt hangup_policy(const struct args *args)
{
	const char *policy = args->value[OPT_ON_HANGUP];
	struct sigaction now;

	if (policy && strcmp(policy, "detach") == 0)
		return INTERRUPT_DETACH;
	if (policy && strcmp(policy, "stop") == 0)
		return INTERRUPT_STOP;
	if (!policy && sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
		return INTERRUPT_GO_ON;
	return INTERRUPT_HAND_OVER;
}

/* Blocks SIGHUP from before a run is started until it has another driver: a signal that comes
 * before the driver handles it is taken later, and a shell may send a second one to its jobs.
 * `ret_before` is the previous mask. */
static void hold_hangup(sigset_t *ret_before)
{
	sigset_t hangup;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hangup, ret_before);
}

/* Returns true if a SIGHUP was pending; consumes it. */
static bool consume_hangup(void)
{
	const struct timespec at_once = { 0 };
	sigset_t hangup;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	return sigtimedwait(&hangup, NULL, &at_once) == SIGHUP;
}

static int await_background(struct background *background, const char *run, struct err **err)
{
	pid_t pid;

	if (background_wait(background, &pid, err) < 0)
		return -1;
	if (pid > 0)
		out_note("run %s continues in the background (driver pid %ld); 'stoker attach %s' "
			 "follows it",
			 run, (long)pid, run);
	else
		out_note("run %s has ended or is paused; 'stoker status %s' tells which", run, run);
	return 0;
}

/* Hands the run over to a driver in the background. If none can be started, this process goes on
 * as the driver. */
static int hand_over(struct journal *journal, struct driver_options *options,
		     enum exit_code *ret_exit, struct err **err)
{
	struct foreground *foreground = options->arg;
	AUTO(background_freep) struct background *background = NULL;
	AUTO(err_freep) struct err *why = NULL;

	*ret_exit = EXIT_DETACHED;
	if (background_start(journal, options->run, NULL, &background, &why) == 0 &&
	    await_background(background, options->run, &why) == 0)
		return 0;
	if (why->code == EXIT_BUSY)
		return 0;
	out_error(why);
	foreground->interrupts.hung_up = false;
	foreground->interrupts.on_hangup = INTERRUPT_GO_ON;
	return driver_run(journal, options, ret_exit, err);
}

/* True if the run needs a driver and this process no longer drives it. */
static bool is_left(struct journal *journal, const struct driver_options *options, int result,
		    enum exit_code exit_code, const struct err *why)
{
	struct interrupts *interrupts = &((struct foreground *)options->arg)->interrupts;
	AUTO(err_freep) struct err *unknown = NULL;

	/* A pending SIGHUP may be why the driver stopped retrying. */
	if (result < 0 && consume_hangup())
		(void)on_hangup(interrupts);
	if (!interrupts->hung_up)
		return false;
	if (result == 0)
		return exit_code == EXIT_DETACHED;
	return why->code != EXIT_BUSY &&
	       cmd_run_exit_code(journal, options->run, &unknown) == EXIT_DETACHED;
}

static int run_driver_here(struct journal *journal, struct driver_options *options,
			   enum exit_code *ret_exit, struct err **err)
{
	sigset_t before;
	int result;

	hold_hangup(&before);
	result = driver_run(journal, options, ret_exit, err);
	if (result == 0 && *ret_exit != EXIT_DETACHED)
		cmd_run_summarise(journal, options->run);
	if (is_left(journal, options, result, *ret_exit, *err)) {
		err_freep(err);
		result = hand_over(journal, options, ret_exit, err);
	}
	(void)consume_hangup();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* Reads --until into *ret. Returns `ret`; NULL: it is not given. */
static const enum phase *until_of(const struct args *args, enum phase *ret)
{
	const char *name = args->value[OPT_UNTIL];
	int phase = name ? flow_name_find(flow_phase_names, PHASE_COUNT, name) : -1;

	if (phase < 0)
		return NULL;
	*ret = (enum phase)phase;
	return ret;
}

int foreground_run(const struct args *args, struct journal *journal, const char *run,
		   const struct plan *plan, const json_t *inputs, struct err **err)
{
	const char *policy = args->value[OPT_ON_INTERRUPT];
	struct foreground foreground = {
		.interrupts.stop = policy && strcmp(policy, "stop") == 0,
		.interrupts.on_hangup = hangup_policy(args),
		.journal = journal,
		.run = run,
	};
	struct lease_rules rules;
	enum phase until;
	struct driver_options options = {
		.run = run,
		.plan = plan,
		.inputs = inputs,
		.pause_after = until_of(args, &until),
		.pauses_as_before = plan == NULL,
		.on_wait = run_show_wait,
		.lease = &rules,
		.on_event = on_event,
		.on_progress_update = out_draws() ? on_progress_update : NULL,
		.on_loop = on_loop,
		.on_away = on_away,
		.on_interrupt = on_interrupt,
		.on_answer = on_answer,
		.arg = &foreground,
	};
	AUTO(err_freep) struct err *unshown = NULL;
	enum exit_code exit_code = EXIT_DEFECT;
	int result;

	if (cmd_lease_rules(args, &rules, err) < 0)
		return -1;
	out_keep();
	result = run_driver_here(journal, &options, &exit_code, err);
	if (!foreground.interrupts.must_leave)
		out_keep_no_more();
	if (result < 0)
		return -1;
	/* The run had ended before: its events are the answer. */
	if (!foreground.shown && run_show_journal(journal, run, err) < 0)
		return -1;
	if (exit_code == EXIT_DETACHED && foreground.interrupts.hung_up)
		return EXIT_DETACHED;
	if (exit_code == EXIT_DETACHED) {
		out_note("detached; a started job runs on; 'stoker resume %s' continues the run",
			 run);
		return EXIT_DETACHED;
	}
	/* The outcome is known, even if it cannot be shown now. */
	if (run_show_outcome(journal, run, &unshown) < 0)
		out_note("run %s has ended, but no summary can be made now: %s", run,
			 unshown->message);
	if (foreground.shown)
		run_show_space(journal);
	return (int)exit_code;
}

int foreground_detach_await(struct background *background, const char *run, struct err **err)
{
	if (await_background(background, run, err) < 0)
		return -1;
	out_line("%s", run);
	return EXIT_DONE;
}

int foreground_detach(struct journal *journal, const char *run, const char *until, struct err **err)
{
	AUTO(background_freep) struct background *background = NULL;

	if (background_start(journal, run, until, &background, err) < 0)
		return -1;
	return foreground_detach_await(background, run, err);
}
