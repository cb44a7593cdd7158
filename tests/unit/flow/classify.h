/*
 * What the tests of the failure classification share: a log given as one text, as
 * it would stand in a file, and its classification.
 */
#ifndef STK_TESTS_FLOW_CLASSIFY_H
#define STK_TESTS_FLOW_CLASSIFY_H

#include "tests/unit/flow/story.h"

#include "jobs/flow/failure.h"

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

static inline struct failure_classification classify(struct failure_evidence e, const char *log)
{
	static struct failure_line lines[LINES_MAX];
	struct failure_log said = { .lines = lines };
	struct failure_classification verdict;

	said.count = split(log, lines);
	e.logs = &said;
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
