/* The last words about checkpoints, at the end: see checkpointer_internal.h. */
#include "jobs/node/checkpoints/checkpointer_internal.h"

/* Returns the failure class of the last error; NULL if its errno decides. */
static const char *class_of_trouble(const struct work *work)
{
	if (work->code == EXIT_UNREACHABLE)
		return "transient-infra";
	/* The service refused, and will again. */
	return work->remote && !work->os_errno ? "quota-permission" : NULL;
}

static void say_one_lost(const struct work *work, const char *name, const char *why,
			 const char *class)
{
	json_t *news = news_of("lost");

	js_put_str(news, "name", name);
	js_put_str(news, "why", why);
	js_put_str(news, "class", class);
	js_put(news, "errno", json_integer(class ? 0 : work->os_errno));
	news_say(work->news_fd, news);
}

/* Reports the first shared checkpoint that was lost for another reason than its own format. Returns
 * true if there was one. */
static bool say_unmarked(const struct work *work)
{
	struct coordinator_unmarked one;
	bool lost = false;

	for (size_t i = 0;
	     work->coordinator && checkpoint_coordinator_unmarked(work->coordinator, i, &one);
	     i++) {
		if (one.lost && !lost)
			say_one_lost(work, one.name, one.why,
				     one.class ? one.class : class_of_trouble(work));
		lost |= one.lost;
	}
	return lost;
}

void checkpointer_lost_say(const struct work *work)
{
	const struct ckpt *ckpt = work->watch ? checkpoint_watch_next(work->watch) : NULL;

	/* Superseded: another attempt decides. Awaited: another program may still upload them. */
	if (work->ended || work->awaits || !ckpt || !work->trouble) {
		if (work->ended || !say_unmarked(work))
			news_say(work->news_fd, news_of("kept"));
		return;
	}
	say_one_lost(work, ckpt->name, work->trouble, class_of_trouble(work));
}
