/* Claims of turns that are begun by hand: see hand_turn.h. */
#include "cmd/schedule/hand_turn.h"

#include <stdio.h>

#include "cmd/schedule/open_turn.h"

#define BEGINS_MS ((int64_t)10 * 60 * 1000)
#define TRIES     8 /* at a claim that others take too */

/* True if the process that has the claim may yet begin its run. */
static bool may_begin(const json_t *claim)
{
	int64_t age = clock_utc_now().ms - turn_at(claim).ms;

	return js_is(claim, "outcome", "run") && !turn_is_left(claim) && age > -BEGINS_MS &&
	       age < BEGINS_MS;
}

static int is_taken(struct journal *journal, const json_t *claim, bool *ret, struct err **err)
{
	enum turn_run state;

	if (open_turn_look(journal, claim, &state, err) < 0)
		return -1;
	*ret = state == TURN_RUN_DRIVEN || (state == TURN_RUN_ABSENT && may_begin(claim));
	return 0;
}

int hand_turn_claim(struct journal *journal, struct store *place, const char *name, const char *run,
		    char ret_other[JOURNAL_RUN_MAX], struct err **err)
{
	json_auto_t *own = turn_make(name, clock_utc_now(), "hand", "run", run, NULL);

	for (int i = 0; i < TRIES; i++) {
		json_auto_t *claim = NULL;
		char tag[STORE_TAG];
		bool taken = false;
		int done = turn_hand_read(place, &claim, tag, err);

		if (done < 0 || (done > 0 && !js_is(claim, "run", run) &&
				 is_taken(journal, claim, &taken, err) < 0))
			return -1;
		if (taken) {
			snprintf(ret_other, JOURNAL_RUN_MAX, "%s", js_str(claim, "run"));
			return 0;
		}
		done = turn_hand_write(place, done > 0 ? tag : NULL, own, err);
		if (done != 0)
			return done;
	}
	err_set(err, EXIT_UNREACHABLE, "turns of '%s' are begun all the time", store_url(place));
	return err_hint(err, "see which other processes retrain this model");
}

void hand_turn_release(struct store *place)
{
	AUTO(err_freep) struct err *unwritten = NULL;
	json_auto_t *claim = NULL;
	char tag[STORE_TAG];

	if (turn_hand_read(place, &claim, tag, &unwritten) <= 0)
		return;
	js_put_str(claim, "outcome", "nothing_new");
	(void)!turn_hand_write(place, tag, claim, &unwritten);
}
