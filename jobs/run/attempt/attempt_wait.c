/* Records why an engine does not run an attempt yet, whenever the reason changes. */
#include <string.h>

#include "jobs/run/attempt/watch_internal.h"

int attempt_wait_record(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err)
{
	struct event ev;

	if (status->state != ENGINE_QUEUED || !status->reason[0] ||
	    strcmp(status->reason, watch->waits) == 0)
		return 0;
	memcpy(watch->waits, status->reason, sizeof watch->waits);
	attempt_event(watch, EV_ATTEMPT_WAITING, &ev);
	EVENT_SET_STR(&ev, reason, status->reason);
	return driver_record(watch->driver, &ev, err);
}
