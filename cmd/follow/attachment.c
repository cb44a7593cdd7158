/* Following a run that another process drives: see attachment.h. */
#include "cmd/follow/attachment.h"

#include <signal.h>

#include "cmd/follow/follow.h"
#include "cmd/follow/run_show.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/live.h"
#include "cmd/screen/out.h"
#include "jobs/run/journal/lease.h"

/* Turns between two looks at the lease, and looks that must agree: a driver that has just taken
 * over may not have journalled it yet. */
#define LEASE_CHECK_TURNS 5
#define LEASE_CHECKS_GONE 2

struct attachment {
	struct follow follow; /* first: the turn gets this */
	const struct attach_options *options;
	bool silent; /* hides events from before the attachment */
	bool left, interrupted, told_alone;
	struct lease *lease; /* only inspected, never taken */
	struct lease_rules rules;
	int turns, gone;
	struct live *live; /* NULL: nothing is drawn */
};

static int show_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct attachment *attachment = arg;

	(void)err;
	attachment->turns = attachment->gone = 0;
	attachment->follow.next = js_int(row, "seq", attachment->follow.next) + 1;
	if (ev && ev->kind == EV_RUN_ENDED)
		attachment->follow.ended = true;
	if (ev && (ev->kind == EV_DRIVER_LEFT || ev->kind == EV_DRIVER_TOOK_OVER))
		attachment->left = ev->kind == EV_DRIVER_LEFT;
	if (ev)
		live_event(attachment->live, ev);
	if (!attachment->silent && !attachment->options->quiet)
		run_show_event(NULL, ev, row);
	return 0;
}

/* A killed driver journals nothing: only its lease shows that it has died. */
static int driver_died(struct attachment *attachment)
{
	struct follow *follow = &attachment->follow;
	int nobody;

	if (++attachment->turns < LEASE_CHECK_TURNS)
		return 0;
	attachment->turns = 0;
	nobody = lease_check(follow->journal, follow->run, &attachment->rules, &attachment->lease,
			     follow->err);
	attachment->gone = nobody > 0 ? attachment->gone + 1 : 0;
	attachment->left = attachment->gone >= LEASE_CHECKS_GONE;
	return nobody < 0 ? -1 : 0;
}

static void leave_alone(struct attachment *attachment)
{
	if (!attachment->options->patient) {
		loop_quit(attachment->follow.loop);
		return;
	}
	if (!attachment->told_alone)
		out_note("run %s has no driver; 'stoker resume %s' continues it",
			 attachment->follow.run, attachment->follow.run);
	attachment->told_alone = true;
}

static int attachment_turn(struct follow *follow)
{
	struct attachment *attachment = (struct attachment *)(void *)follow;

	if (journal_read(follow->journal, follow->run, follow->next, show_event, attachment,
			 follow->err) < 0)
		return -1;
	attachment->silent = false;
	if (!attachment->left && !follow->ended && driver_died(attachment) < 0)
		return -1;
	if (attachment->left && !follow->ended)
		leave_alone(attachment);
	return 0;
}

static void on_signal(void *arg)
{
	struct attachment *attachment = arg;

	attachment->interrupted = true;
	loop_quit(attachment->follow.loop);
}

static void on_timeout(void *arg)
{
	struct attachment *attachment = arg;

	out_note("run %s has not ended in time", attachment->follow.run);
	on_signal(arg);
}

static void attachment_release(struct attachment *attachment)
{
	live_close(&attachment->live);
	lease_freep(&attachment->lease);
}

int attachment_run(const struct args *args, struct journal *journal, const char *run,
		   const struct attach_options *options, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(attachment_release)
	struct attachment attachment = {
		.follow = { .journal = journal, .run = run, .next = 1, .turn = attachment_turn },
		.options = options,
		.silent = !options->from_the_start,
	};

	if (cmd_lease_rules(args, &attachment.rules, err) < 0 || loop_new(&loop, err) < 0)
		return -1;
	attachment.follow.loop = loop;
	loop_on_signal(loop, SIGINT, on_signal, &attachment);
	loop_on_signal(loop, SIGTERM, on_signal, &attachment);
	if (options->timeout_ms > 0)
		loop_after(loop, options->timeout_ms, on_timeout, &attachment);
	out_attend();
	if ((!options->plain && live_open(&attachment.live, journal, run, loop, err) < 0) ||
	    follow_run(&attachment.follow, err) < 0)
		return -1;
	live_close(&attachment.live);
	if (attachment.interrupted) {
		if (!attachment.left)
			out_note("the run continues; 'stoker attach %s' follows it", run);
		return EXIT_DETACHED;
	}
	out_keep_no_more();
	if (!attachment.follow.ended)
		return ATTACH_ALONE;
	return options->quiet ? cmd_run_exit_code(journal, run, err)
			      : run_show_outcome(journal, run, err);
}
