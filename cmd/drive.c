/* Driving in the foreground: see drive.h. */
#include "cmd/drive.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd/event_text.h"
#include "cmd/live.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "cmd/status_text.h"
#include "jobs/base/text.h"
#include "jobs/report/screen.h"
#include "jobs/run/background.h"

#define LEASE_LEAST_MS 300

void drive_show_event(void *arg, const struct event *ev, json_t *row)
{
	AUTO(auto_free) char *sentence = NULL;
	enum look_mark mark = MARK_NONE;
	char at[UTC_TEXT];

	(void)arg;
	if (out_is_json()) {
		out_json(row);
		return;
	}
	/* Only now there is a run of this id, and only now we are its driver. */
	if (ev && ev->kind == EV_RUN_CREATED)
		out_note("run %s of %s", js_str(row, "run"), ev->name);
	if (ev && ev->kind == EV_DRIVER_TOOK_OVER && ev->epoch > 1)
		out_note("run %s is taken up", js_str(row, "run"));
	if (ev && !screen_scrolls(ev, &mark) && out_draws())
		return; /* the block says it */
	sentence = ev ? event_sentence(ev, row) : NULL;
	if (!sentence)
		return;
	utc_format(ev->at, at);
	at[19] = '\0';
	out_event(at + 11, mark, sentence);
}

static int replay_row(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)arg;
	(void)ev;
	(void)err;
	out_json(row);
	return 0;
}

int drive_replay(struct journal *journal, const char *run, struct err **err)
{
	return out_is_json() ? journal_read(journal, run, 1, replay_row, NULL, err) : 0;
}

void drive_show_wait(void *arg, const char *holder, int64_t at_most_ms)
{
	AUTO(auto_free) char *time = text_format_duration(at_most_ms);

	(void)arg;
	out_note("%s has the run; if it is dead, that is certain in %s at most",
		 *holder ? holder : "another driver", time);
}

int drive_lease_rules(const struct args *args, struct lease_rules *ret, struct err **err)
{
	const char *text = args->value[OPT_LEASE];

	*ret = LEASE_RULES;
	if (!text)
		return 0;
	if (!text_duration(text, &ret->valid_ms) || ret->valid_ms < LEASE_LEAST_MS) {
		err_set(err, EXIT_USAGE, "--lease needs a longer time, not '%s'", text);
		return err_hint(err, "leave it out");
	}
	ret->renew_ms = ret->valid_ms / 3;
	return 0;
}

/* --- interrupts --- */

struct interrupts {
	bool stop;   /* --on-interrupt stop */
	bool asking; /* a question is on the screen */
};

/* What the driver in the foreground is told: its `arg`. */
struct foreground {
	struct interrupts interrupts;
	bool shown; /* an event */
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
	drive_show_event(NULL, ev, row);
}

static void on_glimpse(void *arg, const struct event *ev)
{
	live_glimpse(((struct foreground *)arg)->live, ev);
}

static void on_away(void *arg, const struct err *why)
{
	AUTO(auto_free) char *text = err_format(why);

	(void)arg;
	out_note("%s; trying again", text);
	if (why->hint)
		out_hint("%s", why->hint);
}

/* Without a block the run goes on as well. */
static void on_loop(void *arg, struct loop *loop)
{
	struct foreground *foreground = arg;
	AUTO(err_freep) struct err *unreadable = NULL;

	live_close(&foreground->live);
	if (loop)
		(void)!live_open(&foreground->live, foreground->journal, foreground->run, loop,
				 &unreadable);
}

static void ask(struct foreground *foreground)
{
	static const char question[] = "leave the job running, stop it, or go on? [l/s/g]";

	foreground->interrupts.asking = true;
	if (foreground->live)
		live_ask(foreground->live, question, "[l]eave it running, [s]top it, [g]o on?");
	else
		out_note("%s", question);
}

