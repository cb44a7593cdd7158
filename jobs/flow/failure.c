/* The verdict on a failed attempt: the order of who is believed. See failure.h. */
#include "jobs/flow/failure.h"

#include <stdio.h>
#include <string.h>

#include "jobs/flow/failure_inside.h"

/* What is quoted of a log in which nothing is known. */
#define QUOTE_LAST 5

/* Signals by their number on Linux, which is what exit statuses hold. */
struct signal_row {
	int number;
	const char *name;
	bool own;   /* raised by the program's own doing */
	bool blame; /* and mostly by a mistake in it */
};
static const struct signal_row signals[] = {
	{ 1, "SIGHUP", false, false },   { 2, "SIGINT", false, false },
	{ 3, "SIGQUIT", false, false },  { 4, "SIGILL", true, true },
	{ 5, "SIGTRAP", true, true },    { 6, "SIGABRT", true, false },
	{ 7, "SIGBUS", true, false },    { 8, "SIGFPE", true, true },
	{ 9, "SIGKILL", false, false },  { 11, "SIGSEGV", true, true },
	{ 13, "SIGPIPE", false, false }, { 15, "SIGTERM", false, false },
	{ 24, "SIGXCPU", true, true },   { 25, "SIGXFSZ", true, true },
	{ 31, "SIGSYS", true, true },
};

static const struct signal_row *signal_find(int number)
{
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (signals[i].number == number)
			return &signals[i];
	return NULL;
}

static struct failure_line line_of(const char *text)
{
	return (struct failure_line){ text, strlen(text) };
}

struct judge {
	const struct failure_evidence *e;
	struct failure_verdict *ret;
	struct slip evidence, hint;
	int signal; /* 0: not ended by one, as far as is known */
};

static enum failure_class class_of(const struct failure_row *row, enum phase phase)
{
	bool early = phase == PHASE_PRECOMPILE && row->in_precompile != CLASS_NONE;

	return early ? row->in_precompile : row->class;
}

/* The first word of a captured text without its dashes: "--lr 3" → "lr". */
static struct failure_line option_of(struct failure_line text)
{
	while (text.len > 0 && (text.text[0] == '-' || text.text[0] == ' ')) {
		text.text++;
		text.len--;
	}
	for (size_t i = 0; i < text.len; i++) {
		char c = text.text[i];

		if (c == ' ' || c == '=' || c == ',' || c == '\t')
			text.len = i;
	}
	return text;
}

static void fill_hint(struct slip *slip, const char *hint, struct failure_line capture)
{
	while (*hint) {
		const char *brace = strchr(hint, '{');

		if (!brace) {
			slip_adds(slip, hint);
			return;
		}
		slip_add(slip, hint, (size_t)(brace - hint));
		if (strncmp(brace, "{option}", 8) == 0) {
			struct failure_line option = option_of(capture);

			slip_add(slip, option.text, option.len);
			hint = brace + 8;
		} else {
			slip_add(slip, capture.text, capture.len);
			hint = brace + 2;
		}
	}
}

static void decide(struct judge *j, enum failure_class class, const char *rule)
{
	j->ret->class = class;
	j->ret->rule = rule;
}

static void decide_by_row(struct judge *j, const struct failure_row *row,
			  struct failure_line capture)
{
	decide(j, class_of(row, j->e->phase), row->id);
	if (j->hint.len == 0)
		fill_hint(&j->hint, row->hint, capture);
}

/* No more than a line with words such as "error", of which no row knows. */
static bool is_complaint(const struct failure_finding *finding)
{
	return !finding->row && !failure_is_exception(finding);
}

static void decide_by_finding(struct judge *j, const struct failure_finding *finding)
{
	failure_quote(finding, &j->evidence);
	j->ret->node = finding->log->node;
	if (finding->row)
		decide_by_row(j, finding->row, finding->capture);
	else
		decide(j, failure_guess_finding(finding),
		       is_complaint(finding) ? "words" : "py-traceback");
}

/* The log of the node whose exit and signal are known; the only one where there is
 * one; NULL. */
