/* Work of stoker beside driving a run, with each of its calls failing in turn: see
 * strikes.h. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/hash.h"
#include "jobs/base/mem.h"
#include "jobs/run/background.h"
#include "jobs/run/beside.h"
#include "jobs/run/journal/forget.h"
#include "jobs/run/request.h"
#include "jobs/run/salvage.h"
#include "tests/world/bucket.h"
#include "tests/world/operators.h"
#include "tests/world/programs.h"
#include "tests/world/sqlite.h"
#include "tests/world/story.h"
#include "tests/world/strikes.h"
#include "tests/world/tree.h"

/* ---- removal ---- */

static int remove_run(const char *run, bool with_checkpoints, bool dry_run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct forget_options options = { with_checkpoints, dry_run };
	json_auto_t *removal = NULL;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	return run_forget(journal, run, &options, NULL, NULL, NULL, &removal, err);
}

static int remove_all(const char *run, struct err **err)
{
	return remove_run(run, true, false, err);
}

static int remove_but_checkpoints(const char *run, struct err **err)
{
	return remove_run(run, false, false, err);
}

static int would_remove(const char *run, struct err **err)
{
	return remove_run(run, false, true, err);
}

static int count_run(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev, (void)row, (void)err;
	++*(int *)arg;
	return 0;
}

static int check_removed(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	int events = 0, kept;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, count_run, &events, err) < 0)
		return -1;
	if (events > 0)
		return err_set(err, EXIT_REFUSED, "%d events are left", events);
	kept = run_find_kept(journal, run, err);
	if (kept == 0 && run_has_rests(journal, run))
		return err_set(err, EXIT_REFUSED, "a folder is left");
	return kept < 0 ? -1 : 0;
}

/* ---- reading ---- */

static int read_run(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *runs = json_array();
	char found[JOURNAL_RUN_MAX];
	int64_t good;
	int events = 0;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_runs(journal, runs, err) < 0 ||
	    journal_resolve(journal, "@last", found, err) < 0 ||
	    journal_resolve(journal, run, found, err) < 0 ||
	    journal_read(journal, found, 1, count_run, &events, err) < 0)
		return -1;
	if (strcmp(found, run) != 0 || json_array_size(runs) != 1 || events < 10)
		return err_set(err, EXIT_DEFECT,
			       "the journal shows %zu runs, the last is %s, with %d events",
			       json_array_size(runs), found, events);
	if (journal_find_damage(journal, run, &good, &damage, err) < 0)
		return -1;
	if (damage)
		return err_set(err, EXIT_DEFECT, "a whole run is called damaged: %s",
			       damage->message);
	return 0;
}

/* ---- writing ---- */

#define APPENDS 70 /* more than a chunk of a journal of objects */

static int append_to(struct journal *journal, int64_t seq, struct err **err)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = seq, .at = { 1795000000000 + seq } };
	json_auto_t *plan = json_object();

	EVENT_SET_STR(&ev, reason, "a reason");
	if (seq == 1) {
		ev = (struct event){ .kind = EV_RUN_CREATED, .seq = 1, .at = ev.at };
		EVENT_SET_STR(&ev, name, "n");
		EVENT_SET_STR(&ev, engine, "local");
		EVENT_SET(&ev, plan, plan);
		EVENT_SET_STR(&ev, plan_digest, "00");
		EVENT_SET(&ev, seed, 1);
	}
	return journal_append(journal, "written", &ev, err);
}

/* As whoever appends does it: from where the journal ends. */
static int write_journal(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(sb_release) struct sb kept = SB_INIT;
	int events = 0;
	int64_t seq;

	(void)run;
	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    journal_read(journal, "written", 1, count_run, &events, err) < 0)
		return -1;
	for (seq = events + 1; seq <= APPENDS; seq++)
		if (append_to(journal, seq, err) < 0)
			return -1;
	if (journal_keep(journal, "written", APPENDS, "snapshot", 8, err) < 0 ||
	    journal_kept(journal, "written", &seq, &kept, err) < 0)
		return -1;
	return 0;
}

static int check_written(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	int events = 0;

	(void)run;
	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, "written", 1, count_run, &events, err) < 0)
		return -1;
	if (events != APPENDS)
		return err_set(err, EXIT_REFUSED, "%d events are there", events);
	return 0;
}

/* A reader on a file system that is read-only, and the writer is dead: a copy is read. */
static int refuse_side_files(enum call_id id, const char *path)
{
	bool opens = id == CALL_open || id == CALL_openat;

	return opens && path && strcmp(path, "/srv/user/state/journal.db-shm") == 0 ? EROFS : 0;
}

