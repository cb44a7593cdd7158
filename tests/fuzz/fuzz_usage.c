/*
 * What tools print that watch devices: the first byte says which of the readers gets the rest.
 * What comes out is a share, and a line that is refused has told nothing.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "jobs/node/usage/usage_parse.h"

static void check(const struct usage_mean *mean, bool is_told)
{
	MUST(mean->count <= 1);
	MUST(isfinite(mean->sum) && mean->sum >= 0 && mean->sum <= 100);
	MUST(mean->count == 0 || is_told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct usage_devices devices = { 0 };
	int told;

	if (size == 0)
		return 0;
	told = data[0] % 2 ? usage_parse_neuron(text, size - 1, &devices)
			   : usage_parse_nvidia(text, size - 1, &devices);
	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++) {
		check(&devices.busy[i], told == 0);
		check(&devices.full[i], told == 0);
	}
	return 0;
}
