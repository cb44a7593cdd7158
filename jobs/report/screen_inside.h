/* What is gathered for the block, for the file that gathers it and the one that shows
 * it: see screen.h. Included by these alone. */
#ifndef STK_REPORT_SCREEN_INSIDE_H
#define STK_REPORT_SCREEN_INSIDE_H

#include "jobs/base/json.h"
#include "jobs/report/course.h"
#include "jobs/report/screen.h"
#include "jobs/report/status.h"

enum stage_state { STAGE_TO_COME, STAGE_UNDER_WAY, STAGE_DONE, STAGE_FAILED, STAGE_SKIPPED };

/* A phase, all its attempts together. */
struct stage {
	bool wanted; /* by the plan, or seen */
	enum stage_state state;
	int64_t attempt;            /* the newest */
	int64_t begun_ms, ended_ms; /* 0: not yet */
};

struct screen {
	char *run;
	struct status *status;
	int64_t seq; /* of the newest event */
	struct stage stages[PHASE_COUNT];
	char *folder; /* of the run in its workspace, where its logs are */
	bool jit;     /* compile.mode */
	bool ahead;   /* this compiler names graphs before it begins with them */
	int64_t begun_ms, ended_ms;
	int64_t until_ms; /* of a backoff; 0: none */
	/* of the training, glimpses included */
	struct course course;
	json_t *metrics;    /* name → last value */
	char *charted;      /* the metric of the course; NULL: none yet */
	int64_t step, of;   /* -1: not known */
	int64_t step_ms;    /* when it was seen */
	int64_t value_step; /* of the newest value of the course */
	double rate;        /* as told; 0: not */
};

#endif