static void kill_writer(struct schedule *places)
{
	(void)places;
	strikes_run_until(20);
}

/* ---- damage ---- */

static int64_t damaged; /* the event */

static int salvage(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct driver_options options = { .run = run };

	if (journal_open(NULL, JOURNAL_SALVAGE, &journal, err) < 0)
		return -1;
	return salvage_run(journal, &options, err);
}

struct salvaged {
	int64_t at; /* number of the event that stands for what was set aside; 0: none */
};

static int see_salvaged(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct salvaged *salvaged = arg;

	(void)row, (void)err;
	if (ev && ev->kind == EV_JOURNAL_SALVAGED)
		salvaged->at = ev->seq;
	return 0;
}

/* Nothing but what is damaged is set aside, whatever failed meanwhile. */
static int check_salvaged(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	struct salvaged salvaged = { 0 };

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_salvaged, &salvaged, err) < 0)
		return -1;
	if (salvaged.at != damaged)
		return err_set(err, EXIT_REFUSED,
			       "event %lld is damaged, and from %lld on all is set aside",
			       (long long)damaged, (long long)salvaged.at);
	return 0;
}

static int check_whole(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	int events = 0;
	int64_t good;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_find_damage(journal, run, &good, &damage, err) < 0)
		return -1;
	if (damage)
		return err_set(err, EXIT_REFUSED, "it is damaged still: %s", damage->message);
	return journal_read(journal, run, 1, count_run, &events, err);
}

/* In the file, and in its log. */
static void damage_database(struct machine *machine, const char *path)
{
	size_t len = 0;
	AUTO(auto_free) char *bytes = tree_get(machine, path, &len);
	char sought[32];

	snprintf(sought, sizeof sought, "\"seq\":%d,", (int)damaged);
	for (char *at = bytes; bytes && at + strlen(sought) < bytes + len; at++)
		if (memcmp(at, sought, strlen(sought)) == 0)
			at[2] = 'X';
	if (bytes)
		tree_put(machine, path, bytes, len, 0600);
}

static void damage_at(struct schedule *places, int64_t seq)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *path = NULL;

	damaged = seq;
	key = mem_format("state/runs/%s/events/%012d.json", places->run, (int)damaged);
	path = mem_format("/srv/user/%s", key);
	switch (places->setting.state) {
	case STATE_SQLITE:
		damage_database(places->hosts[0], "/srv/user/state/journal.db");
		damage_database(places->hosts[0], "/srv/user/state/journal.db-wal");
		break;
	case STATE_BUCKET:
		bucket_put("bucket", key, "{", 1);
		break;
	default:
		tree_put(places->hosts[0], path, "{", 1, 0600);
		break;
	}
}

static void damage_event(struct schedule *places)
{
	strikes_run_until(20);
	/* The newest: those before it may lie in one object. */
	damage_at(places, places->setting.state == STATE_SQLITE ? 9 : story_of(places->run)->count);
}

/* In the database itself, which has taken in its log. */
static void damage_ended(struct schedule *places)
{
	strikes_run_to_end(places);
	damaged = 9;
	damage_database(places->hosts[0], "/srv/user/state/journal.db");
}

static void damage_first_event(struct schedule *places)
{
	AUTO(auto_free)
	char *path = mem_format("/srv/user/state/runs/%s/events/%012d.json", places->run, 1);

	strikes_run_until(20);
	tree_put(places->hosts[0], path, "", 0, 0600);
}

static void empty_database(struct schedule *places)
{
	strikes_run_to_end(places);
	tree_put(places->hosts[0], "/srv/user/state/journal.db", "", 0, 0600);
}

static void lose_mark(struct schedule *places)
{
	strikes_run_to_end(places);
	(void)tree_remove(places->hosts[0], "/srv/user/state/journal.json");
}

static void damage_and_salvage(struct schedule *places)
{
	damage_event(places);
	strikes_do(salvage);
}

static int find_damage(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	int64_t good = -1;
	int found;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0)
		return -1;
	found = journal_find_damage(journal, run, &good, &damage, err);
	if (found < 0)
		return -1;
	/* SQLite takes a read that fails for damage: salvage_run() looks twice. */
	if (found == 0 || good > damaged - 1 || !damage || !damage->damage)
		return err_set(err, EXIT_DEFECT, "damage is found: %d, behind event %lld: %s",
			       found, (long long)good, damage ? damage->message : "-");
	return 0;
}

