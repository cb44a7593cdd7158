/*
 * The candidate of a run: the model that is evaluated, that infers, and that may be promoted. It is
 * the newest complete checkpoint of the training, proved now, or an output that the spec names. It
 * is chosen once, and journalled: whatever the training's folder holds later, the run goes on with
 * it.
 */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/driver_internal.h"
#include "jobs/store/order.h"

#define FROM_OUTPUT "output:"

/* Sets the URL of the output of the last training attempt that promote.from names, if it is there.
 * Its first node is the one whose outputs count. */
static int find_output(const struct driver *driver, const char *path, char **ret, struct err **err)
{
	const char *workspace = store_url(driver->workspace);
	AUTO(auto_free)
	char *prefix = order_outputs(driver->run, PHASE_TRAIN, driver->flow.attempts[PHASE_TRAIN]);
	AUTO(auto_free) char *key = mem_format("%snode-0/%s", prefix, path);
	AUTO(auto_free) char *below = mem_format("%s/", key);
	struct store_object object;
	bool any = false;
	int there;

	if (!store_key_fits(key, false))
		return 0;
	there = store_stat(driver->workspace, key, &object, err);
	if (there == 0 && checkpoints_any_object(driver->workspace, below, &any, err) < 0)
		return -1;
	if (there < 0)
		return -1;
	if (there > 0 || any)
		*ret = mem_format("%s/%s", workspace, key);
	return 0;
}

static int choose_output(struct driver *driver, const char *path, struct event *ev, char **ret_url,
			 char **ret_words, struct err **err)
{
	if (find_output(driver, path, ret_url, err) < 0)
		return -1;
	if (*ret_url)
		EVENT_SET_STR(ev, url, *ret_url);
	else
		*ret_words = mem_format("the training left no '%s' in STOKER_OUTPUT_DIR", path);
	return 0;
}

/* A checkpoint of an earlier step than the last is not wrong, but the user may expect another. */
static char *step_words(const struct driver *driver, int64_t step)
{
	int64_t last = driver->flow.ledger.reached;

	if (step >= last)
		return NULL;
	return mem_format("it is of step %lld, and the training went on to step %lld",
			  (long long)step, (long long)last);
}

int candidate_choose(struct driver *driver, bool *ret_again, struct err **err)
{
	const char *from = js_str(json_object_get(driver->plan, "promote"), "from");
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	struct event ev = { .kind = EV_CANDIDATE_CHOSEN };
	AUTO(auto_free) char *url = NULL;
	AUTO(auto_free) char *words = NULL;

	*ret_again = false;
	if (from && strncmp(from, FROM_OUTPUT, strlen(FROM_OUTPUT)) == 0) {
		if (choose_output(driver, from + strlen(FROM_OUTPUT), &ev, &url, &words, err) < 0)
			return -1;
	} else {
		if (checkpoints_find_newest(driver, &choice, ret_again, err) < 0)
			return -1;
		if (*ret_again)
			return 0;
		if (choice.found) {
			EVENT_SET(&ev, step, choice.mark.step);
			EVENT_SET_STR(&ev, url, choice.mark.url);
			words = step_words(driver, choice.mark.step);
		} else {
			words = mem_copy("the training left no complete checkpoint");
		}
		if (json_array_size(choice.rejected) > 0)
			EVENT_SET(&ev, rejected, choice.rejected);
	}
	EVENT_SET_STR(&ev, reason, words);
	return driver_record(driver, &ev, err);
}
