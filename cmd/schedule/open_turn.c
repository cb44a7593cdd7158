/* The turn of a model that is under way: see open_turn.h. */
#include "cmd/schedule/open_turn.h"

#include <string.h>

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/run/notify_turn.h"

#define WALK_MAX 100 /* records that are looked at for the turn under way */

static int find_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev;
	(void)row;
	(void)err;
	*(bool *)arg = true;
	return 1;
}

int open_turn_look(struct journal *journal, const json_t *record, enum turn_run *ret,
		   struct err **err)
{
	const char *run = js_str(record, "run");
	json_auto_t *status = NULL;
	bool exists = false;

	*ret = json_object_get(record, "exit_code") ? TURN_RUN_ENDED : TURN_RUN_ABSENT;
	if (!run || *ret == TURN_RUN_ENDED)
		return 0;
	if (journal_read(journal, run, 1, find_event, &exists, err) < 0)
		return -1;
	if (!exists)
		return 0;
	if (cmd_run_view_as(journal, run, RUN_VIEW_TRUSTS, false, &status, err) < 0)
		return -1;
	if (json_object_get(status, "exit_code"))
		*ret = TURN_RUN_ENDED;
	else if (js_is(status, "state", "paused"))
		*ret = TURN_RUN_PAUSED;
	else
		*ret = json_is_object(json_object_get(status, "driver")) ? TURN_RUN_DRIVEN
									 : TURN_RUN_ALONE;
	return 0;
}

/* True if what was before this turn has ended: nothing was under way when it asked for data. */
static bool is_last(const json_t *record, enum turn_run state)
{
	return state == TURN_RUN_ENDED || js_is(record, "outcome", "nothing_new");
}

int open_turn_find(struct journal *journal, struct store *place, const struct utc *own,
		   struct open_turn *ret, struct err **err)
{
	struct utc before;

	*ret = (struct open_turn){ 0 };
	for (int i = 0; i < WALK_MAX; i++) {
		json_auto_t *record = NULL;
		int found = turn_before(place, i > 0 ? &before : NULL, &record, err);

		if (found <= 0)
			return found;
		before = turn_at(record);
		if (own && before.ms == own->ms)
			continue;
		if (js_is(record, "outcome", "queued") && !turn_is_left(record)) {
			ret->has_waiter = true;
			ret->waiter = before;
		}
		if (open_turn_look(journal, record, &ret->state, err) < 0)
			return -1;
		if (ret->state == TURN_RUN_DRIVEN || ret->state == TURN_RUN_ALONE) {
			snprintf(ret->run, sizeof ret->run, "%s", js_str(record, "run"));
			ret->at = before;
			return 1;
		}
		if (is_last(record, ret->state))
			return 0;
	}
	return 0;
}

void open_turn_tell(const json_t *plan, struct utc at, const char *occasion, const char *reason)
{
	const char *name = js_str(plan, "name");
	char utc[UTC_TEXT];
	AUTO(auto_free) char *id = mem_format("%s-%s", name, clock_utc_format(at, utc));
	AUTO(auto_free)
	char *text = mem_format(
		"%s: the turn of %.16sZ %s: %s", name, utc,
		strcmp(occasion, "skipped") == 0 ? "was skipped" : "has nothing new", reason);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *facts = json_object();
	const struct notify_turn turn = { .rules = json_object_get(plan, "notify"),
					  .spec_file = js_str(plan, "spec_file"),
					  .name = name,
					  .occasion = occasion,
					  .id = id,
					  .text = text,
					  .facts = facts };

	js_put_str(facts, "at", utc);
	js_put_str(facts, "reason", reason);
	if (notify_turn_send(&turn, &why) < 0)
		out_error(why);
}
