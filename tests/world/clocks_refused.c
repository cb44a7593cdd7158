/*
 * C10. No dead ends: each refused effect is repeated, replaced by a stronger one, or named by an
 * event within 60 s. At the end the list of refusals without consequence is empty.
 *
 * An effect is a call of a driver that changes what others can see: a file or an object of the
 * state or the workspace, or a job. It is repeated by another change of the same folder, or of the
 * same job. Whatever an agent or a helper was refused has consequences of its own: rules 4 and 7,
 * C11.
 *
 * An event that says where it was refused names the effect until it is done, not one try of it: a
 * driver that says once that it cannot write a drain, tries again each second and is refused each
 * time has said so, though the job ends by itself before it can say more.
 */
#include <stdio.h>
#include <string.h>

#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

#define REFUSED_MAX 64
#define FOLDER_MAX  200

static struct refused {
	struct stretch since; /* of the driver that was refused it */
	enum call_id id;
	char folder[FOLDER_MAX];
	bool is_named; /* by an event that says where; kept until it is done */
	bool is_tried; /* again, and not refused so far */
} refused[REFUSED_MAX];
static size_t refused_count;

static void reset(void)
{
	refused_count = 0;
}

/* True for the draft of a lease, which has not its name yet, and for the sync of the folder that a
 * lease lies in. Of the state's files only the copies that readers do without lie there, too. */
static bool is_of_lease(enum call_id id, const char *about)
{
	static const char runs[] = "state/runs/", draft[] = "/.stk-tmp-";
	const char *run = strstr(about, runs), *name;

	if (!run)
		return false;
	name = strchr(run + strlen(runs), '/');
	return name ? strncmp(name, draft, strlen(draft)) == 0 : id == CALL_fsync;
}

static bool is_effect(enum call_id id, const char *about)
{
	bool shared = strstr(about, "work/") || strstr(about, "state/");

	/* Most files are opened to be read. A draft that is left is nobody's; what SQLite
	 * cannot do, it says by itself; the driver's own copies are its own, and chunks of a
	 * journal copies that readers do without; claims and leases run out by themselves. A look
	 * at /proc takes the place of what the engine local notes of a job that it has started;
	 * where it cannot note it before, nothing is started. */
	if (id == CALL_open || id == CALL_openat || strstr(about, "/.local/") ||
	    (strstr(about, "/engine.json") && !playing->setting.cloud) ||
	    strstr(about, "/chunks/") || strstr(about, "/claims") || strstr(about, "/lease.json") ||
	    is_of_lease(id, about) || (id == CALL_unlinkat && strstr(about, "/.stk-tmp-")) ||
	    strstr(about, "/journal.db"))
		return false;
	return (shared && (call_rows[id].kind == CALL_CHANGES || id == CALL_write)) ||
	       id == CALL_cloud_stop || id == CALL_cloud_submit;
}

static void folder_of(const char *about, char ret[FOLDER_MAX])
{
	const char *slash = strrchr(about, '/');

	snprintf(ret, FOLDER_MAX, "%.*s", (int)(slash ? slash - about : (long)strlen(about)),
		 about);
}

/* What was refused there, and named by the same driver, is refused once more. */
static bool is_named_already(const struct process *who, const char *folder)
{
	for (size_t i = 0; i < refused_count; i++) {
		if (!refused[i].is_named || refused[i].since.who != who ||
		    strcmp(refused[i].folder, folder) != 0)
			continue;
		refused[i].is_tried = false;
		return true;
	}
	return false;
}

static void on_refusal(const struct refusal *refusal)
{
	char folder[FOLDER_MAX];
	struct refused *one;

	/* Of what was done a look shows that nothing more is to be done. */
	if (refusal->done || refusal->who != seen_driver() ||
	    !is_effect(refusal->id, refusal->about))
		return;
	folder_of(refusal->about, folder);
	if (is_named_already(refusal->who, folder) || refused_count == REFUSED_MAX)
		return;
	one = &refused[refused_count++];
	*one = (struct refused){ .id = refusal->id };
	memcpy(one->folder, folder, sizeof folder);
	stretch_begin(&one->since, refusal->who);
}

