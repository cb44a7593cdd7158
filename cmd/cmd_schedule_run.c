/* schedule run: what an alarm calls. Decides what is due, and begins it, or takes it over. */
#include <string.h>

#include "aws/credentials/settings.h"
#include "cmd/cmd.h"
#include "cmd/follow/foreground.h"
#include "cmd/follow/run_view.h"
#include "cmd/follow/start.h"
#include "cmd/schedule/open_turn.h"
#include "cmd/schedule/schedule_times.h"
#include "cmd/screen/out.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/run/request.h"
#include "jobs/run/schedule/schedule_record.h"

#define LOOK_MS        500
#define LOOK_REMOTE_MS 5000
/* The delay up to which an alarm is on time with catch_up: none: a scheduler's own. */
#define ON_TIME_MS (10 * 60 * 1000)

/* An alarm that is being heeded. */
struct ring {
	const struct args *args;
	struct journal *journal;
	char *url;
	json_t *pin;
	struct store *place;
	struct schedule_times times;
	struct utc at;
	struct utc due; /* the due time that is decided now */
	bool waits;     /* this process has queued it */
	int code;       /* of a turn that was taken over */
};

static void ring_release(struct ring *ring)
{
	schedule_times_release(&ring->times);
	store_freep(&ring->place);
	json_decref(ring->pin);
	auto_free(&ring->url);
	journal_freep(&ring->journal);
}

/* The result of a step that asks for another look; an exit code (from 0 on) ends the work. */
#define AGAIN (-2)

static const char *name_of(const struct ring *ring)
{
	return js_str(ring->pin, "name");
}

/* ---- words ---- */

/* Prints what was decided: a line, or with --json an object. */
static void print_decision(const struct ring *ring, const char *decided, const char *reason)
{
	json_auto_t *line = json_object();
	struct due next;
	char utc[UTC_TEXT], due[UTC_TEXT] = "";

	if (ring->due.ms > 0)
		clock_utc_format(ring->due, due);
	js_put_str(line, "name", name_of(ring));
	js_put_str(line, "decided", decided);
	js_put_str(line, "due", *due ? due : NULL);
	js_put_str(line, "reason", reason);
	if (due_next(&ring->times.cron, &ring->times.zone.zone, ring->at.ms / 1000, &next))
		js_put_str(line, "next", clock_utc_format((struct utc){ next.at * 1000 }, utc));
	if (out_is_json())
		out_json(line);
	else
		out_line("%s: %s: %s; next due %.16sZ", name_of(ring),
			 strcmp(decided, "not_due") == 0 ? "not due" : decided, reason,
			 js_str(line, "next") ? js_str(line, "next") : "never");
}

static int not_due(const struct ring *ring, const char *reason)
{
	print_decision(ring, "not_due", reason);
	return EXIT_DONE;
}

/* ---- beginning, taking over ---- */

static bool is_final(int code)
{
	return code >= 0 && code != EXIT_DETACHED;
}

/* Notes in its record that a turn has ended, so that later alarms need not look for its run. */
static int note_end(struct ring *ring, struct utc at, int code, struct err **err)
{
	json_auto_t *members = json_object();

	if (!is_final(code))
		return 0;
	js_put(members, "exit_code", json_integer(code));
	return turn_update(ring->place, at, "run", members, err) < 0 ? -1 : 0;
}

static int begin(struct ring *ring, struct err **err)
{
	json_auto_t *given = json_object();
	char utc[UTC_TEXT], run[JOURNAL_RUN_MAX];
	const struct start_how how = { .retrain = true,
				       .turn = given,
				       .id = run,
				       .plan = json_object_get(ring->pin, "plan") };
	bool nothing_new = false;
	int code;

	turn_run_id(name_of(ring), ring->due, run);
	js_put_str(given, "name", name_of(ring));
	js_put_str(given, "due", clock_utc_format(ring->due, utc));
	js_put_str(given, "at", clock_utc_format(ring->at, utc));
	if (schedule_pin_restore(ring->url, ring->pin, err) < 0)
		return -1;
	out_note("turn of %s: run %s", js_str(given, "due"), run);
	code = start_run(ring->args, &how, &nothing_new, err);
	if (code < 0 && (*err)->code == EXIT_BUSY) {
		err_freep(err);
		return not_due(ring, "another alarm has begun it");
	}
	ring->code = EXIT_DONE;
	return nothing_new || note_end(ring, ring->due, code, err) == 0 ? code : -1;
}

