/* Checkpoints of a run: marks become events, and one is chosen to resume from. */
#include <stdlib.h>
#include <string.h>

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/driver_inside.h"

/* Marks that have appeared since the last look, oldest first. What is older than
 * the newest known one is known, or was passed over for a reason. */
int checkpoints_look(struct driver *driver, int64_t attempt, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(auto_free) char *root = checkpoint_root(driver, attempt);

	if (ckpt_mark_list(root, &marks, NULL, err) < 0)
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

int driver_choose_checkpoint(struct driver *driver, int64_t below, struct err **err)
{
	size_t count = (size_t)driver->flow.attempts[PHASE_TRAIN];
	struct ckpt_root *roots = mem_zero(count + 1, sizeof *roots);
	AUTO(ckpt_choice_release) struct ckpt_choice choice = { 0 };
	struct event ev = { .kind = EV_CHECKPOINT_CHOSEN };
	int result;

	for (size_t i = 0; i < count; i++)
		roots[i] = (struct ckpt_root){ .path = checkpoint_root(driver, (int64_t)i + 1),
					       .attempt = (int64_t)i + 1 };
	result = ckpt_choose(roots, count, driver->run, below, &choice, err);
	for (size_t i = 0; i < count; i++)
		free((char *)roots[i].path);
	free(roots);
	if (result < 0)
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
