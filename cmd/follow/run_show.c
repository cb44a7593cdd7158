/* Events and outcome of a run, printed: see run_show.h. */
#include "cmd/follow/run_show.h"

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/event_text.h"
#include "cmd/view/status_text.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/report/screen.h"

void run_show_event(void *arg, const struct event *ev, json_t *row)
{
	AUTO(auto_free) char *sentence = NULL;
	enum status_icon mark = MARK_NONE;
	/* The time of the line before: a date is told when the day has changed. */
	static struct utc before;
	char at[WHEN_TEXT];

	(void)arg;
	if (out_is_json()) {
		out_json_exact(row);
		return;
	}
	/* Only with this event does the run exist, or is it driven by this process. */
	if (ev && ev->kind == EV_RUN_CREATED)
		out_note("run %s of %s", js_str(row, "run"), ev->name);
	if (ev && ev->kind == EV_DRIVER_TOOK_OVER && ev->epoch > 1)
		out_note("run %s is taken over", js_str(row, "run"));
	if (ev && !screen_scrolls(ev, &mark) && out_draws())
		return; /* the block shows it */
	sentence = ev ? event_sentence(ev, row) : NULL;
	if (ev && !sentence && out_is_verbose())
		sentence = mem_copy(event_rows[ev->kind].name);
	if (!sentence)
		return;
	out_event(when_instant(ev->at, before.ms > 0 ? before : clock_utc_now(),
			       out_err_is_terminal(), at),
		  mark, sentence);
	before = ev->at;
}

static int replay_row(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)arg;
	(void)ev;
	(void)err;
	out_json_exact(row);
	return 0;
}

int run_show_journal(struct journal *journal, const char *run, struct err **err)
{
	return out_is_json() ? journal_read(journal, run, 1, replay_row, NULL, err) : 0;
}

void run_show_wait(void *arg, const char *holder, const struct err *trouble, int64_t at_most_ms)
{
	AUTO(auto_free) char *time = text_format_duration(at_most_ms);

	(void)arg;
	if (trouble) {
		out_note("%s; trying again%s%s", trouble->message, at_most_ms > 0 ? " for " : "",
			 at_most_ms > 0 ? time : "");
		return;
	}
	out_note("%s has the run; if that driver is dead, this is certain in %s at most",
		 *holder ? holder : "another driver", time);
}

int run_show_outcome(struct journal *journal, const char *run, struct err **err)
{
	json_auto_t *status = NULL;
	int code;

	if (cmd_run_view_whole(journal, run, &status, err) < 0)
		return -1;
	code = (int)js_int(status, "exit_code", EXIT_DETACHED);
	if (code != EXIT_DETACHED && !out_is_json())
		status_text_print_summary(status);
	else if (js_is(status, "state", "paused"))
		out_note("run %s is paused after %s; 'stoker resume %s', or the same command with "
			 "a later phase or without --until, continues it",
			 run, js_str(status, "phase"), run);
	return code;
}

void run_show_space(const struct journal *journal)
{
	AUTO(err_freep) struct err *unreadable = NULL;
	AUTO(auto_free) char *size = NULL;
	uint64_t files = 0, bytes = 0;

	/* A journal in S3 would have to be listed, and fills up nobody's disk. */
	if (out_is_json() || journal_is_remote(journal) ||
	    fs_measure(journal_dir(journal), &files, &bytes, &unreadable) < 0 ||
	    bytes < RUN_SHOW_MUCH)
		return;
	size = text_format_bytes(bytes);
	out_note("the state directory '%s' holds %s", journal_dir(journal), size);
	out_note("'stoker list --sort size' shows what each run holds; 'stoker list --prune 30d' "
		 "forgets the runs that ended more than 30 days ago, but for the only copies of "
		 "checkpoints and outputs; checkpoint.keep in a spec keeps the newest checkpoints "
		 "only");
}
