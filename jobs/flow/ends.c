/* How a run ends: outcome, exit code and the words for it; the table in step.c
 * says when. */
#include <stdio.h>
#include <string.h>

#include "jobs/base/exitcode.h"
#include "jobs/flow/internal.h"
#include "jobs/flow/rules.h"

static void set_outcome(struct flow *f, enum outcome outcome, enum exit_code code,
			enum failure_class class)
{
	f->outcome = outcome;
	f->exit_code = (int)code;
	f->end_class = class;
	/* The cache that is looked at before a later stage is that stage's. */
	f->end_has_phase = f->state != FLOW_PLANNED || f->stage != PHASE_TRAIN;
	f->end_phase = f->state == FLOW_PLANNED ? f->stage : flow_phase_now(f);
}

static void decide(struct flow *f, enum outcome outcome, enum exit_code code,
		   enum failure_class class, const struct event *ev)
{
	set_outcome(f, outcome, code, class);
	transition_cause(f, ev);
}

static void reason(struct flow *f, const char *text, const char *more)
{
	size_t len = strlen(text);

	flow_copy(f->end_reason, sizeof f->end_reason, text);
	flow_copy(f->end_reason + len, sizeof f->end_reason - len, more);
}

static void end_well(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_SUCCEEDED, EXIT_DONE, CLASS_NONE, ev);
	reason(f, "training succeeded", "");
}

/* The candidate is left where it is: a run promotes nothing unless it is asked to. */
void end_stage(struct flow *f, const struct event *ev)
{
	transition_success(f, ev);
	if (flow_next_state(f) != FLOW_ENDING)
		return;
	end_well(f, ev);
	if (f->candidate[0] != '\0')
		reason(f, "training succeeded; the candidate is ", f->candidate);
}

void end_without_candidate(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_FAILED, EXIT_RUN_FAILED, CLASS_USER_CODE, ev);
	reason(f, "there is no candidate: ", EVENT_HAS(ev, reason) ? ev->reason : "");
	flow_copy(f->end_hint, sizeof f->end_hint,
		  "let the training save a checkpoint before it ends, or name its model with "
		  "promote.from: output:PATH");
}

void end_gate(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_REFUSED, EXIT_GATE, CLASS_NONE, ev);
	reason(f, "the gate says no: ", EVENT_HAS(ev, reason) ? ev->reason : "");
}

void end_promoted(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_SUCCEEDED, EXIT_DONE, CLASS_NONE, ev);
	snprintf(f->end_reason, sizeof f->end_reason, "promoted: generation %lld",
		 (long long)ev->generation);
}

void end_overtaken(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_REFUSED, EXIT_GATE, CLASS_NONE, ev);
	reason(f, "not promoted: ", ev->reason);
}

static void end_at_limit(struct flow *f, const struct event *ev)
{
	decide(f, OUTCOME_REFUSED, EXIT_GATE, CLASS_STOPPED, ev);
	snprintf(f->end_reason, sizeof f->end_reason, "limits.%s is reached: %s",
		 flow_limit_names[f->limit], f->stop_reason);
	f->end_hint[0] = '\0';
}

/* Trainings that were stopped for what they did themselves. */
static const struct stop_row {
	enum outcome outcome;
	enum exit_code code;
	enum failure_class class;
	const char *reason, *hint;
} stop_rows[STOP_CAUSE_COUNT] = {
	[STOP_MISMATCH] = { OUTCOME_FAILED, EXIT_RUN_FAILED, CLASS_USER_CONFIG,
			    "the training did not go on from its checkpoint: ",
			    "let the script load the checkpoint in STOKER_RESUME_FROM, or set "
			    "checkpoint.on_mismatch: warn" },
	[STOP_OUTPUT_INVALID] = { OUTCOME_FAILED, EXIT_RUN_FAILED, CLASS_USER_CONFIG,
				  "the training computed nothing: ",
				  "remove NEURON_EXTRACT_GRAPHS_ONLY, or the "
				  "neuron_parallel_compile before the training" },
	[STOP_OVER_BUDGET] = { OUTCOME_REFUSED, EXIT_GATE, CLASS_STOPPED,
			       "compile.jit_budget is exceeded: ",
			       "let phase 1 reach the late graphs (compile.max_steps, evaluation, "
			       "a save), or raise compile.jit_budget.graphs" },
};

/* Ends the run after the attempt has ended, or at once where none is under way. */
void end_stopped(struct flow *f, const struct event *ev)
{
	const struct stop_row *row = &stop_rows[f->stop_cause];

	if (f->stop_cause == STOP_LIMIT) {
		end_at_limit(f, ev);
		return;
	}
	if (row->reason) {
		decide(f, row->outcome, row->code, row->class, ev);
		reason(f, row->reason, f->stop_reason);
		flow_copy(f->end_hint, sizeof f->end_hint, row->hint);
		return;
	}
	decide(f, OUTCOME_STOPPED, EXIT_STOPPED, CLASS_STOPPED, ev);
	if (!f->stop_requested)
		reason(f, "the job was stopped on the engine, not by stoker", "");
	else if (f->stop_reason[0] == '\0')
		reason(f, "stopped on request", "");
	else
		reason(f, "stopped on request: ", f->stop_reason);
}

