/*
 * What the tests of the failure classification share: a log given as one text, as
 * it would stand in a file, and its classification.
 */
#ifndef STK_TESTS_FLOW_CLASSIFY_H
#define STK_TESTS_FLOW_CLASSIFY_H

#include "tests/unit/flow/story.h"

#include "jobs/flow/failure.h"
#include "tests/unit/flow/guarded.h"

#define LINES_MAX 64

static inline size_t split(const char *log, struct failure_line lines[LINES_MAX])
{
	size_t count = 0;

	while (log && *log) {
		const char *end = strchr(log, '\n');
		size_t len = end ? (size_t)(end - log) : strlen(log);

		assert_true(count < LINES_MAX);
		lines[count++] = (struct failure_line){ log, len };
		log += len + (end ? 1 : 0);
	}
	return count;
}

/* Behind the log, and behind its lines, nothing may be read. */
static inline struct failure_classification classify(struct failure_evidence e, const char *log)
{
	struct failure_line lines[LINES_MAX];
	struct failure_log said = { .count = split(log, lines) };
	const char *text = log ? guarded_end(log, strlen(log)).text : NULL;
	struct failure_classification verdict;

	for (size_t i = 0; i < said.count; i++)
		lines[i].text = text + (lines[i].text - log);
	said.lines = guarded_array(GUARDED_LINES, lines, said.count * sizeof lines[0]);
	e.logs = guarded_array(GUARDED_LOGS, &said, sizeof said);
	e.log_count = 1;
	failure_classify(&e, &verdict);
	assert_true(strlen(verdict.evidence) < sizeof verdict.evidence);
	return verdict;
}

static inline struct failure_classification classify_exit(int exit, const char *log)
{
	return classify(
		(struct failure_evidence){ .phase = PHASE_TRAIN, .exit_known = true, .exit = exit },
		log);
}

#endif
