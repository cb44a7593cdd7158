/* Turns of a follower: see follow.h. */
#include "cmd/follow/follow.h"

#define FOLLOW_MS        200
#define FOLLOW_REMOTE_MS 3000 /* if each turn is a request to a service */

static void on_turn(void *arg)
{
	struct follow *follow = arg;

	/* Read before the turn: if the run has ended, everything it wrote is there. */
	bool ended = follow->ended;

	follow->more = false;
	follow->result = follow->turn(follow);
	if (follow->result < 0 || (ended && !follow->more))
		loop_quit(follow->loop);
	else if (follow->more)
		loop_after(follow->loop, 0, on_turn, follow);
	else
		loop_after(follow->loop,
			   journal_is_remote(follow->journal) ? FOLLOW_REMOTE_MS : FOLLOW_MS,
			   on_turn, follow);
}

int follow_run(struct follow *follow, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;

	if (!follow->loop) {
		if (loop_new(&loop, err) < 0)
			return -1;
		follow->loop = loop;
	}
	follow->err = err;
	loop_after(follow->loop, 0, on_turn, follow);
	if (loop_run(follow->loop, err) < 0)
		return -1;
	return follow->result;
}