/* Goes on with a turn that has no driver, and then looks what has become due meanwhile. Returns
 * EXIT_BUSY without an error if it has one: on a shared store only a try shows that. */
static int take_over(struct ring *ring, struct utc at, const char *run, enum turn_run state,
		     struct err **err)
{
	int code;

	if (state != TURN_RUN_ALONE && !journal_is_remote(ring->journal))
		return EXIT_BUSY;
	if (state == TURN_RUN_ALONE)
		out_note("run %s of the turn of %.16sZ has no driver", run,
			 clock_utc_format(at, (char[UTC_TEXT]){ 0 }));
	code = foreground_run(ring->args, ring->journal, run, NULL, NULL, err);
	if (code < 0 && (*err)->code == EXIT_BUSY) {
		err_freep(err);
		return EXIT_BUSY;
	}
	if (!is_final(code))
		return code;
	ring->code = code;
	return note_end(ring, at, code, err) < 0 ? -1 : AGAIN;
}

/* ---- overlapping turns ---- */

/* Waits until the run has ended, or has no driver. */
static int await_end(const struct ring *ring, const struct open_turn *open, struct err **err)
{
	int pause = journal_is_remote(ring->journal) ? LOOK_REMOTE_MS : LOOK_MS;
	AUTO(lease_freep) struct lease *lease = NULL;
	struct lease_rules rules;
	int nobody = 0;

	if (cmd_lease_rules(ring->args, &rules, err) < 0)
		return -1;
	while (nobody == 0) {
		if (!cancel_pause(pause)) {
			out_note("an interrupt: the turn is not begun");
			return EXIT_DETACHED;
		}
		nobody = lease_check(ring->journal, open->run, &rules, &lease, err);
	}
	return nobody < 0 ? -1 : AGAIN;
}

static int replace(struct ring *ring, const struct open_turn *open, struct err **err)
{
	enum request_result result;
	int code;

	out_note("run %s of the turn before is stopped, and replaced", open->run);
	if (request_stop(ring->journal, open->run, "replaced by the next turn of its schedule",
			 &result, err) < 0)
		return -1;
	code = await_end(ring, open, err);
	ring->code = EXIT_DONE;
	return code;
}

/* The turn is not run: that is recorded, and told. `waited`: it is recorded as one that waits. */
static int skip(struct ring *ring, bool waited, const char *reason, struct err **err)
{
	json_auto_t *record =
		turn_make(name_of(ring), ring->due, "schedule", "skipped", NULL, reason);
	int written;

	js_put(record, "run", json_null());
	if (waited) {
		written = turn_update(ring->place, ring->due, "queued", record, err);
	} else {
		json_object_del(record, "run");
		written = turn_claim(ring->place, record, err);
	}
	if (written < 0)
		return -1;
	if (written == 0)
		return AGAIN;
	print_decision(ring, "skipped", reason);
	open_turn_tell(json_object_get(ring->pin, "plan"), ring->due, "skipped", reason);
	return EXIT_DONE;
}

/* Records that the turn waits in this process, and waits. */
static int queue(struct ring *ring, const struct open_turn *open, bool waited, struct err **err)
{
	AUTO(auto_free) char *reason = mem_format("run %s of an earlier turn goes on", open->run);
	char run[JOURNAL_RUN_MAX];
	json_auto_t *record = NULL;
	int written = 1;

	turn_run_id(name_of(ring), ring->due, run);
	record = turn_make(name_of(ring), ring->due, "schedule", "queued", run, reason);
	if (!ring->waits)
		written = waited ? turn_update(ring->place, ring->due, "queued", record, err)
				 : turn_claim(ring->place, record, err);
	if (written <= 0)
		return written < 0 ? -1 : AGAIN;
	if (!ring->waits)
		print_decision(ring, "queued", reason);
	ring->waits = true;
	return await_end(ring, open, err);
}

