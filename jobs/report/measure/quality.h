/* Settings that decide about the quality of a training, not only about its speed. */
#ifndef STK_REPORT_MEASURE_QUALITY_H
#define STK_REPORT_MEASURE_QUALITY_H

#include <stdbool.h>

/* True if a difference in the setting of this path, as plan_difference() tells it, is one of data,
 * of the set for evaluation, or of precision. The old and the new value are texts, "" if one side
 * has none: flags of a compiler that name a precision count. */
bool quality_depends_on(const char *path, const char *old_value, const char *new_value);

#define QUALITY_RULE                                                                               \
	"quality: not assessed if a setting differs that names data, a set for evaluation or a "   \
	"precision"

#endif
