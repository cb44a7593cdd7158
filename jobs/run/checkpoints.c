/* Checkpoints of a run: marks become events, and a checkpoint is chosen to resume from. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/driver_internal.h"
#include "jobs/store/order.h"

/* Returns the place of the complete checkpoints of a training attempt. `ret` borrows from
 * `ret_hold`, which the caller frees, and from the driver. */
static int checkpoint_root(struct driver *driver, int64_t attempt, struct ckpt_root *ret,
			   char **ret_hold, struct err **err)
{
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, PHASE_TRAIN, attempt);
	struct store *store = driver->workspace;

	if (url && url[0] != '/') {
		if (!driver->checkpoints && store_open(url, &driver->checkpoints, err) < 0)
			return err_wrap(err, "cannot look for checkpoints");
		store = driver->checkpoints;
		*ret_hold = mem_format("%s/attempt-%lld/", driver->run, (long long)attempt);
	} else if (!url && !store_directory(store)) {
		*ret_hold = mem_format("%scheckpoints/", prefix);
	} else {
		store = NULL;
		*ret_hold = order_checkpoint_root(driver->plan, store_url(driver->workspace),
						  driver->run, attempt);
	}
	*ret = (struct ckpt_root){ .path = *ret_hold, .attempt = attempt, .store = store };
	return 0;
}

int64_t checkpoints_interval_ms(const struct driver *driver)
{
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");
	bool is_local = url ? url[0] == '/' : store_directory(driver->workspace) != NULL;

	return is_local ? MARKS_MS : MARKS_REMOTE_MS;
}

/* Records marks that have appeared since the last look, oldest first. Any mark older than the
 * newest known one is known, or was passed over for a reason. */
int checkpoints_record_marks(struct driver *driver, int64_t attempt, struct err **err)
{
	AUTO(checkpoint_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(auto_free) char *hold = NULL;
	struct ckpt_root root;

	if (checkpoint_root(driver, attempt, &root, &hold, err) < 0 ||
	    checkpoint_mark_list(&root, driver->flow.checkpoint_step, &marks, NULL, err) < 0)
		return -1;
	for (size_t i = marks.count; i-- > 0;) {
		const struct ckpt_mark *mark = &marks.items[i];
		struct event ev = { .kind = EV_CHECKPOINT_COMPLETE };

		if (mark->step <= driver->flow.checkpoint_step || mark->attempt != attempt ||
		    strcmp(mark->run, driver->run) != 0)
			continue;
		EVENT_SET(&ev, attempt, attempt);
		EVENT_SET(&ev, step, mark->step);
		EVENT_SET_STR(&ev, url, mark->url);
		EVENT_SET(&ev, seconds, (double)mark->saving_ms / 1000);
		if (driver_record(driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- checkpoints that a killed agent left behind ---- */

#define LEFT_QUIET_MS 2000
#define LEFT_WAIT_MS  (LEFT_QUIET_MS + 1000)
/* A job that saves for longer is an orphan: the next attempt's fence ends it, so the next attempt
 * must not wait for it. */
#define LEFT_LIMIT_MS (5 * LEFT_WAIT_MS)

enum { LEFT_NONE, LEFT_SOME, LEFT_UNKNOWN };

/* LEFT_SOME if the node or the agent died, and the engine says that nothing of the attempt runs;
 * LEFT_UNKNOWN if it cannot see. Taken from the engine and the report, so that it is known after a
 * takeover too. */
static int is_dead(struct driver *driver, const char *prefix, struct err **err)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
	AUTO(auto_free)
	char *job = order_job_name(driver->run, PHASE_TRAIN, attempt);
	struct engine_status status = { .state = ENGINE_UNKNOWN };
	AUTO(node_report_release) struct node_report report = { 0 };

	if (attempt_read_report(driver, prefix, 0, &report, err) < 0)
		return -1;
	if (node_report_is_final(&report))
		return LEFT_NONE; /* the agent has made its last pass */
	if (job_engine_enter(driver, PHASE_TRAIN, err) < 0 ||
	    driver->engine->ops->describe(driver->engine, job, prefix, &status, err) < 0)
		return -1;
	return status.state == ENGINE_ENDED     ? LEFT_SOME
	       : status.state == ENGINE_UNKNOWN ? LEFT_UNKNOWN
						: LEFT_NONE;
}

/* LEFT_SOME if marking would help. Checkpoints that have to be copied first stay where they are:
 * only the agent of that node reaches them. */
static int has_left_some(struct driver *driver, const struct ckpt_root *root,
			 const struct ckpt_kind *kind, struct err **err)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
	const json_t *checkpoint = json_object_get(driver->plan, "checkpoint");
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, PHASE_TRAIN, attempt);
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };
	int dead;

	if (root->store || (js_str(checkpoint, "url") && js_is(checkpoint, "sync", "agent")))
		return LEFT_NONE;
	dead = is_dead(driver, prefix, err);
	if (dead != LEFT_SOME)
		return dead;
	if (checkpoint_find(root->path, kind, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].positively_verified &&
		    list.items[i].step > driver->flow.checkpoint_step)
			return LEFT_SOME;
	return LEFT_NONE;
}

/* Marks what has settled, the oldest first. False if one cannot be marked now; `last`: then the
 * next ones are marked without it. */
static bool mark_quiet(struct driver *driver, const struct ckpt_root *root, bool last)
{
	struct ckpt_owner owner = { driver->run, driver->flow.nonce,
				    driver->flow.attempts[PHASE_TRAIN],
				    js_str(json_object_get(driver->plan, "instance"), "type"),
				    plan_world_size(driver->plan) };
	const struct ckpt *ckpt;

	while ((ckpt = checkpoint_watch_next(driver->leftovers))) {
		AUTO(auto_free) char *name = mem_copy(ckpt->name);
		AUTO(err_freep) struct err *ignored = NULL;

		/* A checkpoint that cannot be marked is not chosen. */
		if (ckpt->positively_verified && ckpt->step > driver->flow.checkpoint_step &&
		    checkpoint_mark(root, ckpt, &owner, clock_utc_now(), &ignored) < 0 && !last)
			return false;
		checkpoint_watch_take(driver->leftovers, name);
	}
	return true;
}

/* Time in ms since leftovers of the newest attempt were first looked for. */
static int64_t sought_ms(struct driver *driver)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];

	if (driver->sought_attempt != attempt) {
		driver->sought_attempt = attempt;
		driver->leftovers_since = clock_mono_now();
	}
	return clock_mono_now().ms - driver->leftovers_since.ms;
}

