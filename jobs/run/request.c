/* Appending requests beside a living driver: see request.h. */
#include "jobs/run/request.h"

#include <unistd.h>

struct tail_view {
	struct utc at; /* time of the newest event */
	int64_t seq;
	bool ended, stop_requested;
};

static int see_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct tail_view *view = arg;

	(void)err;
	view->seq = js_int(row, "seq", view->seq);
	if (ev && ev->at.ms > view->at.ms)
		view->at = ev->at;
	view->ended = view->ended || (ev && ev->kind == EV_RUN_ENDED);
	view->stop_requested = view->stop_requested || (ev && ev->kind == EV_REQUEST_STOP);
	return 0;
}

int request_stop(struct journal *journal, const char *run, const char *reason,
		 enum request_result *ret, struct err **err)
{
	struct tail_view view = { 0 };
	struct event ev = { .kind = EV_REQUEST_STOP };
	char host[256] = "?";
	int64_t refused = 0;
	int appended = 0;

	gethostname(host, sizeof host - 1);
	EVENT_SET_STR(&ev, reason, reason);
	EVENT_SET_STR(&ev, host, host);
	EVENT_SET(&ev, pid, (int64_t)getpid());
	while (appended == 0) {
		if (journal_read(journal, run, view.seq + 1, see_event, &view, err) < 0)
			return -1;
		if (view.seq == 0)
			return err_set(err, EXIT_NOT_FOUND, "no run '%s'", run);
		*ret = view.ended ? REQUEST_TOO_LATE : REQUEST_REPEATED;
		if (view.ended || view.stop_requested)
			return 0;
		if (refused == view.seq + 1)
			return journal_contradicts(journal, run, refused, err);
		refused = ev.seq = view.seq + 1;
		ev.at = clock_utc_now();
		if (ev.at.ms < view.at.ms)
			ev.at = view.at;
		appended = journal_append(journal, run, &ev, err);
	}
	*ret = REQUEST_APPENDED;
	return appended < 0 ? -1 : 0;
}
