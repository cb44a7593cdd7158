#include "jobs/store/order.h"

bool order_report_is_final(const json_t *report)
{
	return js_is(report, "state", REPORT_ENDED) || js_is(report, "state", REPORT_NOT_MINE) ||
	       js_is(report, "state", REPORT_FAILED);
}

bool order_report_was_drained(const json_t *report)
{
	return js_is(report, "stopped", STOPPED_DRAIN) || js_is(report, "stopped", STOPPED_WORKER);
}
