/* Names of a node's figures: see usage.h. */
#include "jobs/base/usage.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUSY USAGE_PREFIX "device."
#define FULL USAGE_PREFIX "device-memory."

static const char *const names[] = {
#define USAGE(id, name, unit, help) USAGE_PREFIX name,
#include "jobs/base/usage.def"
#undef USAGE
};

bool usage_name(size_t figure, char ret[USAGE_NAME])
{
	size_t device = (figure - USAGE_DEVICE) / 2;

	if (figure < USAGE_FIGURES)
		snprintf(ret, USAGE_NAME, "%s", names[figure]);
	else if (figure >= USAGE_DEVICE && figure < USAGE_END)
		snprintf(ret, USAGE_NAME, "%s%zu", figure == usage_busy(device) ? BUSY : FULL,
			 device);
	else
		return false;
	return true;
}

size_t usage_find(const char *name)
{
	char own[USAGE_NAME];

	for (size_t figure = 0; usage_is_reserved(name) && figure < USAGE_END; figure++)
		if (usage_name(figure, own) && strcmp(own, name) == 0)
			return figure;
	return SIZE_MAX;
}

bool usage_is_reserved(const char *name)
{
	return strncmp(name, USAGE_PREFIX, strlen(USAGE_PREFIX)) == 0;
}
