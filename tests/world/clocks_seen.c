/* What drivers were told, and when: see clocks_seen.h. */
#include "tests/world/clocks_seen.h"

#include <string.h>

#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

static const struct clock_rule *const rows[] = {
	&clock_evidence, &clock_backoff,  &clock_limits,  &clock_heard,   &clock_unreachable,
	&clock_stop,     &clock_takeover, &clock_lease,   &clock_helpers, &clock_command,
	&clock_end,      &clock_refused,  &clock_timeout, &clock_ledger,  &clock_submit,
};

#define EACH(row)                                                                                  \
	for (size_t row##_at = 0; row##_at < STK_LENGTH(rows) && !rules_broken; row##_at++)        \
		for (const struct clock_rule *row = rows[row##_at]; row; row = NULL)

static const struct process *driver;
static uint64_t play; /* ticks of an earlier play are no more */

const struct process *seen_driver(void)
{
	return driver && driver->state == PROCESS_ALIVE ? driver : NULL;
}

bool seen_is_open(const struct story *story, enum phase phase, int64_t attempt)
{
	return seen_has_job(story) && story->shadow.phase == phase &&
	       story->shadow.attempt == attempt;
}

bool seen_has_job(const struct story *story)
{
	const struct flow *flow = &story->shadow;

	return flow_has_attempts(flow) && flow->attempt_state >= ATTEMPT_INTENDED &&
	       flow->attempt_state <= ATTEMPT_LOST;
}

static void on_second(void *arg)
{
	const struct story *story = story_of(playing->run);

	if (arg != &play || rules_broken)
		return;
	time_look();
	EACH(row)
	{
		if (story && row->on_second)
			row->on_second(story);
	}
	world_at(now_ns + WORLD_S, on_second, arg);
}

static void on_signal(const struct process *to, int signo)
{
	if (schedule_serves_neighbour(to))
		return;
	EACH(row)
	{
		if (row->on_signal)
			row->on_signal(to, signo);
	}
}

void seen_next_run(void)
{
	driver = NULL;
	EACH(row)
	{
		if (row->reset)
			row->reset();
	}
}

void seen_begin(void)
{
	time_reset();
	signal_watcher = on_signal;
	world_at(now_ns + WORLD_S, on_second, &play);
}

void seen_look(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind == EV_DRIVER_TOOK_OVER)
			driver = story->events[s].writer;
		EACH(row)
		{
			if (row->on_event)
				row->on_event(story, s);
		}
		if (ev->kind == EV_DRIVER_LEFT && ev->epoch == story->shadow.epoch)
			driver = NULL;
	}
}

void seen_look_end(const struct story *story)
{
	EACH(row)
	{
		if (row->on_end)
			row->on_end(story);
	}
}

void seen_refusal(const struct process *who, enum call_id id, const char *about, bool done)
{
	const struct refusal refusal = { who, id, about ? about : "", done };

	if (schedule_serves_neighbour(who))
		return;
	EACH(row)
	{
		if (row->on_refusal)
			row->on_refusal(&refusal);
	}
}

void seen_journal(const struct process *who, enum journal_word word)
{
	if (schedule_serves_neighbour(who))
		return;
	EACH(row)
	{
		if (row->on_journal)
			row->on_journal(who, word);
	}
}

void seen_call(const struct process *who, enum call_id id, const char *about)
{
	if (!about || who != driver)
		return;
	EACH(row)
	{
		if (row->on_call)
			row->on_call(who, id, about);
	}
}

/* ---- the engine ---- */

static const struct engine_ops *real_ops[2];
static struct engine_ops heard_ops[2];

static const struct engine_ops *real_of(const struct engine *engine)
{
	return engine->ops == &heard_ops[0] ? real_ops[0] : real_ops[1];
}

static void tell(struct engine_word word, const char *prefix)
{
	const struct story *story = story_of(playing->run);
	const char *name = strrchr(prefix, '/') ? strstr(prefix, "runs/") : NULL;

	word.who = self;
	name = name ? strchr(name + strlen("runs/"), '/') : NULL;
	if (!name || !story || schedule_serves_neighbour(self))
		return;
	name++;
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		size_t len = strlen(flow_phase_names[phase]);

		if (strncmp(name, flow_phase_names[phase], len) != 0 || name[len] != '-')
			continue;
		word.phase = (enum phase)phase;
		word.attempt = strtoll(name + len + 1, NULL, 10);
		EACH(row)
		{
			if (row->on_engine)
				row->on_engine(story, &word);
		}
	}
}

static int heard_open(const struct engine_where *where, struct engine **ret, struct err **err);
static int heard_open_cloud(const struct engine_where *where, struct engine **ret,
			    struct err **err);

static void act(const char *what)
{
	if (schedule_serves_neighbour(self))
		return;
	EACH(row)
	{
		if (row->on_act)
			row->on_act(self, what);
	}
}

static int heard_submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	int result;

	act("starts");
	tell((struct engine_word){ .what = WORD_SUBMITS }, job->prefix);
	result = real_of(engine)->submit(engine, job, err);
	tell((struct engine_word){ .what = WORD_SUBMIT,
				   .answered = result == 0,
				   .there = result == 0,
				   .absent = result < 0 },
	     job->prefix);
	return result;
}

static int heard_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	int result = real_of(engine)->find(engine, name, prefix, err);

	tell((struct engine_word){ .what = WORD_FIND,
				   .answered = result >= 0,
				   .there = result > 0,
				   .absent = result == 0 },
	     prefix);
	return result;
}

static int heard_describe(struct engine *engine, const char *name, const char *prefix,
			  struct engine_status *ret, struct err **err)
{
	int result = real_of(engine)->describe(engine, name, prefix, ret, err);

	tell((struct engine_word){ .what = WORD_DESCRIBE,
				   .answered = result == 0 && ret->state != ENGINE_UNKNOWN,
				   .there = result == 0 && ret->state != ENGINE_UNKNOWN,
				   .state = result == 0 ? ret->state : ENGINE_UNKNOWN,
				   .well = result == 0 && ret->state == ENGINE_ENDED &&
					   ret->exit_known && ret->exit == 0 },
	     prefix);
	return result;
}

static int heard_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		      struct err **err)
{
	int result;

	act("stops");
	result = real_of(engine)->stop(engine, name, prefix, grace_ms, err);
	tell((struct engine_word){ .what = WORD_STOP, .answered = result == 0 }, prefix);
	return result;
}

static int open_heard(size_t which, const struct engine_where *where, struct engine **ret,
		      struct err **err)
{
	int result = real_ops[which]->open(where, ret, err);

	if (result == 0)
		(*ret)->ops = &heard_ops[which];
	return result;
}

static int heard_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	return open_heard(0, where, ret, err);
}

static int heard_open_cloud(const struct engine_where *where, struct engine **ret, struct err **err)
{
	return open_heard(1, where, ret, err);
}

const struct engine_ops *seen_engine(const struct engine_ops *real)
{
	size_t which;

	if (!real)
		return NULL;
	which = strcmp(real->name, "local") != 0;
	real_ops[which] = real;
	heard_ops[which] = *real;
	heard_ops[which].open = which ? heard_open_cloud : heard_open;
	heard_ops[which].submit = heard_submit;
	heard_ops[which].find = heard_find;
	heard_ops[which].describe = heard_describe;
	heard_ops[which].stop = heard_stop;
	return &heard_ops[which];
}
