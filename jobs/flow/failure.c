/* Classifies a command that failed: the order in which evidence is believed. See failure.h. */
#include "jobs/flow/failure.h"

#include <stdio.h>
#include <string.h>

#include "jobs/flow/failure_internal.h"

/* Number of lines quoted of a log in which nothing is known. */
#define QUOTE_LAST 5

/* Signals by their number on Linux, which is what exit statuses hold. */
struct signal_row {
	int number;
	const char *name;
	bool own; /* raised by the program itself */
};
static const struct signal_row signals[] = {
	{ 1, "SIGHUP", false },  { 2, "SIGINT", false },   { 3, "SIGQUIT", false },
	{ 4, "SIGILL", true },   { 5, "SIGTRAP", true },   { 6, "SIGABRT", true },
	{ 7, "SIGBUS", true },   { 8, "SIGFPE", true },    { 9, "SIGKILL", false },
	{ 11, "SIGSEGV", true }, { 13, "SIGPIPE", false }, { 15, "SIGTERM", false },
	{ 24, "SIGXCPU", true }, { 25, "SIGXFSZ", true },  { 31, "SIGSYS", true },
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

struct classifier {
	const struct failure_evidence *e;
	struct failure_classification *ret;
	struct fixed_string evidence, hint;
	int signal; /* 0: not ended by a signal, as far as is known */
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

static void fill_hint(const struct classifier *c, struct fixed_string *string, const char *hint,
		      struct failure_line capture)
{
	const char *booleans = c->e->booleans;

	while (*hint) {
		size_t len = strcspn(hint, "{");

		failure_text_add(string, hint, len);
		hint += len;
		if (strncmp(hint, "{option}", 8) == 0) {
			struct failure_line option = option_of(capture);

			failure_text_add(string, option.text, option.len);
			hint += 8;
		} else if (strncmp(hint, "{booleans}", 10) == 0) {
			failure_text_adds(string,
					  booleans && booleans[0] ? booleans : "an argument");
			hint += 10;
		} else if (strncmp(hint, "{}", 2) == 0) {
			failure_text_add(string, capture.text, capture.len);
			hint += 2;
		} else if (*hint) {
			failure_text_add(string, hint++, 1);
		}
	}
}

static void decide(struct classifier *c, enum failure_class class, const char *rule)
{
	c->ret->class = class;
	c->ret->rule = rule;
}

static void decide_by_row(struct classifier *c, const struct failure_row *row,
			  struct failure_line capture)
{
	decide(c, class_of(row, c->e->phase), row->id);
	fill_hint(c, &c->hint, row->hint, capture);
}

/* True for a line with words such as "error" that no row knows. */
static bool is_complaint(const struct failure_finding *finding)
{
	return !finding->row && !failure_is_exception(finding);
}

static void decide_by_finding(struct classifier *c, const struct failure_finding *finding)
{
	failure_quote(finding, &c->evidence);
	c->ret->node = finding->log->node;
	if (finding->row)
		decide_by_row(c, finding->row, finding->capture);
	else if (is_complaint(finding))
		decide(c, CLASS_UNKNOWN, "complaint");
	else if (failure_is_mistake(finding))
		decide(c, CLASS_USER_CODE, "py-mistake");
	else
		decide(c, CLASS_UNKNOWN, "py-exception");
}

/* Returns the log of the evidence's node, else the only log; NULL if there is neither. */
static const struct failure_log *own_log(const struct classifier *c)
{
	for (size_t i = 0; i < c->e->log_count; i++)
		if (c->e->logs[i].node == c->e->node)
			return &c->e->logs[i];
	return c->e->log_count == 1 ? &c->e->logs[0] : NULL;
}

/* Quotes how the command ended, and the end of the log. */
static void quote_end(struct classifier *c)
{
	char text[96];
	const struct signal_row *row = signal_find(c->signal);
	const struct failure_log *log = own_log(c);
	size_t count = log ? log->count : 0, first = count, kept = 0;

	if (c->signal > 0)
		snprintf(text, sizeof text, "killed by signal %d (%s)", c->signal,
			 row ? row->name : "unnamed");
	else
		snprintf(text, sizeof text, "exit status %d", c->e->exit);
	if (c->signal == 0 && !c->e->exit_known)
		failure_text_add_line(&c->evidence, line_of("no exit status is known"));
	else
		failure_text_add_line(&c->evidence, line_of(text));
	if (c->e->engine_reason && c->e->engine_reason[0])
		failure_text_add_line(&c->evidence, line_of(c->e->engine_reason));
	c->ret->decisive_bytes = c->evidence.len;
	while (first > 0 && kept < QUOTE_LAST)
		if (failure_line_trim(log->lines[--first]).len > 0)
			kept++;
	for (size_t i = first; i < count; i++)
		if (failure_line_trim(log->lines[i]).len > 0)
			failure_text_add_line(&c->evidence, failure_line_trim(log->lines[i]));
}

/* True if the agent quotes a service that it lacks a right, which another attempt lacks too. */
static bool is_right_missed(const struct classifier *c, const struct failure_row *row)
{
	return (c->e->agent_class == CLASS_UNKNOWN || c->e->agent_class == CLASS_TRANSIENT_INFRA) &&
	       class_of(row, c->e->phase) == CLASS_QUOTA_PERMISSION;
}

static bool by_agent(struct classifier *c)
{
	struct failure_line message, capture = { 0 };
	const struct failure_row *row;

	if (c->e->agent_class == CLASS_NONE)
		return false;
	decide(c, c->e->agent_class, "agent");
	if (!c->e->agent_message || !c->e->agent_message[0]) {
		quote_end(c);
	} else {
		message = line_of(c->e->agent_message);
		failure_text_add_line(&c->evidence, message);
		row = failure_row_find(FAILURE_LOG, message, &capture);
		if (row && is_right_missed(c, row))
			decide(c, CLASS_QUOTA_PERMISSION, row->id);
		if (row && !c->e->agent_hint && class_of(row, c->e->phase) == c->ret->class)
			fill_hint(c, &c->hint, row->hint, capture);
	}
	if (c->e->agent_hint)
		failure_text_adds(&c->hint, c->e->agent_hint);
	return true;
}

static bool by_engine(struct classifier *c)
{
	struct failure_line reason, capture = { 0 };
	const struct failure_row *row;

	if (!c->e->engine_reason || !c->e->engine_reason[0] ||
	    failure_is_quoted(c->e->engine_reason))
		return false;
	reason = line_of(c->e->engine_reason);
	row = failure_row_find(FAILURE_ENGINE, reason, &capture);
	if (!row)
		return false;
	failure_text_add_line(&c->evidence, reason);
	if (row->class == CLASS_QUOTA_PERMISSION && failure_quota_frees(c->e->engine_reason)) {
		decide(c, CLASS_CAPACITY, "eng-quota-in-use");
		failure_text_adds(&c->hint,
				  "other jobs, or machines that a warm pool keeps, use up the "
				  "quota now: wait, or ask for a higher one");
		return true;
	}
	decide_by_row(c, row, capture);
	return true;
}

/* Exit statuses that are conclusive by themselves. */
static bool by_exit(struct classifier *c)
{
	static const struct {
		int exit;
		enum failure_class class;
		const char *rule, *hint;
	} rows[] = {
		/* EX_TEMPFAIL of sysexits.h: "try me again" */
		{ 75, CLASS_TRANSIENT_INFRA, "exit-75", "" },
		{ 126, CLASS_USER_CONFIG, "exit-126",
		  "a program of `command` cannot be executed: check its rights and what it was "
		  "built for" },
		{ 127, CLASS_USER_CONFIG, "exit-127",
		  "a program of `command` is not found: install it where the job runs, or correct "
		  "its name" },
	};

	if (!c->e->exit_known || c->signal > 0)
		return false;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].exit != c->e->exit)
			continue;
		decide(c, rows[i].class, rows[i].rule);
		failure_text_adds(&c->hint, rows[i].hint);
		quote_end(c);
		return true;
	}
	return false;
}

