/* Reports which checkpoints are passed over: see passed.h. */
#include "jobs/node/checkpoints/passed.h"

#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/node/news.h"

/* Limits of reports: a script may save every second, and more than this tells nothing new. */
#define TOLD_MAX 64
#define TIMES    2
/* Limit of reports when the command is over. */
#define PARTIAL_MAX 16

void passed_release(struct passed *passed)
{
	json_decref(passed->told);
	*passed = (struct passed){ 0 };
}

/* True if the checkpoint is to be reported in its present state; counts the report. */
static bool is_news(struct passed *passed, const char *name, const char *tag)
{
	json_t *known;
	int64_t times;

	if (!passed->told)
		passed->told = json_object();
	known = json_object_get(passed->told, name);
	times = js_int(known, "times", 0);
	if (passed->count >= TOLD_MAX || times >= TIMES || (times > 0 && js_is(known, "tag", tag)))
		return false;
	known = json_object();
	js_put_str(known, "tag", tag);
	js_put(known, "times", json_integer(times + 1));
	js_put(passed->told, name, known);
	passed->count++;
	return true;
}

static void say_passed(struct passed *passed, const char *name, const char *path, int64_t step,
		       const char *why, const char *hint)
{
	json_t *news = news_of("passed");
	int64_t now = clock_utc_now().ms;

	passed->at = now > passed->at ? now : passed->at + 1;
	js_put_str(news, "name", name);
	js_put_str(news, "path", path);
	js_put_str(news, "why", why);
	js_put_str(news, "hint", hint);
	if (step >= 0)
		js_put(news, "step", json_integer(step));
	js_put(news, "at", json_integer(passed->at));
	news_say(passed->news_fd, news);
}

static void say_partial(struct passed *passed, const struct ckpt *ckpt)
{
	const char *taken = checkpoint_kind_name(ckpt->kind);
	AUTO(auto_free)
	char *hint = mem_format("let the script finish each checkpoint before the next one, or "
				"correct checkpoint.kind; the kind seems to be '%s'",
				taken);

	say_passed(passed, ckpt->name, ckpt->path, ckpt->step, ckpt->why ? ckpt->why : "incomplete",
		   hint);
}

static void say_unrecognised(struct passed *passed, const struct ckpt_unrecognised *one)
{
	AUTO(auto_free) char *path = fs_join(passed->source, one->name);
	AUTO(auto_free)
	char *why = one->named ? mem_format("the name does not fit checkpoint.kind '%s'",
					    checkpoint_kind_name(passed->kind))
			       : mem_copy("the name has no step, by which the newest is found");

	say_passed(passed, one->name, path, -1, why,
		   one->named
			   ? "set checkpoint.kind: auto, or use the names of that kind"
			   : "save each checkpoint under its own name with the step in it, such as "
			     "checkpoint-1000");
}

/* `unchanged_ms`: how long a checkpoint may stand still unfinished. */
static void report_unusable(struct passed *passed, struct ckpt_watch *watch, int64_t unchanged_ms)
{
	struct ckpt_unrecognised unrecognised;
	size_t count = 0;

	while (checkpoint_watch_partial(watch, count))
		count++;
	while (count-- > 0) { /* oldest first */
		const struct ckpt *ckpt = checkpoint_watch_partial(watch, count);

		if (checkpoint_watch_passed(watch, ckpt, unchanged_ms) &&
		    is_news(passed, ckpt->name, ckpt->tag))
			say_partial(passed, ckpt);
	}
	for (size_t i = 0; checkpoint_watch_unrecognised(watch, i, &unrecognised); i++)
		if (is_news(passed, unrecognised.name, unrecognised.tag))
			say_unrecognised(passed, &unrecognised);
}

void passed_report(struct passed *passed, struct ckpt_watch *watch)
{
	report_unusable(passed, watch, passed->unchanged_ms);
}

/* Returns the step that the name contains, -1 if none. */
static int64_t step_of(const char *name)
{
	int64_t step;

	return checkpoint_name_any(name, true, &step) ? step : -1;
}

