/* What is gathered of a run, for the file that gathers it and the one that shows it. */
#ifndef STK_REPORT_STATUS_INSIDE_H
#define STK_REPORT_STATUS_INSIDE_H

#include "jobs/flow/ledger.h"
#include "jobs/report/status.h"

struct status {
	json_t *root;     /* the fields that events set directly */
	json_t *attempts; /* array, newest last */
	char *waits;      /* for another run, in words; NULL: for none */
	json_t *rejected; /* by the newest choice of a checkpoint; NULL: none */
	json_t *jit;      /* what jit.compiled told last of each training attempt, newest last */
	bool begun, ended, left, stop_requested;
	enum phase phase;
	struct utc until;      /* of a backoff; ms 0: none */
	double price_per_hour; /* all nodes; 0: unknown */
	struct ledger ledger;
};

#endif
