/*
 * Judges logs as a driver does while it watches a job: each line goes through the metrics and
 * first_cause as in jobs/run/attempt/reading.c, and what is left through failure_classify() as in
 * jobs/run/attempt/attempt_end.c.
 *
 * stdin: "case NODES EXIT STEP-REGEX" ("-": none), then "NODE MS TEXT" for each line in the order
 * in which it was read, then "end"; and so on. EXIT is a shell's, of node 0. stdout: a JSON object
 * a case: class, action, rule, node, evidence, hint.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/flow/flow.h"
#include "jobs/run/attempt/first_cause.h"
#include "jobs/run/attempt/metrics.h"
#include "jobs/run/driver_internal.h"

#define NODES_MAX 8

struct node {
	char *last[LAST_LINES];
	size_t lines;
};

struct job {
	size_t nodes;
	int exit;
	struct metrics *metrics;
	struct first_cause *cause;
	struct node node[NODES_MAX];
	int64_t step;
	int64_t current[NODES_MAX];
};

static void fail(const char *what)
{
	fprintf(stderr, "judge_logs: %s\n", what);
	exit(2);
}

static void begin(struct job *job, char *words)
{
	char *end;
	struct err *err = NULL;

	*job = (struct job){ .nodes = strtoul(words, &end, 10), .step = -1 };
	job->exit = (int)strtol(end, &end, 10);
	if (job->nodes == 0 || job->nodes > NODES_MAX || *end != ' ')
		fail("not a case");
	json_auto_t *specs = strcmp(end + 1, "-") == 0
				     ? json_array()
				     : json_pack("[{s:s, s:s}]", "name", "step", "regex", end + 1);

	if (metrics_new(specs, &job->metrics, &err) < 0)
		fail("the expression is refused");
	for (size_t at = 0; at < NODES_MAX; at++)
		job->current[at] = -1;
	job->cause = first_cause_new(job->nodes, true, NULL);
}

static void read_line(struct job *job, char *text)
{
	size_t at = strtoul(text, &text, 10), len;
	struct mono now = { strtoll(text, &text, 10) };
	struct node *node = &job->node[at];
	struct step_progress progress;

	if (at >= job->nodes || *text++ != ' ')
		fail("not a line of a case");
	len = strlen(text);
	if (metrics_line(job->metrics, &job->current[at], text, len)) {
		progress = metrics_progress(job->metrics);
		if (progress.known && progress.step > job->step) {
			job->step = progress.step;
			first_cause_step(job->cause, at, now);
		}
	}
	first_cause_line(job->cause, at, text, len, node->lines, now);
	free(node->last[node->lines % LAST_LINES]);
	node->last[node->lines++ % LAST_LINES] = mem_copy_n(text, len);
}

static size_t telling(const struct job *job, size_t at, struct failure_line *ret,
		      size_t *ret_survived)
{
	const struct node *node = &job->node[at];
	size_t first = node->lines < LAST_LINES ? 0 : node->lines - LAST_LINES;
	size_t count = first_cause_get(job->cause, at, first, ret);

	for (size_t i = first; i < node->lines; i++) {
		const char *text = node->last[i % LAST_LINES];

		if (i < first_cause_survived(job->cause, at))
			*ret_survived = count + 1;
		ret[count++] = (struct failure_line){ text, strlen(text) };
	}
	return count;
}

static void judge(struct job *job)
{
	static struct failure_line lines[NODES_MAX][CAUSE_LINES + LAST_LINES];
	struct failure_log logs[NODES_MAX] = { 0 };
	struct failure_evidence evidence = { .phase = PHASE_TRAIN,
					     .exit_known = true,
					     .exit = job->exit,
					     .logs = logs,
					     .log_count = job->nodes };
	struct failure_classification said;

	for (size_t i = 0; i < job->nodes; i++) {
		logs[i] = (struct failure_log){ .node = (int)i, .lines = lines[i] };
		logs[i].count = telling(job, i, lines[i], &logs[i].survived);
	}
	failure_classify(&evidence, &said);
	json_auto_t *reply = json_pack(
		"{s:s, s:s, s:s, s:i, s:s, s:s}", "class", flow_class_names[said.class], "action",
		flow_action_names[retry_rows[said.class].action], "rule", said.rule, "node",
		said.node, "evidence", said.evidence, "hint", said.hint);
	AUTO(auto_free) char *text = json_dumps(reply, JSON_COMPACT);

	printf("%s\n", text ? text : "{}");
	for (size_t i = 0; i < job->nodes; i++)
		for (size_t k = 0; k < LAST_LINES; k++)
			free(job->node[i].last[k]);
	metrics_freep(&job->metrics);
	first_cause_freep(&job->cause);
}

int main(void)
{
	AUTO(auto_free) char *line = NULL;
	size_t size = 0;
	ssize_t len;
	struct job job = { 0 };

	while ((len = getline(&line, &size, stdin)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (strncmp(line, "case ", 5) == 0)
			begin(&job, line + 5);
		else if (strcmp(line, "end") == 0)
			judge(&job);
		else
			read_line(&job, line);
	}
	return 0;
}