static void forget(size_t at)
{
	refused[at] = refused[--refused_count];
}

/* A try that is not refused does what was refused before; a draft that is written does not. */
static bool is_done(struct refused *one, const char *about)
{
	bool was_tried = one->is_tried;

	if (!one->is_named)
		return true;
	one->is_tried |= !strstr(about, "/.stk-tmp-");
	return was_tried;
}

/* Called before a refusal of the same call is. */
static void on_call(const struct process *who, enum call_id id, const char *about)
{
	char folder[FOLDER_MAX];

	(void)who;
	if (refused_count == 0 || !is_effect(id, about))
		return;
	folder_of(about, folder);
	for (size_t i = 0; i < refused_count;)
		if (strcmp(refused[i].folder, folder) == 0 && is_done(&refused[i], about))
			forget(i);
		else
			i++;
}

/* An event that says why something is not as it should be. */
static bool is_named_by(const struct event *ev)
{
	switch (ev->kind) {
	case EV_ATTEMPT_ENDED:
		return ev->class != CLASS_NONE;
	case EV_RUN_ENDED:
		return ev->exit_code != 0;
	case EV_CHORE_FAILED:
	case EV_ATTEMPT_UNCERTAIN:
	case EV_ATTEMPT_LOST:
	case EV_DRIVER_WAITING:
	case EV_DRIVER_LEFT:
	case EV_DRIVER_TOOK_OVER:
		return true;
	default:
		return false;
	}
}

/* Messages name files from the folder of the runs on. */
static bool says_where(const struct event *ev, const char *folder)
{
	const char *runs = strstr(folder, "runs/");

	return ev->reason && runs && strstr(ev->reason, runs);
}

/* A job that has ended, as it may by itself, is to be stopped no more, however it went. */
static void on_ended_job(const char *job)
{
	for (size_t i = 0; i < refused_count;)
		if (refused[i].id == CALL_cloud_stop && strcmp(refused[i].folder, job) == 0)
			forget(i);
		else
			i++;
}

static void on_event(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;

	if (ev->kind == EV_ATTEMPT_ENDED && ev->job)
		on_ended_job(ev->job);
	if (!is_named_by(ev))
		return;
	for (size_t i = 0; i < refused_count;) {
		refused[i].is_named |= says_where(ev, refused[i].folder);
		if (refused[i].is_named)
			i++;
		else
			forget(i);
	}
}

/* Nothing can be named that cannot be journalled, and nobody acts without the lease. */
static void on_journal(const struct process *who, enum journal_word word)
{
	for (size_t i = 0; word == JOURNAL_REFUSED && i < refused_count; i++)
		if (refused[i].since.who == who)
			stretch_begin(&refused[i].since, who);
}

static void on_second(const struct story *story)
{
	(void)story;
	for (size_t i = 0; i < refused_count; i++)
		if (!refused[i].is_named && refused[i].since.who == seen_driver() &&
		    stretch_ns(&refused[i].since) > figure_ns(C10_SAID))
			rule_breaks("C10", "%s in %s was refused %.1f s ago, and nothing followed",
				    call_rows[refused[i].id].name, refused[i].folder,
				    (double)stretch_ns(&refused[i].since) / 1e9);
}

static void on_end(const struct story *story)
{
	(void)story;
	for (size_t i = 0; i < refused_count; i++)
		if (!refused[i].is_named)
			rule_breaks("C10",
				    "%s in %s was refused, and nothing followed until the end",
				    call_rows[refused[i].id].name, refused[i].folder);
}

const struct clock_rule clock_refused = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_refusal = on_refusal,
	.on_call = on_call,
	.on_journal = on_journal,
	.on_end = on_end,
};