/* ---- driving ---- */

/* Sets the first if the run has ended, the second if a stop is there. */
static int see(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	bool *seen = arg;

	(void)row, (void)err;
	seen[0] |= ev && ev->kind == EV_RUN_ENDED;
	seen[1] |= ev && ev->kind == EV_REQUEST_STOP;
	return 0;
}

static int check_end(const char *run, bool is_stopped, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	bool seen[2] = { false, false };

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see, seen, err) < 0)
		return -1;
	if (!seen[0])
		return err_set(err, EXIT_REFUSED, "the run has not ended");
	return !is_stopped || seen[1] ? 0 : err_set(err, EXIT_REFUSED, "the stop is lost");
}

static int check_ended(const char *run, struct err **err)
{
	return check_end(run, false, err);
}

static int check_stop_kept(const char *run, struct err **err)
{
	return check_end(run, true, err);
}

static int begin_run(const char *run, struct err **err)
{
	return operator_begin(run, STRIKES_SPEC, err);
}

/* A file that could not be looked at for minutes is not in the plan: the id belongs to that plan
 * then. */
static int begin_again(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *other = NULL;

	if (begin_run(run, &other) == 0 || other->code == EXIT_SPEC)
		return 0;
	*err = TAKE(other);
	return -1;
}

static int check_begun(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	int events = 0;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, count_run, &events, err) < 0)
		return -1;
	return events == 1 ? 0 : err_set(err, EXIT_REFUSED, "%d events are there", events);
}

static void add_all(struct schedule *places)
{
	(void)places;
	strikes_add_to_spec("failures:\n  - {regex: \"the frobnicator\", class: user-code, hint: "
			    "\"mend it\"}\n");
}

static int start_in_background(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(background_freep) struct background *background = NULL;
	pid_t pid;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    background_start(journal, run, NULL, &background, err) < 0)
		return -1;
	return background_wait(background, &pid, err);
}

static int await_end(const char *run, struct err **err)
{
	for (int i = 0; i < 600; i++) {
		AUTO(err_freep) struct err *not_yet = NULL;
		const struct timespec pause = { .tv_sec = 2 };

		if (check_ended(run, &not_yet) == 0)
			return 0;
		nanosleep(&pause, NULL);
	}
	return check_ended(run, err);
}

/* The driver that was struck may have the run. */
static int resume_in_background(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *busy = NULL, *not_yet = NULL;

	if (check_ended(run, &not_yet) == 0)
		return 0;
	if (start_in_background(run, &busy) < 0 && busy->code != EXIT_BUSY) {
		*err = TAKE(busy);
		return -1;
	}
	return await_end(run, err);
}

static int resume(const char *run, struct err **err)
{
	return operator_resume(run, err);
}

/* ---- a stop ---- */

static int request(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	enum request_result result;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	return request_stop(journal, run, "enough", &result, err);
}

/* The stop lies behind the damage. */
static void damage_stopped_and_salvage(struct schedule *places)
{
	strikes_run_until(20);
	strikes_do(request);
	damage_at(places, 9);
	strikes_do(salvage);
}

/* The lost attempt began at a checkpoint. */
static void damage_resumed_and_salvage(struct schedule *places)
{
	strikes_edit_spec("max_steps: 8", "max_steps: 40");
	strikes_run_until_event(EV_CHECKPOINT_COMPLETE);
	strikes_run_until_event(EV_TRAIN_CONTINUITY);
	damage_at(places, story_find(story_of(places->run), EV_ATTEMPT_INTENDED, PHASE_TRAIN, 2,
				     story_of(places->run)->count));
	strikes_do(salvage);
}

static int stop_beside(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	struct stop_beside stop;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0)
		return -1;
	return beside_stop(journal, run, "enough", NULL, NULL, &stop, err);
}

/* The next driver ends the run, whatever was told to stop. */
static int check_stopped(const char *run, struct err **err)
{
	return operator_resume(run, err) < 0 ? -1 : check_ended(run, err);
}

static int check_salvaged_stop(const char *run, struct err **err)
{
	return salvage(run, err) < 0 ? -1 : check_stopped(run, err);
}

/* ---- the lease ---- */

static int look_at_lease(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(auto_free) char *locked = NULL;
	int looked;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0)
		return -1;
	while ((looked = lease_check(journal, run, NULL, &lease, err)) == 0) {
		const struct timespec pause = { .tv_sec = 15 };

		nanosleep(&pause, NULL);
	}
	if (looked < 0)
		return -1;
	locked = lease_find_lock(journal_dir(journal));
	return 0;
}

