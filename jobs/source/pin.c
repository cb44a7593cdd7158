/* The pin and the request, as far as the files that make, send and pack a pin share them: see
 * source.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/source/bundle.h"

void source_pin_freep(struct source_pin **ref)
{
	struct source_pin *pin = *ref;

	if (!pin)
		return;
	free(pin->dirty_files);
	free(pin->patch);
	for (size_t i = 0; i < pin->count; i++)
		free(pin->files[i].path);
	free(pin->files);
	sb_release(&pin->digests);
	free(pin);
	*ref = NULL;
}

bool source_is_commit(const struct source_request *request)
{
	return request->rev && request->rev[0] && strcmp(request->rev, "HEAD") != 0;
}
