/* Data of the block, shared by screen.c, which collects it, and screen_text.c, which shows it: see
 * screen.h. Not for other files. */
#ifndef STK_REPORT_SCREEN_INTERNAL_H
#define STK_REPORT_SCREEN_INTERNAL_H

#include "jobs/base/step_rate.h"
#include "jobs/base/text/js.h"
#include "jobs/report/screen.h"
#include "jobs/report/sparkline.h"
#include "jobs/report/status_internal.h"

enum stage_state {
	SCREEN_STAGE_TO_COME,
	SCREEN_STAGE_UNDER_WAY,
	SCREEN_STAGE_DONE,
	SCREEN_STAGE_FAILED,
	SCREEN_STAGE_SKIPPED
};

/* A phase, all its attempts together. */
struct stage {
	bool is_shown; /* named by the plan, or seen in an event */
	enum stage_state state;
	int64_t attempt;            /* number of the newest */
	int64_t begun_ms, ended_ms; /* 0: not yet */
};

struct screen {
	struct status *status;
	int64_t seq; /* seq of the newest event */
	struct stage stages[PHASE_COUNT];
	enum phase served; /* stage whose phase 1 those of precompile and verify are */
	char *folder;      /* folder of the run in its workspace, where its logs are */
	bool ahead;        /* the compiler names graphs before it starts to compile them */
	int64_t begun_ms, ended_ms;
	/* steps and values of the training, progress updates included */
	struct step_rate_window steps;
	struct sparkline chart;
	json_t *metrics;           /* name → last value */
	char *unit;                /* of progress; NULL: steps */
	double samples_per_second; /* not positive: not known */
	char *charted;             /* name of the metric shown as a chart; NULL: not chosen yet */
	int64_t step, of;          /* -1: not known */
	int64_t step_ms;           /* when the step was seen */
	int64_t value_step;        /* step of the newest value in the chart */
	struct step_rate rate;     /* as reported */
};

#endif
