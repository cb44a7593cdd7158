/* attach, resume, stop: what is done with a run that is there. */
#include <signal.h>
#include <string.h>

#include "cmd/drive.h"
#include "cmd/follow.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "jobs/run/lease.h"
#include "jobs/run/request.h"

/* --- attach --- */

#define PROBE_MS 5000 /* how often we ask whether the driver lives */

struct attachment {
	struct follow follow; /* first: the turn gets this */
	struct mono probed;   /* ms 0: never */
	bool silent;          /* what is old news to a person */
	bool left, interrupted;
};

/* A lease that can be had is a lease that nobody holds. */
static bool is_driven(const struct follow *follow)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *busy = NULL;
	int64_t wait_ms;

	return lease_try(follow->journal, follow->run, NULL, &lease, &wait_ms, &busy) != 1;
}

static int show_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct attachment *attachment = arg;

	(void)err;
	attachment->follow.next = js_int(row, "seq", attachment->follow.next) + 1;
	if (ev && ev->kind == EV_RUN_ENDED)
		attachment->follow.ended = true;
	if (ev && (ev->kind == EV_DRIVER_LEFT || ev->kind == EV_DRIVER_TOOK_OVER))
		attachment->left = ev->kind == EV_DRIVER_LEFT;
	if (!attachment->silent)
		drive_show_event(NULL, ev, row);
	return 0;
}

static int attachment_turn(struct follow *follow)
{
	struct attachment *attachment = (struct attachment *)(void *)follow;

	if (journal_read(follow->journal, follow->run, follow->next, show_event, attachment,
			 follow->err) < 0)
		return -1;
	attachment->silent = false;
	if (follow->ended)
		return 0;
	if (attachment->probed.ms == 0 || mono_now().ms - attachment->probed.ms >= PROBE_MS) {
		attachment->left = attachment->left || !is_driven(follow);
		attachment->probed = mono_now();
	}
	if (attachment->left)
		loop_quit(follow->loop);
	return 0;
}

static void on_signal(void *arg)
{
	struct attachment *attachment = arg;

	attachment->interrupted = true;
	loop_quit(attachment->follow.loop);
}

/* Follow what another process drives. The run's exit code, or -1. */
static int attach(struct journal *journal, const char *run, bool from_the_start, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;
	struct attachment attachment = {
		.follow = { .journal = journal, .run = run, .next = 1, .turn = attachment_turn },
		.silent = !from_the_start,
	};

	if (loop_new(&loop, err) < 0)
		return -1;
	attachment.follow.loop = loop;
	loop_on_signal(loop, SIGINT, on_signal, &attachment);
	loop_on_signal(loop, SIGTERM, on_signal, &attachment);
	if (follow_run(&attachment.follow, err) < 0)
		return -1;
	if (attachment.interrupted) {
		out_note("the run goes on; 'stoker attach %s' follows it again", run);
		return EXIT_DETACHED;
	}
	if (!attachment.follow.ended) {
		err_set(err, EXIT_REFUSED, "nobody drives run %s any more", run);
		return err_hint(err, "'stoker resume %s' takes it up", run);
	}
	return drive_outcome(journal, run, err);
}

static int open_run(const struct args *args, enum journal_mode mode, struct journal **ret,
		    char run[JOURNAL_RUN_MAX], struct err **err)
{
	if (journal_open(args->value[OPT_STATE], mode, ret, err) < 0)
		return -1;
	return journal_resolve(*ret, args->operands[0], run, err);
}

int cmd_attach(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];

	if (open_run(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	return attach(journal, run, out_is_json(), err);
}

/* --- resume --- */

static int collect_open(void *arg, const char *run, struct err **err)
{
	(void)err;
	json_array_append_new(arg, json_string(run));
	return 0;
}

/* A driver in the background for every run that goes on and has none. What
 * keeps one run from going on does not keep the others. */
static int resume_all(struct journal *journal, struct err **err)
{
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;
	int worst = EXIT_DONE;

	if (journal_runs(journal, collect_open, runs, err) < 0)
		return -1;
	json_array_foreach (runs, i, run) {
		const char *id = json_string_value(run);
		AUTO(err_freep) struct err *why = NULL;
		int code = run_exit_code(journal, id, &why);

		if (code == EXIT_DETACHED)
			code = drive_in_background(journal, id, &why);
		else if (code >= 0)
			continue;
		if (code >= 0 || why->code == EXIT_BUSY)
			continue;
		out_error(why);
		worst = (int)why->code;
	}
	return worst;
}

int cmd_resume(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	int code;

	if (args->given[OPT_ALL] == (args->operand_count > 0)) {
		err_set(err, EXIT_USAGE, "resume takes a RUN or --all");
		return err_hint(err, "'stoker list' shows all runs");
	}
	if (args->given[OPT_ALL]) {
		if (journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
			return -1;
		return resume_all(journal, err);
	}
	if (open_run(args, JOURNAL_WRITE, &journal, run, err) < 0)
		return -1;
	if (!args->given[OPT_DETACH])
		return drive_run(args, journal, run, NULL, err);
	code = run_exit_code(journal, run, err);
	return code == EXIT_DETACHED ? drive_in_background(journal, run, err) : code;
}

/* --- stop --- */

int cmd_stop(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *busy = NULL;
	char run[JOURNAL_RUN_MAX];
	enum request_result result;
	int code;

	if (open_run(args, JOURNAL_WRITE, &journal, run, err) < 0 ||
	    request_stop(journal, run, args->value[OPT_REASON], &result, err) < 0)
		return -1;
	if (result != REQUEST_TOO_LATE) {
		/* Without a driver there is nobody else to do it. */
		code = drive_run(args, journal, run, NULL, &busy);
		if (code < 0 && busy->code != EXIT_BUSY) {
			*err = TAKE(busy);
			return -1;
		}
		if (code < 0)
			code = attach(journal, run, false, err);
	} else {
		code = run_exit_code(journal, run, err);
	}
	if (code == EXIT_STOPPED)
		return EXIT_DONE;
	if (code >= 0 && code != EXIT_DETACHED) {
		out_note("run %s had ended before it could be stopped", run);
		return EXIT_DONE;
	}
	return code;
}