static int take_lease(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(lease_freep) struct lease *lease = NULL;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    lease_take(journal, run, NULL, NULL, NULL, &lease, err) < 0)
		return -1;
	return lease_keep(lease, err) < 0 ? -1 : lease_remove(lease, err);
}

static const struct strike_action actions[] = {
	STRIKE("read sqlite", "sqlite", strikes_run_to_end, read_run),
	STRIKE("read folder", "two-nodes", strikes_run_to_end, read_run),
	STRIKE("read bucket", "far", strikes_run_to_end, read_run),
	STRIKE("read copy", "sqlite", kill_writer, read_run, .refused = refuse_side_files),
	STRIKE("write sqlite", "sqlite", NULL, write_journal, .check = check_written),
	STRIKE("write folder", "two-nodes", NULL, write_journal, .check = check_written),
	STRIKE("write bucket", "far", NULL, write_journal, .check = check_written),
	STRIKE("rm sqlite", "sqlite", strikes_run_to_end, remove_all, .check = check_removed),
	STRIKE("rm folder", "two-nodes", strikes_run_to_end, remove_but_checkpoints,
	       .check = check_removed),
	STRIKE("rm bucket", "far", strikes_run_to_end, remove_but_checkpoints,
	       .check = check_removed),
	STRIKE("rm damaged", "sqlite", damage_event, remove_all, .check = check_removed),
	STRIKE("rm dry", "sqlite", strikes_run_to_end, would_remove, .check = read_run),
	STRIKE("damage sqlite", "sqlite", damage_ended, find_damage),
	STRIKE("damage folder", "two-nodes", damage_event, find_damage),
	STRIKE("damage bucket", "far", damage_event, find_damage),
	STRIKE("salvage sqlite", "sqlite", damage_event, salvage, .check = check_salvaged),
	STRIKE("salvage folder", "two-nodes", damage_event, salvage, .check = check_salvaged),
	STRIKE("salvage bucket", "far", damage_event, salvage, .check = check_salvaged),
	STRIKE("salvage ended", "sqlite", damage_ended, salvage, .check = check_salvaged),
	STRIKE("salvage first", "two-nodes", damage_first_event, salvage, .check = check_whole),
	STRIKE("salvage empty", "sqlite", empty_database, salvage, .check = check_whole),
	STRIKE("salvage mark", "two-nodes", lose_mark, salvage, .check = check_whole),
	STRIKE("begin sqlite", "sqlite", add_all, begin_run, .again = begin_again,
	       .check = check_begun),
	STRIKE("begin bucket", "far", add_all, begin_run, .again = begin_again,
	       .check = check_begun),
	STRIKE("settle sqlite", "sqlite", damage_and_salvage, resume, .check = check_ended,
	       .share = 2),
	STRIKE("settle folder", "two-nodes", damage_and_salvage, resume, .check = check_ended,
	       .share = 2),
	STRIKE("settle bucket", "far", damage_and_salvage, resume, .check = check_ended),
	STRIKE("settle stop", "sqlite", damage_stopped_and_salvage, resume,
	       .check = check_stop_kept, .share = 2),
	STRIKE("settle resumed", "sqlite", damage_resumed_and_salvage, resume, .check = check_ended,
	       .share = 5),
	STRIKE("background", "sqlite", kill_writer, start_in_background,
	       .again = resume_in_background),
	STRIKE("request", "sqlite", kill_writer, request, .check = check_stopped),
	STRIKE("stop beside", "two-nodes", kill_writer, stop_beside, .check = check_stopped),
	STRIKE("stop far", "far", kill_writer, stop_beside, .check = check_stopped),
	STRIKE("stop damaged", "sqlite", damage_event, stop_beside, .check = check_salvaged_stop),
	STRIKE("lease look sqlite", "sqlite", kill_writer, look_at_lease),
	STRIKE("lease look bucket", "far", kill_writer, look_at_lease),
	STRIKE("lease take sqlite", "sqlite", kill_writer, take_lease),
	STRIKE("lease take folder", "two-nodes", kill_writer, take_lease),
	STRIKE("drive sqlite", "sqlite", add_all, strikes_drive, .check = check_ended, .share = 10),
	STRIKE("drive folder", "two-nodes", add_all, strikes_drive, .check = check_ended,
	       .share = 10),
	STRIKE("drive bucket", "far", add_all, strikes_drive, .check = check_ended, .share = 2),
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