/* `finding` is the log's evidence beside the signal, for the hint. */
static void by_signal(struct classifier *c, const struct failure_finding *finding)
{
	const struct signal_row *row = signal_find(c->signal);

	quote_end(c);
	if (row && row->own) {
		/* A driver or a library crashes as a program does, so a crash is retried. */
		decide(c, CLASS_UNKNOWN, "crash");
		failure_text_adds(&c->hint, "the program crashed: run it under a debugger, or with "
					    "PYTHONFAULTHANDLER=1 in `env`");
		return;
	}
	decide(c, CLASS_UNKNOWN, c->signal == 9 ? "sigkill" : "killed");
	if (finding->row)
		fill_hint(c, &c->hint, finding->row->hint, finding->capture);
	else if (c->signal == 9)
		failure_text_adds(
			&c->hint,
			"the process was killed from outside; check first if memory was short");
}

static bool is_outside(int signal)
{
	const struct signal_row *row = signal_find(signal);

	return signal > 0 && !(row && row->own);
}

/* True for a fault, such as SIGSEGV. A lost peer does not explain it, as it does an abort, by
 * which watchdogs end their process. */
static bool is_crash(int signal)
{
	const struct signal_row *row = signal_find(signal);

	return row && row->own && strcmp(row->name, "SIGABRT") != 0;
}

