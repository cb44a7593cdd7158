/* Checkpoints of a run: marks become events, and one is chosen to resume from. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/driver_inside.h"
#include "jobs/store/order.h"

/* Where the complete checkpoints of a training attempt are to be found; what `ret` borrows is
 * held by `ret_hold`, yours to free, and the driver. */
static int checkpoint_root(struct driver *driver, int64_t attempt, struct ckpt_root *ret,
			   char **ret_hold, struct err **err)
{
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, PHASE_TRAIN, attempt);
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

int64_t checkpoints_pace_ms(const struct driver *driver)
{
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");
	bool near = url ? url[0] == '/' : store_directory(driver->workspace) != NULL;

	return near ? MARKS_MS : MARKS_FAR_MS;
}

/* Marks that have appeared since the last look, oldest first. What is older than
 * the newest known one is known, or was passed over for a reason. */
int checkpoints_look(struct driver *driver, int64_t attempt, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(auto_free) char *hold = NULL;
	struct ckpt_root root;

	if (checkpoint_root(driver, attempt, &root, &hold, err) < 0 ||
	    ckpt_mark_list(&root, driver->flow.checkpoint_step, &marks, NULL, err) < 0)
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

/* ---- what an agent left behind that was killed ---- */

#define LEFT_SETTLE_MS 2000
#define LEFT_WAIT_MS   (LEFT_SETTLE_MS + 1000)

/* Would marking help? What is to be copied first stays where it is: only the agent
 * of that node reaches it. */
static int has_left_some(struct driver *driver, const struct ckpt_root *root,
			 const struct ckpt_kind *kind, struct err **err)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
	const json_t *checkpoint = json_object_get(driver->plan, "checkpoint");
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, PHASE_TRAIN, attempt);
	AUTO(ckpt_list_release) struct ckpt_list list = { 0 };
	json_auto_t *report = NULL;

	if (root->store || (js_str(checkpoint, "url") && js_is(checkpoint, "sync", "agent")))
		return 0;
	if (report_read(driver, prefix, 0, &report, err) < 0)
		return -1;
	if (report_is_final(report))
		return 0; /* it has had its last pass */
	if (ckpt_find(root->path, kind, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].vouched && list.items[i].step > driver->flow.checkpoint_step)
			return 1;
	return 0;
}

static void mark_settled(struct driver *driver, const struct ckpt_root *root)
{
	struct ckpt_owner owner = { driver->run, driver->flow.nonce,
				    driver->flow.attempts[PHASE_TRAIN] };
	const struct ckpt *ckpt;

	while ((ckpt = ckpt_watch_next(driver->leftovers))) {
		AUTO(auto_free) char *name = mem_copy(ckpt->name);
		AUTO(err_freep) struct err *ignored = NULL;

		/* One that cannot be marked is one that is not chosen. */
		if (ckpt->vouched && ckpt->step > driver->flow.checkpoint_step)
			(void)!ckpt_mark(root, ckpt, &owner, utc_now(), &ignored);
		ckpt_watch_take(driver->leftovers, name);
	}
}

/* An agent marks a checkpoint a few beats after it was saved. Of one that was killed
 * the last ones are marked here, once nothing has changed in them for a while: its
 * attempt has ended and no other has begun. 1: come back soon; 0; -1. */
static int mark_left_behind(struct driver *driver, struct err **err)
{
	const char *name = js_str(json_object_get(driver->plan, "checkpoint"), "kind");
	const struct ckpt_kind *kind = ckpt_kind_find(name ? name : "auto");
	AUTO(auto_free) char *hold = NULL;
	struct ckpt_root root;

	if (checkpoint_root(driver, driver->flow.attempts[PHASE_TRAIN], &root, &hold, err) < 0)
		return -1;
	if (!driver->leftovers) {
		bool left = kind && driver->left_by == driver->flow.attempts[PHASE_TRAIN];
		int some = left ? has_left_some(driver, &root, kind, err) : 0;

		driver->left_by = 0;
		if (some <= 0)
			return some;
		driver->leftovers = ckpt_watch_new(root.path, kind, LEFT_SETTLE_MS);
		driver->leftovers_since = mono_now();
	}
	if (ckpt_watch_look(driver->leftovers, mono_now(), err) < 0) {
		ckpt_watch_freep(&driver->leftovers);
		return -1;
	}
	if (mono_now().ms - driver->leftovers_since.ms < LEFT_WAIT_MS ||
	    ckpt_watch_busy(driver->leftovers))
		return 1;
	mark_settled(driver, &root);
	ckpt_watch_freep(&driver->leftovers);
	return checkpoints_look(driver, driver->flow.attempts[PHASE_TRAIN], err);
}