/* An agent marks a checkpoint a few beats after it was saved. The last checkpoints of a killed
 * agent are marked here, once nothing has changed in them for a while: its attempt has ended and no
 * other has begun. Returns 1 to come back soon, 0, -1. */
static int mark_left_behind(struct driver *driver, struct err **err)
{
	const char *name = js_str(json_object_get(driver->plan, "checkpoint"), "kind");
	const struct ckpt_kind *kind = checkpoint_kind_find(name ? name : "auto");
	AUTO(auto_free) char *hold = NULL;
	struct ckpt_root root;
	int64_t waited_ms;

	if (checkpoint_root(driver, driver->flow.attempts[PHASE_TRAIN], &root, &hold, err) < 0)
		return -1;
	if (!driver->leftovers) {
		int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
		bool unsettled = kind && driver->searched_attempt != attempt;
		int some = unsettled ? has_left_some(driver, &root, kind, err) : LEFT_NONE;

		if (some == LEFT_UNKNOWN)
			some = sought_ms(driver) < LEFT_LIMIT_MS ? LEFT_UNKNOWN : LEFT_NONE;
		if (some == LEFT_NONE)
			driver->searched_attempt = attempt;
		if (some != LEFT_SOME)
			return some < 0 ? -1 : some == LEFT_UNKNOWN;
		driver->leftovers = checkpoint_watch_new(root.path, kind, LEFT_QUIET_MS);
		driver->leftovers_since = clock_mono_now();
	}
	if (checkpoint_watch_scan(driver->leftovers, clock_mono_now(), err) < 0) {
		checkpoint_watch_freep(&driver->leftovers);
		return -1;
	}
	waited_ms = clock_mono_now().ms - driver->leftovers_since.ms;
	if (waited_ms < LEFT_WAIT_MS ||
	    (waited_ms < LEFT_LIMIT_MS && checkpoint_watch_busy(driver->leftovers)) ||
	    !mark_quiet(driver, &root, waited_ms >= LEFT_LIMIT_MS))
		return 1;
	driver->searched_attempt = driver->flow.attempts[PHASE_TRAIN];
	checkpoint_watch_freep(&driver->leftovers);
	return checkpoints_record_marks(driver, driver->flow.attempts[PHASE_TRAIN], err);
}

/* ---- the choice ---- */

/* Adds the partial checkpoints that the agent of the previous attempt reported. */
static int add_partial(struct driver *driver, json_t *rejected, struct err **err)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, PHASE_TRAIN, attempt);
	AUTO(auto_free) char *hold = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	struct ckpt_root root;

	if (attempt_read_report(driver, prefix, 0, &report, err) < 0 ||
	    checkpoint_root(driver, attempt, &root, &hold, err) < 0)
		return -1;
	for (size_t i = 0; i < report.checkpoint.partial.count; i++) {
		const struct node_report_partial *one = &report.checkpoint.partial.items[i];
		AUTO(auto_free)
		char *url = one->name ? checkpoint_root_url(&root, one->name) : NULL;

		if (url && one->why)
			json_array_append_new(rejected,
					      json_pack("{s:s, s:s}", "url", url, "why", one->why));
	}
	return 0;
}