/* True if `a` was there before `b`; false also if the times are not known. */
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

/* Weight of a finding beside those of other nodes: a cause outweighs a symptom, a symptom a mere
 * complaint, and a complaint a symptom of class UNKNOWN, which only tells of the end. */
static int strength(const struct failure_finding *finding)
{
	if (finding->guess)
		return 1;
	if (!finding->symptom)
		return 3;
	return finding->row->class == CLASS_UNKNOWN ? 0 : 2;
}

/* Returns the signal that ended the command of a log's node, or its first rank as a launcher
 * tells it. */
static int signal_in(const struct classifier *c, const struct failure_log *log)
{
	if (log == own_log(c) && c->signal > 0)
		return c->signal;
	return log->signal > 0 ? log->signal : failure_reported_signal(log);
}

/* Finds the first cause over all nodes, else the first symptom. */
static void scan_nodes(const struct classifier *c, struct failure_finding *ret)
{
	*ret = (struct failure_finding){ 0 };
	for (size_t i = 0; i < c->e->log_count; i++) {
		const struct failure_log *log = &c->e->logs[i];
		int signal = signal_in(c, log);
		struct failure_finding finding;

		failure_scan(log, is_outside(signal), &finding);
		if (!finding.found)
			continue;
		if (!ret->found || strength(&finding) > strength(ret) ||
		    (strength(&finding) == strength(ret) && is_earlier(&finding, ret)))
			*ret = finding;
	}
}

/* The user's own rows: in the engine's words, else in the first line of any node. */
static bool by_own_rows(struct classifier *c)
{
	struct failure_line reason = line_of(c->e->engine_reason ? c->e->engine_reason : "");
	struct failure_log engine = { .node = c->e->node, .lines = &reason, .count = 1 };
	struct failure_finding first = { 0 };

	if (!c->e->own)
		return false;
	failure_scan_own(c->e->own, &engine, &first);
	for (size_t i = 0; !(first.found && first.log == &engine) && i < c->e->log_count; i++) {
		struct failure_finding finding;

		failure_scan_own(c->e->own, &c->e->logs[i], &finding);
		if (finding.found && (!first.found || is_earlier(&finding, &first)))
			first = finding;
	}
	if (first.found)
		decide_by_finding(c, &first);
	return first.found;
}

/* The kernel reported that it killed a process for lack of memory. An unrelated cause in the log
 * takes precedence, unless the command died of SIGKILL. */
static bool by_memory(struct classifier *c, const struct failure_finding *finding)
{
	bool early = c->e->phase == PHASE_PRECOMPILE;
	bool cause = finding->found && !finding->symptom;
	bool of_compiler = finding->row && class_of(finding->row, c->e->phase) == CLASS_COMPILE;

	if (!c->e->out_of_memory || (cause && c->signal != 9 && !of_compiler))
		return false;
	decide(c, early ? CLASS_COMPILE : CLASS_USER_CONFIG, "oom");
	failure_text_add_line(&c->evidence,
			      line_of("the kernel killed a process for lack of memory"));
	quote_end(c);
	failure_text_adds(&c->hint,
			  early ? "the compiler ran out of memory: use fewer workers or a larger "
				  "instance"
				: "the machine ran out of memory: use a smaller batch, fewer "
				  "workers or a larger instance");
	return true;
}