void end_on_request(struct flow *f, const struct event *ev)
{
	transition_stop(f, ev);
	end_stopped(f, ev);
}

void end_limited(struct flow *f, const struct event *ev)
{
	transition_limit(f, ev);
	end_stopped(f, ev);
}

/* The end was journalled behind the damage: it is journalled again as it was. */
void end_salvaged(struct flow *f, const struct event *ev)
{
	transition_salvage(f, ev);
	set_outcome(f, ev->state, (enum exit_code)ev->exit_code,
		    EVENT_HAS(ev, class) ? ev->class : CLASS_NONE);
	reason(f, EVENT_HAS(ev, evidence) ? ev->evidence : "", "");
}

/* The task in which the last attempt failed: whoever looks for the cause begins there. */
static void name_task(struct flow *f, const struct event *ev, const char *before)
{
	size_t len = strlen(f->end_reason);

	if (EVENT_HAS(ev, task))
		snprintf(f->end_reason + len, sizeof f->end_reason - len, "%s%s", before, ev->task);
}

void end_failed(struct flow *f, const struct event *ev)
{
	enum retry_end why = retry_end_after(f, ev);
	const char *phase = flow_phase_names[f->phase], *class = flow_class_names[ev->class];
	long long count;

	transition_failure(f, ev);
	if (ev->class == CLASS_QUOTA_PERMISSION)
		decide(f, OUTCOME_REFUSED, EXIT_REFUSED, ev->class, ev);
	else
		decide(f, OUTCOME_FAILED, EXIT_RUN_FAILED, ev->class, ev);
	switch (why) {
	default: /* RETRY_USELESS: this is not called where a retry goes on */
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed in attempt %lld: %s, which a retry does not cure", phase,
			 (long long)f->attempt, class);
		break;
	case RETRY_OF_CLASS:
		count = (long long)f->budget[f->phase].of_class[ev->class];
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld times: %s, which gets %lld retry", phase, count, class,
			 (long long)retry_rows[ev->class].limit); /* no class has more */
		break;
	case RETRY_ATTEMPTS:
		count = (long long)f->budget[f->phase].failures;
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld time%s (%s last): retry.attempts is used up", phase, count,
			 count == 1 ? "" : "s", class);
		break;
	case RETRY_NO_PROGRESS:
		count = (long long)f->budget[f->phase].failures_without_checkpoint;
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld time%s in a row (%s last) without %s: "
			 "retry.without_progress is used up",
			 phase, count, count == 1 ? "" : "s", class,
			 flow_phases[f->phase].progress);
		break;
	case RETRY_SAME_CAUSE:
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%s failed %lld times in the same way (%s)%s%s%s", phase,
			 (long long)retry_times(f, ev), class,
			 EVENT_HAS(ev, task) ? "" : ", without ",
			 EVENT_HAS(ev, task) ? "" : flow_phases[f->phase].progress,
			 EVENT_HAS(ev, task) ? "" : " between");
		break;
	case RETRY_LIMIT:
		snprintf(f->end_reason, sizeof f->end_reason,
			 "%lld attempts had machines (%s failed last: %s): limits.attempts is used "
			 "up",
			 (long long)f->machines, phase, class);
		break;
	}
	name_task(f, ev, why == RETRY_SAME_CAUSE ? " in " : "; it was in ");
}

void end_unproved(struct flow *f, const struct event *ev)
{
	char words[80];

	transition_verification(f, ev);
	/* If the compiler failed, its attempt has said why; else the graphs were not the ones
	 * asked for. */
	if (f->compile_failed)
		set_outcome(f, OUTCOME_FAILED, EXIT_RUN_FAILED, f->last_class);
	else
		decide(f, OUTCOME_REFUSED, EXIT_GATE, CLASS_NONE, ev);
	snprintf(words, sizeof words, "the cache%s%s is not complete%s",
		 f->stage == PHASE_TRAIN ? "" : " of ",
		 f->stage == PHASE_TRAIN ? "" : flow_phase_names[f->stage],
		 EVENT_HAS(ev, reason) ? ": " : "");
	reason(f, words, EVENT_HAS(ev, reason) ? ev->reason : "");
}

/* The outcome is taken from the journal, which is the truth. */
void ends_record(struct flow *f, const struct event *ev)
{
	f->outcome = ev->state;
	f->exit_code = (int)ev->exit_code;
}
