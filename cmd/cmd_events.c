/* events: the journal of a run as it is written. */
#include "cmd/cmd.h"
#include "cmd/follow/follow.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"

static int print_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct follow *follow = arg;

	(void)err;
	follow->next = js_int(row, "seq", follow->next) + 1;
	if (ev && ev->kind == EV_RUN_ENDED)
		follow->ended = true;
	out_json_exact(row);
	return 0;
}

static int events_turn(struct follow *follow)
{
	return journal_read(follow->journal, follow->run, follow->next, print_event, follow,
			    follow->err);
}

int cmd_events(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	struct follow follow = { .run = run, .next = 1, .err = err, .turn = events_turn };

	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	follow.journal = journal;
	return args->given[OPT_FOLLOW] ? follow_run(&follow, err) : events_turn(&follow);
}
