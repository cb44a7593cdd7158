/*
 * metrics.json of an evaluation: the input is its text. Whatever it is, each value is a finite
 * number or told as it was written, and what is refused has a hint.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "jobs/node/tasks/metrics_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	AUTO(metrics_file_release) struct metrics_file metrics = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	const char *name;
	json_t *value;

	if (metrics_file_parse((const char *)bytes, len, &metrics, &err) < 0) {
		MUST(err && err->code == EXIT_RUN_FAILED && err->hint);
		return 0;
	}
	MUST(json_object_size(metrics.values) + json_object_size(metrics.invalid) <=
	     METRICS_FILE_NAMES);
	json_object_foreach (metrics.values, name, value) {
		MUST(json_is_number(value) && isfinite(json_number_value(value)));
		MUST(strlen(name) <= METRICS_FILE_NAME && !json_object_get(metrics.invalid, name));
	}
	json_object_foreach (metrics.invalid, name, value)
		MUST(json_is_string(value));
	return 0;
}