static const struct failure_log *own_log(const struct judge *j)
{
	for (size_t i = 0; i < j->e->log_count; i++)
		if (j->e->logs[i].node == j->e->node)
			return &j->e->logs[i];
	return j->e->log_count == 1 ? &j->e->logs[0] : NULL;
}

/* What ended it, in words, and the end of the log. */
static void quote_end(struct judge *j)
{
	char text[96];
	const struct signal_row *row = signal_find(j->signal);
	const struct failure_log *log = own_log(j);
	size_t count = log ? log->count : 0, first = count, kept = 0;

	if (j->signal > 0)
		snprintf(text, sizeof text, "killed by signal %d (%s)", j->signal,
			 row ? row->name : "unnamed");
	else
		snprintf(text, sizeof text, "exit status %d", j->e->exit);
	if (j->signal == 0 && !j->e->exit_known)
		slip_add_line(&j->evidence, line_of("no exit status is known"));
	else
		slip_add_line(&j->evidence, line_of(text));
	if (j->e->engine_reason && j->e->engine_reason[0])
		slip_add_line(&j->evidence, line_of(j->e->engine_reason));
	j->ret->proof = j->evidence.len;
	while (first > 0 && kept < QUOTE_LAST)
		if (failure_line_trim(log->lines[--first]).len > 0)
			kept++;
	for (size_t i = first; i < count; i++)
		if (failure_line_trim(log->lines[i]).len > 0)
			slip_add_line(&j->evidence, failure_line_trim(log->lines[i]));
}

static bool by_agent(struct judge *j)
{
	struct failure_line message, capture = { 0 };
	const struct failure_row *row;

	if (j->e->agent_class == CLASS_NONE)
		return false;
	decide(j, j->e->agent_class, "agent");
	if (!j->e->agent_message || !j->e->agent_message[0]) {
		quote_end(j);
	} else {
		message = line_of(j->e->agent_message);
		slip_add_line(&j->evidence, message);
		row = failure_row_find(FAILURE_LOG, message, &capture);
		if (row && !j->e->agent_hint && class_of(row, j->e->phase) == j->ret->class)
			fill_hint(&j->hint, row->hint, capture);
	}
	if (j->e->agent_hint)
		slip_adds(&j->hint, j->e->agent_hint);
	return true;
}

static bool by_engine(struct judge *j)
{
	struct failure_line reason, capture = { 0 };
	const struct failure_row *row;

	if (!j->e->engine_reason || !j->e->engine_reason[0] ||
	    failure_is_quoted(j->e->engine_reason))
		return false;
	reason = line_of(j->e->engine_reason);
	row = failure_row_find(FAILURE_ENGINE, reason, &capture);
	if (!row)
		return false;
	slip_add_line(&j->evidence, reason);
	if (row->class == CLASS_QUOTA_PERMISSION && failure_quota_frees(j->e->engine_reason)) {
		decide(j, CLASS_CAPACITY, "eng-quota-in-use");
		slip_adds(&j->hint, "other jobs, or machines that a warm pool keeps, use up the "
				    "quota now: wait, or ask for a higher one");
		return true;
	}
	decide_by_row(j, row, capture);
	return true;
}

/* Statuses that say it by themselves. */
static bool by_exit(struct judge *j)
{
	const char *rule = NULL, *cure = "";

	if (!j->e->exit_known || j->signal > 0)
		return false;
	if (j->e->exit == 75) { /* EX_TEMPFAIL of sysexits.h: "try me again" */
		rule = "exit-75";
	} else if (j->e->exit == 126) {
		rule = "exit-126";
		cure = "a program of `command` cannot be executed: check its rights and what it "
		       "was built for";
	} else if (j->e->exit == 127) {
		rule = "exit-127";
		cure = "a program of `command` is not there: install it where the job runs, or "
		       "correct its name";
	}
	if (!rule)
		return false;
	decide(j, j->e->exit == 75 ? CLASS_TRANSIENT_INFRA : CLASS_USER_CONFIG, rule);
	slip_adds(&j->hint, cure);
	quote_end(j);
	return true;
}

