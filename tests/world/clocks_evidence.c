/*
 * C6. Evidence first: when the engine says that an attempt ended, attempt.ended is journalled
 * within 10 s (of the journal's next answer, where it refused). Nothing that can be refused comes
 * before it: locks, marks and copies follow, with events.
 *
 * Evidence is what lies in the attempt's own folder, and what the engine says. A refusal of
 * anything else is no excuse. The log is evidence, too: one of megabytes takes many requests, and
 * the ten seconds begin where its end is read. So is what the attempt has saved: a driver that was
 * away for long journals a hundred checkpoints first, each of which takes a request.
 *
 * Which tasks are done lies beside the attempts' folders. It is evidence of an attempt that ended
 * well, where the run goes on with it: a command that ends well may have left tasks undone. What
 * failed has failed whatever it had done before.
 */
#include <stdio.h>
#include <string.h>

#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/cloud.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/sqlite.h"

static struct {
	struct stretch since; /* the engine's word */
	enum phase phase;
	int64_t attempt;
	bool well;
	int64_t left_ns;      /* cloud_log_left_ns() */
	bool journal_refuses; /* since before that word, maybe */
} said;

static void reset(void)
{
	memset(&said, 0, sizeof said);
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	if (word->what != WORD_DESCRIBE || word->state != ENGINE_ENDED ||
	    word->who != seen_driver() || !seen_is_open(story, word->phase, word->attempt))
		return;
	if (said.since.who == word->who && said.phase == word->phase &&
	    said.attempt == word->attempt)
		return;
	said.phase = word->phase;
	said.attempt = word->attempt;
	said.well = word->well;
	stretch_begin(&said.since, word->who);
}

static void on_journal(const struct process *who, enum journal_word word)
{
	/* A journal that can be read need not be one that can be written. */
	if (who != seen_driver() || !who || word == JOURNAL_WAS_READ)
		return;
	if ((word == JOURNAL_REFUSED || said.journal_refuses) && who == said.since.who)
		stretch_begin(&said.since, who);
	said.journal_refuses = word == JOURNAL_REFUSED;
}

/* A folder of the workspace that each look into the attempt's own goes through: "runs", or that of
 * the run. The state has folders of these names, too; the journal is there. */
static bool leads_to_evidence(const struct refusal *refusal)
{
	static const char runs[] = "/runs";
	const char *tail = strstr(refusal->about, runs);

	if ((refusal->id != CALL_open && refusal->id != CALL_openat) || !tail ||
	    strstr(refusal->about, "/state/runs"))
		return false;
	tail += strlen(runs);
	return !*tail || (*tail == '/' && strcmp(tail + 1, playing->run) == 0);
}

/* A folder of the phase's tasks, on which the verdict rests. */
static bool is_of_tasks(const struct refusal *refusal)
{
	const struct story *story = story_of(playing->run);
	char folder[STORY_RUN_MAX + 32];

	snprintf(folder, sizeof folder, "/%s/tasks/%s", playing->run, flow_phase_names[said.phase]);
	return said.well && flow_phases[said.phase].has_tasks && story &&
	       !story->shadow.stop_requested && strstr(refusal->about, folder) != NULL;
}

/* True if it is evidence of how the attempt ended. What lies in its folder cannot be read either
 * where a folder above it does not open. */
static bool is_evidence(const struct refusal *refusal)
{
	char folder[64];

	snprintf(folder, sizeof folder, "%s-%lld", flow_phase_names[said.phase],
		 (long long)said.attempt);
	return strstr(refusal->about, folder) != NULL || leads_to_evidence(refusal) ||
	       is_of_tasks(refusal) || strncmp(refusal->about, "/proc/", 6) == 0;
}

static void on_refusal(const struct refusal *refusal)
{
	if (!said.since.who || refusal->who != said.since.who || !is_evidence(refusal))
		return;
	stretch_begin(&said.since, refusal->who);
	said.since.from_ns += figure_ns(C6_AGAIN);
}

static void check(const struct story *story)
{
	int64_t took_ns;

	(void)story;
	if (said.since.who && said.since.who != seen_driver())
		said.since.who = NULL;
	/* SQLite tries again by itself while another program writes. */
	if (said.since.who && (said.left_ns != cloud_log_left_ns() || sqlite_is_held()))
		stretch_begin(&said.since, said.since.who);
	said.left_ns = cloud_log_left_ns();
	took_ns = stretch_ns(&said.since);
	if (said.since.who && !said.journal_refuses && took_ns > figure_ns(C6_ENDED))
		rule_breaks("C6", "the engine said %.1f s ago that %s %d ended",
			    (double)took_ns / 1e9, flow_phase_names[said.phase], (int)said.attempt);
}

static void on_event(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;

	if (ev->kind == EV_CHECKPOINT_COMPLETE && said.since.who == story->events[index].writer &&
	    said.since.who)
		stretch_begin(&said.since, said.since.who);
	if (ev->kind != EV_ATTEMPT_ENDED || ev->phase != said.phase || ev->attempt != said.attempt)
		return;
	check(story);
	said.since.who = NULL;
}

const struct clock_rule clock_evidence = {
	.reset = reset,
	.on_event = on_event,
	.on_second = check,
	.on_engine = on_engine,
	.on_refusal = on_refusal,
	.on_journal = on_journal,
};
