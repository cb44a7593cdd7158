/*
 * Part of rule 2: a job that may have reached its engine is looked for before it is submitted
 * again. Names keep a service from starting it twice only as far as it knows the name already: a
 * listing is late (cloud.h).
 *
 * It may be there from the beginning of a submit on, whatever becomes of the driver, until the
 * engine says that the call had no effect, or that there is no such job.
 */
#include <string.h>

#include "tests/world/clocks_rules.h"
#include "tests/world/rules.h"

static struct {
	int64_t attempt;
	bool may_be_there;
} submitted[PHASE_COUNT];

static void reset(void)
{
	memset(submitted, 0, sizeof submitted);
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	bool same = submitted[word->phase].attempt == word->attempt;

	(void)story;
	switch (word->what) {
	case WORD_SUBMITS:
		if (same && submitted[word->phase].may_be_there && word->who == seen_driver())
			rule_breaks("2", "%s %d may be there and is submitted again",
				    flow_phase_names[word->phase], (int)word->attempt);
		submitted[word->phase].attempt = word->attempt;
		submitted[word->phase].may_be_there = true;
		break;
	case WORD_SUBMIT:
	case WORD_FIND:
		if (same && word->absent)
			submitted[word->phase].may_be_there = false;
		break;
	default:
		break;
	}
}

const struct clock_rule clock_submit = { .reset = reset, .on_engine = on_engine };