/* The folder of a known checkpoint may be absent for want of a mount: starting from scratch would
 * throw the training away. */
static int check_place(const struct driver *driver, struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(driver->flow.checkpoint_url);

	if (driver->flow.checkpoint_step < 0 || driver->flow.checkpoint_url[0] != '/' ||
	    fs_is_dir(folder))
		return 0;
	err_set(err, EXIT_UNREACHABLE,
		"the folder '%s' with the checkpoint of step %lld is missing", folder,
		(long long)driver->flow.checkpoint_step);
	return err_hint(err, "mount the folder, then resume the run; if the folder is lost, create "
			     "it again to begin without the checkpoint");
}

static int set_found(void *arg, const struct store_object *object, struct err **err)
{
	bool *any = arg;

	(void)object;
	(void)err;
	*any = true;
	return 1;
}

int checkpoints_any_object(struct store *store, const char *prefix, bool *ret_any, struct err **err)
{
	*ret_any = false;
	return store_list(store, prefix, set_found, ret_any, err) < 0 ? -1 : 0;
}

/* The same for object stores, where an absent place and an empty one look alike: refuses if not one
 * object is left in any root of a run that has saved there. */
static int check_roots(const struct driver *driver, const struct ckpt_root *roots, size_t count,
		       struct err **err)
{
	AUTO(auto_free) char *url = NULL;
	bool any = false;

	if (driver->flow.checkpoint_step < 0 || count == 0)
		return 0;
	for (size_t i = 0; i < count && !any; i++) {
		if (!roots[i].store)
			return 0;
		if (checkpoints_any_object(roots[i].store, roots[i].path, &any, err) < 0)
			return -1;
	}
	if (any)
		return 0;
	url = checkpoint_root_url(&roots[count - 1], "");
	/* The service has answered: waiting for it would change nothing. */
	err_set(err, EXIT_REFUSED, "the checkpoint of step %lld is gone: '%s' is empty",
		(long long)driver->flow.checkpoint_step, driver->flow.checkpoint_url);
	return err_hint(err,
			"restore the checkpoint, then resume the run; if it is lost, put any "
			"object below '%s' to begin without it",
			url);
}

/* Chooses from the roots of all attempts so far. */
static int choose_from_roots(struct driver *driver, int64_t below, struct ckpt_choice *ret,
			     struct err **err)
{
	size_t count = (size_t)driver->flow.attempts[PHASE_TRAIN];
	AUTO(auto_free) struct ckpt_root *roots = mem_zero(count + 1, sizeof *roots);
	AUTO(auto_strv) char **holds = mem_zero(count + 1, sizeof *holds);

	for (size_t i = 0; i < count; i++)
		if (checkpoint_root(driver, (int64_t)i + 1, &roots[i], &holds[i], err) < 0)
			return -1;
	if (checkpoint_choose(roots, count, driver->run, below, ret, err) < 0)
		return -1;
	return ret->found || json_array_size(ret->rejected) > 0
		       ? 0
		       : check_roots(driver, roots, count, err);
}

int checkpoints_find_newest(struct driver *driver, struct ckpt_choice *ret, bool *ret_again,
			    struct err **err)
{
	int left = mark_left_behind(driver, err);

	*ret_again = left > 0;
	if (left != 0)
		return left < 0 ? -1 : 0;
	return check_place(driver, err) < 0 ? -1 : choose_from_roots(driver, INT64_MAX, ret, err);
}

int checkpoints_choose(struct driver *driver, int64_t below, bool *ret_again, struct err **err)
{
	int left = mark_left_behind(driver, err);
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	struct event ev = { .kind = EV_CHECKPOINT_CHOSEN };
	bool lost;

	*ret_again = left > 0;
	if (left != 0)
		return left < 0 ? -1 : 0;
	if (cache_gate_find_lost(driver, &lost, err) < 0)
		return -1;
	if (lost)
		return 0;
	if (check_place(driver, err) < 0 || choose_from_roots(driver, below, &choice, err) < 0 ||
	    add_partial(driver, choice.rejected, err) < 0)
		return -1;
	if (choice.found) {
		EVENT_SET(&ev, step, choice.mark.step);
		EVENT_SET_STR(&ev, url, choice.mark.url);
	} else {
		EVENT_SET_STR(&ev, reason, "no complete checkpoint yet: from the start");
	}
	if (json_array_size(choice.rejected) > 0)
		EVENT_SET(&ev, rejected, choice.rejected);
	return driver_record(driver, &ev, err);
}