/* Another turn is driven. `waited`: this one is recorded as one that waits. */
static int overlap_driven(struct ring *ring, const struct open_turn *open, bool waited,
			  struct err **err)
{
	AUTO(auto_free)
	char *reason = mem_format(open->has_waiter ? "run %s of an earlier turn goes on, and "
						     "another turn waits for it"
						   : "run %s of an earlier turn goes on",
				  open->run);

	if (js_is(ring->pin, "overlap", "replace"))
		return replace(ring, open, err);
	if (js_is(ring->pin, "overlap", "queue") && (!open->has_waiter || waited))
		return queue(ring, open, waited, err);
	return skip(ring, waited, reason, err);
}

static int overlap(struct ring *ring, const struct open_turn *open, bool waited, struct err **err)
{
	int code = take_over(ring, open->at, open->run, open->state, err);

	return code == EXIT_BUSY ? overlap_driven(ring, open, waited, err) : code;
}

/* ---- decisions ---- */

/* Returns why it is too late for the turn; NULL if it is not. */
static const char *too_late(const struct ring *ring)
{
	int64_t late = ring->at.ms - ring->due.ms;
	int64_t within = js_int(ring->pin, "start_within_ms", -1);

	if (within >= 0 && late > within)
		return "it is later than schedule.start_within allows";
	if (!ring->waits && js_is(ring->pin, "catch_up", "none") &&
	    late > ON_TIME_MS + js_int(ring->pin, "jitter_ms", 0))
		return "it was missed, and schedule.catch_up is none";
	return NULL;
}

/* The turn is recorded as one that waits. */
static int go_on_waiting(struct ring *ring, const json_t *record, struct err **err)
{
	json_auto_t *members = json_object();
	struct open_turn open;
	int found, written;

	found = open_turn_find(ring->journal, ring->place, &ring->due, &open, err);
	/* A process of another machine is taken to wait as long as there is something to wait for.
	 */
	if (found > 0 && !ring->waits && !turn_is_left(record))
		return not_due(ring, js_str(record, "reason"));
	if (found < 0)
		return -1;
	if (found > 0)
		return overlap(ring, &open, true, err);
	if (too_late(ring))
		return skip(ring, true, too_late(ring), err);
	js_put_str(members, "outcome", "run");
	js_put(members, "reason", json_null());
	written = turn_update(ring->place, ring->due, "queued", members, err);
	return written < 0 ? -1 : written == 0 ? AGAIN : begin(ring, err);
}

/* The turn is recorded as one that runs. */
static int go_on_running(struct ring *ring, const json_t *record, struct err **err)
{
	enum turn_run state;
	int code;

	if (open_turn_look(ring->journal, record, &state, err) < 0)
		return -1;
	if (state == TURN_RUN_ENDED || state == TURN_RUN_PAUSED)
		return not_due(ring,
			       state == TURN_RUN_ENDED ? "its run has ended" : "its run is paused");
	if (state == TURN_RUN_ABSENT)
		return begin(ring, err);
	code = take_over(ring, ring->due, js_str(record, "run"), state, err);
	return code == EXIT_BUSY ? not_due(ring, "its run is being driven") : code;
}

static int decide_new(struct ring *ring, struct err **err)
{
	json_auto_t *record = NULL;
	char run[JOURNAL_RUN_MAX];
	struct open_turn open;
	int found, written;

	if (too_late(ring))
		return skip(ring, false, too_late(ring), err);
	found = open_turn_find(ring->journal, ring->place, &ring->due, &open, err);
	if (found != 0)
		return found < 0 ? -1 : overlap(ring, &open, false, err);
	turn_run_id(name_of(ring), ring->due, run);
	record = turn_make(name_of(ring), ring->due, "schedule", "run", run, NULL);
	written = turn_claim(ring->place, record, err);
	return written < 0 ? -1 : written == 0 ? AGAIN : begin(ring, err);
}