static void by_signal(struct judge *j)
{
	const struct signal_row *row = signal_find(j->signal);

	quote_end(j);
	if (row && row->own) {
		/* Libraries abort for reasons of their own, and storage raises SIGBUS. */
		decide(j, row->blame ? CLASS_USER_CODE : CLASS_UNKNOWN, "crash");
		slip_adds(&j->hint, "the program crashed: run it under a debugger, or with "
				    "PYTHONFAULTHANDLER=1 in `env`");
		return;
	}
	decide(j, CLASS_UNKNOWN, j->signal == 9 ? "sigkill" : "killed");
	if (j->signal == 9)
		slip_adds(&j->hint, "something killed it; where memory is short, that is the "
				    "first suspect");
}

static bool is_outside(int signal)
{
	const struct signal_row *row = signal_find(signal);

	return signal > 0 && !(row && row->own);
}

/* Was `a` there before `b`? False also where nothing tells. */
static bool is_earlier(const struct failure_finding *a, const struct failure_finding *b)
{
	int64_t at = a->log->at_ms ? a->log->at_ms[a->traceback] : 0;
	int64_t other = b->log->at_ms ? b->log->at_ms[b->traceback] : 0;

	if (at == 0 || other == 0) {
		at = a->log->ended_ms;
		other = b->log->ended_ms;
	}
	return at > 0 && other > 0 && at < other;
}

/* The first cause over all nodes, else the first symptom. */
static void scan_nodes(const struct judge *j, struct failure_finding *ret)
{
	*ret = (struct failure_finding){ 0 };
	for (size_t i = 0; i < j->e->log_count; i++) {
		const struct failure_log *log = &j->e->logs[i];
		int signal = log == own_log(j) && j->signal > 0 ? j->signal : log->signal;
		struct failure_finding finding;

		failure_scan(log, is_outside(signal), &finding);
		if (!finding.found)
			continue;
		if (!ret->found || (ret->symptom && !finding.symptom) ||
		    (ret->symptom == finding.symptom && is_earlier(&finding, ret)))
			*ret = finding;
	}
}

/* The kernel's word: it killed a process for want of memory. A cause in the log
 * that has nothing to do with it was there all the same. */
static bool by_memory(struct judge *j, const struct failure_finding *finding)
{
	bool early = j->e->phase == PHASE_PRECOMPILE;
	bool cause = finding->found && !finding->symptom;
	enum failure_class class =
		cause && finding->row ? class_of(finding->row, j->e->phase) : CLASS_USER_CODE;

	if (!j->e->out_of_memory || (cause && j->signal != 9 && class != CLASS_COMPILE))
		return false;
	decide(j, early ? CLASS_COMPILE : CLASS_USER_CONFIG, "oom");
	slip_add_line(&j->evidence, line_of("the kernel killed a process for want of memory"));
	quote_end(j);
	slip_adds(&j->hint, early ? "the compiler ran out of memory: use fewer workers or a larger "
				    "instance"
				  : "the machine ran out of memory: use a smaller batch, fewer "
				    "workers or a larger instance");
	return true;
}

/* A watchdog ends its process with a signal: its words weigh more. */
static bool tells(const struct failure_finding *symptom)
{
	return symptom->row && symptom->row->class != CLASS_UNKNOWN;
}

/* Nothing is known, and nobody complains. */
static void by_last_words(struct judge *j)
{
	const char *engine =
		j->e->engine_reason && j->e->engine_reason[0] ? j->e->engine_reason : NULL;
	enum failure_class class = failure_guess_end(own_log(j), engine);

	decide(j, class, class == CLASS_UNKNOWN ? "nothing-known" : "words");
}