/* ---- the choice ---- */

/* Of the attempt before: what its agent found to be no whole checkpoints. */
static int add_partial(struct driver *driver, json_t *rejected, struct err **err)
{
	int64_t attempt = driver->flow.attempts[PHASE_TRAIN];
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, PHASE_TRAIN, attempt);
	AUTO(auto_free) char *hold = NULL;
	json_auto_t *report = NULL;
	struct ckpt_root root;
	json_t *one;
	size_t i;

	if (report_read(driver, prefix, 0, &report, err) < 0 ||
	    checkpoint_root(driver, attempt, &root, &hold, err) < 0)
		return -1;
	json_array_foreach (js_path(report, "checkpoint.partial"), i, one) {
		const char *name = js_str(one, "name"), *why = js_str(one, "why");
		AUTO(auto_free) char *url = name ? ckpt_root_url(&root, name) : NULL;

		if (url && why)
			json_array_append_new(rejected,
					      json_pack("{s:s, s:s}", "url", url, "why", why));
	}
	return 0;
}

/* That there is nothing where something was known to be may be for want of a mount:
 * to begin from scratch would throw the training away. */
static int check_place(const struct driver *driver, struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(driver->flow.checkpoint_url);

	if (driver->flow.checkpoint_step < 0 || driver->flow.checkpoint_url[0] != '/' ||
	    fs_is_dir(folder))
		return 0;
	err_set(err, EXIT_UNREACHABLE,
		"the folder '%s' is not there, in which the checkpoint of step %lld lay", folder,
		(long long)driver->flow.checkpoint_step);
	return err_hint(err,
			"mount it, then resume the run; if it is gone for good, make the folder "
			"anew to begin without it");
}

static int note_any(void *arg, const struct store_object *object, struct err **err)
{
	bool *any = arg;

	(void)object;
	(void)err;
	*any = true;
	return 1;
}

/* The same where there are no folders, which could tell a place from nothing: not one
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
		if (store_list(roots[i].store, roots[i].path, note_any, &any, err) < 0)
			return -1;
	}
	if (any)
		return 0;
	url = ckpt_root_url(&roots[count - 1], "");
	/* It has answered: waiting for the service would change nothing. */
	err_set(err, EXIT_REFUSED,
		"there is nothing in the place for checkpoints any more, where that of step %lld "
		"lay: '%s'",
		(long long)driver->flow.checkpoint_step, driver->flow.checkpoint_url);
	return err_hint(err,
			"bring it back, then resume the run; if it is gone for good, put any "
			"object below '%s' to begin without it",
			url);
}

/* From the roots of all attempts so far. */
static int choose(struct driver *driver, int64_t below, struct ckpt_choice *ret, struct err **err)
{
	size_t count = (size_t)driver->flow.attempts[PHASE_TRAIN];
	AUTO(auto_free) struct ckpt_root *roots = mem_zero(count + 1, sizeof *roots);
	AUTO(auto_strv) char **holds = mem_zero(count + 1, sizeof *holds);

	for (size_t i = 0; i < count; i++)
		if (checkpoint_root(driver, (int64_t)i + 1, &roots[i], &holds[i], err) < 0)
			return -1;
	if (ckpt_choose(roots, count, driver->run, below, ret, err) < 0)
		return -1;
	return ret->found || json_array_size(ret->rejected) > 0
		       ? 0
		       : check_roots(driver, roots, count, err);
}

int driver_choose_checkpoint(struct driver *driver, int64_t below, bool *ret_again,
			     struct err **err)
{
	int left = mark_left_behind(driver, err);
	AUTO(ckpt_choice_release) struct ckpt_choice choice = { 0 };
	struct event ev = { .kind = EV_CHECKPOINT_CHOSEN };

	*ret_again = left > 0;
	if (left != 0)
		return left < 0 ? -1 : 0;
	if (check_place(driver, err) < 0 || choose(driver, below, &choice, err) < 0 ||
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
