#include "jobs/store/order.h"

bool report_is_final(const json_t *report)
{
	return js_is(report, "state", REPORT_ENDED) || js_is(report, "state", REPORT_NOT_MINE) ||
	       js_is(report, "state", REPORT_FAILED);
}