static void judge(struct judge *j)
{
	struct failure_finding finding;
	bool killed = is_outside(j->signal);

	if (by_agent(j) || by_engine(j))
		return;
	scan_nodes(j, &finding);
	/* The loader gives 127 too: a peer that was lost says more than the number. */
	if (!(finding.symptom && finding.row->class == CLASS_COMM && j->e->exit == 127) &&
	    by_exit(j))
		return;
	if (by_memory(j, &finding))
		return;
	if (finding.found && !finding.symptom && !(j->signal > 0 && is_complaint(&finding))) {
		decide_by_finding(j, &finding);
	} else if (j->signal > 0 && !(finding.found && (killed || tells(&finding)))) {
		by_signal(j);
	} else if (finding.found) {
		decide_by_finding(j, &finding);
	} else {
		quote_end(j);
		/* 2: what programs give that were called in a wrong way */
		if (j->e->exit_known && j->e->exit == 2)
			decide(j, CLASS_USER_CODE, "exit-2");
		else
			by_last_words(j);
	}
}

/* Shells report signal n as 128 + n, launchers in Python as -n, of which the kernel
 * keeps the lowest eight bits; 252 to 255 are statuses that the AWS CLI gives of its own.
 * 0: it is none. */
static int signal_of(int exit)
{
	if (exit > 128 && exit < 160)
		return exit - 128;
	if (exit < 0 && exit > -65)
		return -exit;
	if (exit > 224 && exit < 252 && signal_find(256 - exit))
		return 256 - exit;
	return 0;
}

/* Where no space was left, the agent knows which file system it was. */
static void name_mount(struct judge *j)
{
	static const char *const full[] = { "No space left on device", "Disk quota exceeded" };
	const char *mount = j->e->agent_mount;
	bool is_full = false;

	if (!mount || !mount[0] || j->ret->class != CLASS_USER_CONFIG)
		return;
	for (size_t i = 0; i < sizeof full / sizeof full[0]; i++)
		is_full = is_full || strstr(j->ret->evidence, full[i]);
	if (!is_full)
		return;
	slip_start(&j->hint, j->ret->hint, sizeof j->ret->hint);
	slip_adds(&j->hint, "no space is left on ");
	slip_adds(&j->hint, mount);
	slip_adds(&j->hint, ": free space there, or write to another file system");
}

static bool has_lines(const struct failure_evidence *e)
{
	for (size_t i = 0; i < e->log_count; i++)
		if (e->logs[i].count > 0)
			return true;
	return false;
}

#define QUOTED_MAX 64 /* lines of a program's words in the engine's */

static void judge_evidence(const struct failure_evidence *evidence, struct failure_verdict *ret);

/* What the program wrote comes from the engine: its exit, and where no log is there, its
 * words. */
static void judge_quoted(const struct failure_evidence *evidence, struct failure_verdict *ret)
{
	struct failure_line lines[QUOTED_MAX];
	struct failure_log log = { .node = evidence->node, .lines = lines };
	struct failure_evidence e = *evidence;
	int exit = failure_quoted_exit(e.engine_reason);

	if (!e.exit_known && exit >= 0) {
		e.exit_known = true;
		e.exit = exit;
	}
	if (!has_lines(&e)) {
		log.count = failure_quoted_lines(e.engine_reason, lines, QUOTED_MAX);
		e.logs = &log;
		e.log_count = 1;
	}
	judge_evidence(&e, ret);
}

void failure_judge(const struct failure_evidence *evidence, struct failure_verdict *ret)
{
	if (failure_is_quoted(evidence->engine_reason))
		judge_quoted(evidence, ret);
	else
		judge_evidence(evidence, ret);
}

static void judge_evidence(const struct failure_evidence *evidence, struct failure_verdict *ret)
{
	struct judge j = { .e = evidence, .ret = ret, .signal = evidence->signal };

	*ret = (struct failure_verdict){ .rule = "success", .node = evidence->node };
	slip_start(&j.evidence, ret->evidence, sizeof ret->evidence);
	slip_start(&j.hint, ret->hint, sizeof ret->hint);
	if (j.signal == 0 && evidence->exit_known)
		j.signal = signal_of(evidence->exit);
	if (evidence->agent_class == CLASS_NONE && evidence->exit_known && evidence->exit == 0 &&
	    j.signal == 0)
		return;
	judge(&j);
	if (ret->proof == 0)
		ret->proof = j.evidence.len;
	name_mount(&j);
	failure_sign(ret);
}