/* Finds the due time that is to be decided. Returns false if there is none. */
static bool find_due(struct ring *ring)
{
	struct utc since = { 0 };
	struct due due;

	/* A turn that waited in this process goes on, whatever has become due since. */
	if (ring->waits)
		return true;
	if (!ring->args->given[OPT_AT])
		(void)!clock_utc_parse(js_str(ring->pin, "since"), &since);
	ring->due = (struct utc){ 0 };
	if (!due_last(&ring->times.cron, &ring->times.zone.zone, ring->at.ms / 1000, &due) ||
	    due.at * 1000 < since.ms)
		return false;
	ring->due = (struct utc){ due.at * 1000 };
	return true;
}

/* The turn was decided, and there is nothing to run for it: one that is left to nobody goes on. */
static int go_on_without(struct ring *ring, const json_t *record, struct err **err)
{
	const char *reason = js_str(record, "reason");
	struct open_turn open;
	int found = open_turn_find(ring->journal, ring->place, &ring->due, &open, err);
	int code = EXIT_BUSY;

	if (found < 0)
		return -1;
	if (found > 0)
		code = take_over(ring, open.at, open.run, open.state, err);
	return code == EXIT_BUSY ? not_due(ring, reason ? reason : "it had nothing new") : code;
}

static int decide(struct ring *ring, struct err **err)
{
	json_auto_t *record = NULL;
	int found;

	if (!find_due(ring))
		return not_due(ring, "no due time has passed since it was added");
	found = turn_read(ring->place, ring->due, &record, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return ring->args->given[OPT_AT] && turn_check_order(ring->place, ring->at, err) < 0
			       ? -1
			       : decide_new(ring, err);
	if (js_is(record, "outcome", "queued"))
		return go_on_waiting(ring, record, err);
	if (js_is(record, "outcome", "run"))
		return go_on_running(ring, record, err);
	return go_on_without(ring, record, err);
}

/* ---- the command ---- */

/* Finds the place of the schedule: by its name in this state, or by URL. */
static int find_place(struct ring *ring, struct err **err)
{
	const char *name = ring->args->operands[0];
	json_auto_t *entry = NULL;
	int found;

	if (strchr(name, '/')) {
		ring->url = mem_copy(name);
	} else {
		found = schedule_entry_read(ring->journal, name, &entry, err);
		if (found < 0)
			return -1;
		if (found == 0) {
			err_set(err, EXIT_NOT_FOUND, "no schedule '%s' in %s", name,
				journal_url(ring->journal));
			return err_hint(err, "'stoker schedule ls' lists them; promote.url stands "
					     "for one too");
		}
		ring->url = mem_copy(js_str(entry, "url"));
	}
	found = schedule_pin_read(ring->url, &ring->pin, err);
	if (found > 0) {
		const json_t *plan = json_object_get(ring->pin, "plan");

		aws_settings_spec(js_str(json_object_get(plan, "aws"), "region"));
		return store_open(ring->url, &ring->place, err);
	}
	if (found < 0)
		return -1;
	err_set(err, EXIT_NOT_FOUND, "no schedule is pinned in '%s'", ring->url);
	return err_hint(err, "'stoker schedule add SPEC --to …' pins it");
}

/* An alarm of a schedule that is not there leaves no state behind. */
static int open_journal(struct ring *ring, struct err **err)
{
	const char *url = ring->args->value[OPT_STATE];

	if (journal_open(url, JOURNAL_READ, &ring->journal, err) < 0 || find_place(ring, err) < 0)
		return -1;
	journal_freep(&ring->journal);
	return journal_open(url, JOURNAL_WRITE, &ring->journal, err);
}

int cmd_schedule_run(const struct args *args, struct err **err)
{
	AUTO(ring_release) struct ring ring = { .args = args, .times = SCHEDULE_TIMES_INIT };
	int code = AGAIN;

	if (open_journal(&ring, err) < 0 || schedule_times_of_pin(ring.pin, &ring.times, err) < 0)
		return -1;
	while (code == AGAIN) {
		if (args_moment(args, OPT_AT, clock_utc_now(), &ring.at, err) < 0)
			return -1;
		if (!args->given[OPT_AT])
			ring.at = clock_utc_now();
		code = decide(&ring, err);
	}
	return code == EXIT_DONE ? ring.code : code;
}