/* `over`: no process saves any more, so a checkpoint is reported even if no newer one exists. */
static void report_coordinated(struct passed *passed,
			       const struct checkpoint_coordinator *coordinator, bool over)
{
	struct coordinator_unmarked one;

	for (size_t i = 0; checkpoint_coordinator_unmarked(coordinator, i, &one); i++) {
		int64_t step = step_of(one.name);
		bool newer = over || checkpoint_coordinator_newest(coordinator) > step;
		AUTO(auto_free) char *path = NULL;

		if (one.lost || !newer || !is_news(passed, one.name, one.why))
			continue;
		path = fs_join(passed->source, one.name);
		say_passed(passed, one.name, path, step, one.why,
			   "each node must save its whole part before it begins the next one");
	}
}

void passed_report_coordinated(struct passed *passed,
			       const struct checkpoint_coordinator *coordinator)
{
	report_coordinated(passed, coordinator, false);
}

void passed_marked(struct passed *passed, int64_t step, const char *url)
{
	const struct order *order = passed->config->order;
	int64_t resumed = order->has_resume_step ? order->resume_step : -1;
	AUTO(auto_free) char *why = NULL;

	if (!order->resume_from || step > resumed || !is_news(passed, fs_basename(url), ""))
		return;
	why = mem_format("the step is not above %lld, from which this attempt resumed; the next "
			 "attempt resumes from the highest step",
			 (long long)resumed);
	say_passed(passed, fs_basename(url), url, step, why,
		   "let the script load STOKER_RESUME_FROM and continue from its step");
}

void passed_stuck(struct passed *passed, const struct ckpt *ckpt, const char *why)
{
	if (is_news(passed, ckpt->name, ckpt->tag))
		say_passed(passed, ckpt->name, ckpt->path, ckpt->step, why,
			   "check that checkpoint.url can be written to and holds files and "
			   "folders only; "
			   "the upload is retried");
}

json_t *passed_bad(struct ckpt_watch *watch)
{
	json_t *bad = json_object();
	const struct ckpt *ckpt;

	for (size_t i = 0; i < PARTIAL_MAX && (ckpt = checkpoint_watch_partial(watch, i)); i++)
		js_put_str(bad, ckpt->name, ckpt->why);
	return bad;
}

static void say_at_end(const struct passed *passed, const char *name, const char *why)
{
	json_t *news = news_of("partial");

	js_put_str(news, "name", name);
	js_put_str(news, "why", why);
	news_say(passed->news_fd, news);
}

void passed_at_end(struct passed *passed, struct ckpt_watch *watch,
		   const struct checkpoint_coordinator *coordinator, bool cut)
{
	struct coordinator_unmarked one;
	const struct ckpt *ckpt;

	checkpoint_watch_quiet(watch, 0); /* nothing is marked any more */
	/* A save that was cut off is reported when the next attempt chooses. */
	if (!cut && !coordinator)
		report_unusable(passed, watch, 0);
	else if (!cut && passed->config->node == 0)
		report_coordinated(passed, coordinator, true);
	for (size_t i = 0; i < PARTIAL_MAX && (ckpt = checkpoint_watch_partial(watch, i)); i++)
		say_at_end(passed, ckpt->name, ckpt->why);
	/* Nothing speaks for those that were not marked. A verified one was kept back by trouble.
	 */
	for (size_t i = 0; cut && i < PARTIAL_MAX; i++) {
		AUTO(auto_free) char *name = NULL;

		ckpt = checkpoint_watch_next(watch);
		if (!ckpt || ckpt->positively_verified)
			break;
		name = mem_copy(ckpt->name);
		say_at_end(passed, name,
			   "the command was killed soon after, and nothing shows that it is whole");
		checkpoint_watch_take(watch, name);
	}
	for (size_t i = 0; i < PARTIAL_MAX && coordinator &&
			   checkpoint_coordinator_unmarked(coordinator, i, &one);
	     i++)
		say_at_end(passed, one.name, one.why);
}