static enum interrupt on_interrupt(void *arg, int signo)
{
	struct foreground *foreground = arg;
	struct interrupts *interrupts = &foreground->interrupts;
	enum interrupt policy = interrupts->stop ? INTERRUPT_STOP : INTERRUPT_DETACH;

	if (signo != SIGINT || out_is_json() || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return policy;
	/* A second Ctrl-C is an answer too. */
	if (interrupts->asking)
		return policy;
	ask(foreground);
	return INTERRUPT_ASK;
}

static enum interrupt on_answer(void *arg)
{
	struct foreground *foreground = arg;
	char answer[64];
	ssize_t len = read(STDIN_FILENO, answer, sizeof answer);
	enum interrupt what = INTERRUPT_ASK;

	if (len <= 0 || answer[0] == 'l' || answer[0] == 'L')
		what = INTERRUPT_DETACH;
	else if (answer[0] == 's' || answer[0] == 'S')
		what = INTERRUPT_STOP;
	else if (answer[0] == 'g' || answer[0] == 'G')
		what = INTERRUPT_GO_ON;
	else
		ask(foreground);
	foreground->interrupts.asking = what == INTERRUPT_ASK;
	if (what != INTERRUPT_ASK)
		live_ask(foreground->live, NULL, NULL);
	return what;
}

/* --- driving --- */

int drive_outcome(struct journal *journal, const char *run, struct err **err)
{
	json_auto_t *status = NULL;
	int code;

	if (run_view_whole(journal, run, &status, err) < 0)
		return -1;
	code = (int)js_int(status, "exit_code", EXIT_DETACHED);
	if (code != EXIT_DETACHED && !out_is_json())
		print_summary(status);
	return code;
}

int drive_run(const struct args *args, struct journal *journal, const char *run,
	      const struct plan *plan, struct err **err)
{
	const char *policy = args->value[OPT_ON_INTERRUPT];
	struct foreground foreground = {
		.interrupts.stop = policy && strcmp(policy, "stop") == 0,
		.journal = journal,
		.run = run,
	};
	struct lease_rules rules;
	struct driver_options options = {
		.run = run,
		.plan = plan,
		.on_wait = drive_show_wait,
		.lease = &rules,
		.on_event = on_event,
		.on_glimpse = out_draws() ? on_glimpse : NULL,
		.on_loop = on_loop,
		.on_away = on_away,
		.on_interrupt = on_interrupt,
		.on_answer = on_answer,
		.arg = &foreground,
	};
	AUTO(err_freep) struct err *unshown = NULL;
	enum exit_code exit_code = EXIT_DEFECT;

	if (drive_lease_rules(args, &rules, err) < 0)
		return -1;
	if (driver_run(journal, &options, &exit_code, err) < 0)
		return -1;
	/* It had ended before: its events are the answer. */
	if (!foreground.shown && drive_replay(journal, run, err) < 0)
		return -1;
	if (exit_code == EXIT_DETACHED) {
		out_note("detached: a job that is under way runs on; 'stoker resume %s' takes the "
			 "run up",
			 run);
		return EXIT_DETACHED;
	}
	/* How it ended is known; that it cannot be shown now changes nothing about that. */
	if (drive_outcome(journal, run, &unshown) < 0)
		out_note("run %s is over, but cannot be summed up now: %s", run, unshown->message);
	return (int)exit_code;
}

int drive_await(struct background *background, const char *run, struct err **err)
{
	pid_t pid;

	if (background_wait(background, &pid, err) < 0)
		return -1;
	out_note("run %s goes on in the background (driver pid %ld); 'stoker attach %s' follows it",
		 run, (long)pid, run);
	out_line("%s", run);
	return EXIT_DONE;
}

int drive_in_background(struct journal *journal, const char *run, struct err **err)
{
	AUTO(background_freep) struct background *background = NULL;

	if (background_start(journal, run, &background, err) < 0)
		return -1;
	return drive_await(background, run, err);
}
