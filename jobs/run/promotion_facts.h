/* What an entry says of a run, read from its journal: see promotion.h. */
#ifndef STK_RUN_PROMOTION_FACTS_H
#define STK_RUN_PROMOTION_FACTS_H

#include "jobs/base/sb.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/journal/journal.h"

struct promotion_facts {
	json_t *created;     /* run.created; owned */
	json_t *candidate;   /* candidate.chosen, the newest; NULL: none; owned */
	json_t *gate;        /* gate.judged, the newest; NULL: none; owned */
	json_t *evaluations; /* [evaluate.measured…]; owned */
	json_t *versions;    /* of attempt.versions, the newest of a training; NULL: none; owned */
	json_t *roots;       /* {path or URL of a root of checkpoints: attempt}; owned */
	json_t *outputs;     /* attempt.ended of the newest training that left any; NULL; owned */
	json_t *ended;       /* run.ended; NULL: the run goes on; owned */
	/* {phase: {"seconds": of its attempts, with their waits, "machine_seconds": of its
	 * commands, on each node}} of evaluate and infer; owned */
	json_t *took;
	int64_t intended_ms; /* when the newest attempt was */
	struct sb journal;   /* the lines read */
	int64_t events;      /* number of them */
	char *sum;           /* of the last one; NULL: of an earlier version; owned */
};
#define PROMOTION_FACTS_INIT ((struct promotion_facts){ .journal = SB_INIT_MAX((size_t)1 << 30) })

/* Reads the events up to `seq`, 0: all. */
int promotion_facts_read(struct journal *journal, const char *run, int64_t seq,
			 struct promotion_facts *ret, struct err **err);
void promotion_facts_release(struct promotion_facts *facts); /* for AUTO() */

const json_t *promotion_plan(const struct promotion_facts *facts);   /* borrowed */
const json_t *promotion_inputs(const struct promotion_facts *facts); /* borrowed; NULL: none */

/* The model of a run: the checkpoint or output that is to be promoted. */
struct promotion_model {
	char *url, *kind; /* owned */
	int64_t attempt, step;
	json_t *files; /* owned; as in struct model_source; NULL: not recorded */
};
void promotion_model_release(struct promotion_model *model); /* for AUTO() */

/* Finds it: at `url`, else as candidate.chosen says, else by promote.from. A checkpoint must still
 * hold by its mark. EXIT_RUN_FAILED: there is none. */
int promotion_model_find(const struct promotion_facts *facts, const char *run, const char *url,
			 struct promotion_model *ret, struct err **err);

#endif