/* True if the symptom weighs more than the signal: a watchdog ends its process with one, after
 * its words. */
static bool tells(const struct failure_finding *symptom)
{
	return symptom->row && symptom->row->class != CLASS_UNKNOWN;
}

static void classify_cause(struct classifier *c)
{
	struct failure_finding finding;
	int reported;

	if (by_own_rows(c) || by_agent(c) || by_engine(c))
		return;
	scan_nodes(c, &finding);
	/* A launcher exits with a status of its own if a rank was killed or crashed. */
	reported = own_log(c) ? failure_reported_signal(own_log(c)) : 0;
	if (c->signal == 0 && (is_outside(reported) || is_crash(reported)))
		c->signal = reported;
	/* The loader exits with 127 too: a lost peer says more than the number. */
	if (!(finding.symptom && finding.row->class == CLASS_COMM && c->e->exit == 127) &&
	    by_exit(c))
		return;
	if (by_memory(c, &finding))
		return;
	if (finding.found && !finding.symptom && !(c->signal > 0 && is_complaint(&finding))) {
		decide_by_finding(c, &finding);
	} else if (c->signal > 0 && (is_crash(c->signal) || !tells(&finding))) {
		by_signal(c, &finding);
	} else if (finding.found) {
		decide_by_finding(c, &finding);
	} else {
		quote_end(c);
		decide(c, CLASS_UNKNOWN, "nothing-known");
	}
}

/* Shells report signal n as 128 + n, launchers in Python as -n, of which the kernel keeps the
 * lowest eight bits; the AWS CLI uses 252 to 255 for statuses of its own. Returns 0 if the
 * status does not stand for a signal. */
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

/* If no space was left, the agent knows on which file system. */
static void name_mount(struct classifier *c)
{
	static const char *const full[] = { "No space left on device", "Disk quota exceeded" };
	const char *mount = c->e->agent_mount;
	bool is_full = false;

	if (!mount || !mount[0] || c->ret->class != CLASS_USER_CONFIG)
		return;
	for (size_t i = 0; i < sizeof full / sizeof full[0]; i++)
		is_full = is_full || strstr(c->ret->evidence, full[i]);
	if (!is_full)
		return;
	failure_text_start(&c->hint, c->ret->hint, sizeof c->ret->hint);
	failure_text_adds(&c->hint, "no space is left on ");
	failure_text_adds(&c->hint, mount);
	failure_text_adds(&c->hint, ": free space there, or write to another file system");
}

static bool has_lines(const struct failure_evidence *e)
{
	for (size_t i = 0; i < e->log_count; i++)
		if (e->logs[i].count > 0)
			return true;
	return false;
}

#define QUOTED_MAX 64 /* lines of a program's words in the engine's */

static void classify_evidence(const struct failure_evidence *evidence,
			      struct failure_classification *ret);

/* The engine reports what the program wrote: its exit status and, if there is no log, its words. */
static void classify_quoted(const struct failure_evidence *evidence,
			    struct failure_classification *ret)
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
	classify_evidence(&e, ret);
}

void failure_classify_command(const struct failure_evidence *evidence,
			      struct failure_classification *ret)
{
	if (failure_is_quoted(evidence->engine_reason))
		classify_quoted(evidence, ret);
	else
		classify_evidence(evidence, ret);
}

static void classify_evidence(const struct failure_evidence *evidence,
			      struct failure_classification *ret)
{
	struct classifier c = { .e = evidence, .ret = ret, .signal = evidence->signal };

	*ret = (struct failure_classification){ .rule = "success",
						.node = evidence->node,
						.end_node = evidence->node };
	failure_text_start(&c.evidence, ret->evidence, sizeof ret->evidence);
	failure_text_start(&c.hint, ret->hint, sizeof ret->hint);
	if (c.signal == 0 && evidence->exit_known)
		c.signal = signal_of(evidence->exit);
	if (evidence->agent_class == CLASS_NONE && evidence->exit_known && evidence->exit == 0 &&
	    c.signal == 0)
		return;
	classify_cause(&c);
	if (ret->decisive_bytes == 0)
		ret->decisive_bytes = c.evidence.len;
	name_mount(&c);
	failure_sign(ret);
}
