/* Looks for the right that a service said is missing: see missed_right.h. */
#include "jobs/run/attempt/missed_right.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/plan/own_rows.h"
#include "jobs/run/rights/rights.h"

#define STATEMENT "{\"Sid\":" /* begin of one */

char *missed_right_hint(const json_t *plan, const struct failure_classification *classification)
{
	AUTO(auto_free) char *statement = NULL;

	/* The author of a row of their own knows the cure better. */
	if (classification->class != CLASS_QUOTA_PERMISSION ||
	    strstr(classification->hint, STATEMENT) ||
	    (classification->rule && text_starts(classification->rule, OWN_ROW_PREFIX)))
		return NULL;
	statement = rights_missed(plan, classification->evidence);
	return statement ? mem_format("let an administrator allow this for the role that the "
				      "message names, and check bucket and key policies: %s",
				      statement)
			 : NULL;
}
