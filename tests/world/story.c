/* The story of the runs: see story.h. */
#include "tests/world/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/journal/event_json.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/plan/plan.h"
#include "tests/world/bucket.h"
#include "tests/world/clocks_seen.h"

int __real_journal_append(struct journal *journal, const char *run, const struct event *ev,
			  struct err **err);
int __wrap_journal_append(struct journal *journal, const char *run, const struct event *ev,
			  struct err **err);
int __real_journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn,
			void *arg, struct err **err);
int __wrap_journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn,
			void *arg, struct err **err);
void __real_replay_apply(struct driver *driver, const struct event *ev);
void __wrap_replay_apply(struct driver *driver, const struct event *ev);
int __real_lease_keep(struct lease *lease, struct err **err);
int __wrap_lease_keep(struct lease *lease, struct err **err);

struct story *stories;

void story_reset(void)
{
	stories = NULL;
}

struct story *story_of(const char *run)
{
	for (struct story *story = stories; story; story = story->next)
		if (strcmp(story->run, run) == 0)
			return story;
	return NULL;
}

const struct story_event *story_last(const struct story *story, enum event_kind kind,
				     int64_t before)
{
	int64_t at = story ? story->count : 0;

	if (before > 0 && before - 1 < at)
		at = before - 1;
	for (; at > 0; at--)
		if (story->events[at - 1].event.kind == kind)
			return &story->events[at - 1];
	return NULL;
}

int64_t story_find(const struct story *story, enum event_kind kind, enum phase phase,
		   int64_t attempt, int64_t seq)
{
	for (int64_t i = 0; i < seq && i < story->count; i++) {
		const struct event *ev = &story->events[i].event;

		if (ev->kind == kind && ev->phase == phase && ev->attempt == attempt)
			return i + 1;
	}
	return 0;
}

int64_t story_begun_ns(const struct story_event *told)
{
	return told->writer ? told->made_ns : (told->event.at.ms - WORLD_EPOCH_MS) * WORLD_MS;
}

static void contradict(struct story *story, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void contradict(struct story *story, const char *format, ...)
{
	char words[500];
	va_list args;

	if (story->contradiction)
		return;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	story->contradiction = mem_copy(words);
}

static struct story *story_make(const char *run)
{
	struct story *story = mem_zero(1, sizeof *story);

	snprintf(story->run, sizeof story->run, "%s", run);
	story->next = stories;
	stories = story;
	return story;
}

static void begin(struct story *story, const struct event *ev)
{
	plan_policy(ev->plan, EVENT_HAS(ev, inputs) ? ev->inputs : NULL, story->run,
		    &story->policy);
	flow_init(&story->shadow, &story->policy);
}

static void tell(const char *run, json_t *row, const struct process *writer, int64_t made_ns)
{
	int64_t seq = js_int(row, "seq", 0);
	struct story *story = story_of(run);
	AUTO(err_freep) struct err *ignored = NULL;
	struct story_event *next;

	if (!story)
		story = story_make(run);
	if (seq <= story->count) {
		if (!json_equal(story->events[seq - 1].row, row))
			contradict(story, "event %lld was told as %.200s and is now %.200s",
				   (long long)seq,
				   json_dumps(story->events[seq - 1].row, JSON_COMPACT),
				   json_dumps(row, JSON_COMPACT));
		return;
	}
	if (seq != story->count + 1) {
		contradict(story, "event %lld follows event %lld", (long long)seq,
			   (long long)story->count);
		return;
	}
	story->events = mem_room(story->events, (size_t)story->count, sizeof *story->events);
	next = &story->events[story->count++];
	*next = (struct story_event){
		.row = json_deep_copy(row), .at_ns = now_ns, .made_ns = made_ns, .writer = writer
	};
	if (event_decode(next->row, &next->event, &ignored) <= 0)
		contradict(story, "event %lld cannot be read", (long long)seq);
	if (next->event.kind == EV_RUN_CREATED)
		begin(story, &next->event);
	flow_apply(&story->shadow, &next->event);
	world_stir();
	world_observer(); /* at this very moment, before anything else can happen */
}

int __wrap_journal_append(struct journal *journal, const char *run, const struct event *ev,
			  struct err **err)
{
	int64_t made_ns = now_ns;
	int appended = __real_journal_append(journal, run, ev, err);

	if (appended > 0)
		tell(run, journal_appended(journal), self, made_ns);
	seen_journal(self, appended >= 0 ? JOURNAL_WAS_WRITTEN : JOURNAL_REFUSED);
	return appended;
}

struct reading {
	const char *run;
	journal_fn fn;
	void *arg;
	int64_t seq; /* of the last event */
	bool cut;    /* the reader wanted no more */
};

static int read_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct reading *reading = arg;
	int done;

	tell(reading->run, row, NULL, now_ns);
	reading->seq = js_int(row, "seq", reading->seq);
	done = reading->fn(reading->arg, ev, row, err);
	reading->cut |= done != 0;
	return done;
}

int __wrap_journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn,
			void *arg, struct err **err)
{
	struct story *story = story_of(run);
	int64_t known = story ? story->count : 0;
	struct reading reading = { .run = run, .fn = fn, .arg = arg, .seq = from - 1 };
	int result = __real_journal_read(journal, run, from, read_event, &reading, err);

	if (result == 0 && !reading.cut && reading.seq < known && from <= known)
		contradict(story, "event %lld was acknowledged and is not in the journal",
			   (long long)known);
	seen_journal(self, result == 0 ? JOURNAL_WAS_READ : JOURNAL_REFUSED);
	return result;
}

/* What a driver goes by is in the journal: it applies no event before that is durable. */
void __wrap_replay_apply(struct driver *driver, const struct event *ev)
{
	struct story *story = story_of(driver->run);

	if (story && ev->seq > story->count)
		contradict(story, "a driver went by event %lld, which is not in the journal",
			   (long long)ev->seq);
	__real_replay_apply(driver, ev);
}

/* Without its lease a driver journals nothing. */
int __wrap_lease_keep(struct lease *lease, struct err **err)
{
	int result = __real_lease_keep(lease, err);

	if (result < 0)
		seen_journal(self, JOURNAL_REFUSED);
	return result;
}
