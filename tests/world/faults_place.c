/*
 * Places that refuse: the state, the workspace or a part of it, be it a folder or a bucket. A full
 * or a broken disk, a share that is gone, a permission that somebody has taken away: all calls
 * about such a place fail alike, and what lies elsewhere goes on. See faults.h.
 */
#include <errno.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "tests/world/faults.h"
#include "tests/world/kernel.h"

const char *const place_names[PLACES] = {
	"state/",  "lease.json", "work/",   "/cache/",  "/saved",
	"/claim/", "drain.json", "models/", "results/", "/tasks/",
};

static enum place_refuses refused_by(const struct fault *fault)
{
	return (enum place_refuses)(fault->chance % PLACE_REFUSES_COUNT);
}

bool place_is_refused(const struct fault *fault, enum call_id id, const char *path)
{
	enum call_kind kind = call_rows[id].kind;
	/* A file is opened for either. */
	bool opens = id == CALL_open || id == CALL_openat;
	bool changes = kind == CALL_CHANGES || id == CALL_write;
	bool looks = kind == CALL_LOOKS || id == CALL_read || opens;

	if (!path || call_rows[id].errors[0] == 0 || !strstr(path, place_names[fault->place]))
		return false;
	switch (refused_by(fault)) {
	case PLACE_REFUSES_CHANGES:
		return changes;
	case PLACE_REFUSES_LOOKS:
		return looks;
	default:
		return changes || looks;
	}
}

int place_error(const struct fault *fault, enum call_id id)
{
	const int *errors = call_rows[id].errors;

	for (const int *at = errors; *at; at++)
		if (*at == fault->error)
			return *at;
	return errors[0];
}

/* How it refuses. */
static void draw_error(struct fault *fault)
{
	static const int broken[] = { EIO, EACCES, ESTALE }, full[] = { ENOSPC, EDQUOT, EROFS };

	fault->call = CALL_open; /* it has all errors of a place */
	fault->error = refused_by(fault) == PLACE_REFUSES_CHANGES && chance_one_in(2)
			       ? full[chance_below(STK_LENGTH(full))]
			       : broken[chance_below(STK_LENGTH(broken))];
	fault->done = chance_one_in(8);
}

void place_draw(struct fault *fault)
{
	fault->place = (int)chance_below(PLACES_DRAWN);
	draw_error(fault);
}

void place_draw_of_stages(struct fault *fault)
{
	fault->place = PLACES_DRAWN + (int)chance_below(PLACES - PLACES_DRAWN);
	draw_error(fault);
}

void place_draw_of(struct fault *fault, const char *name, enum place_refuses refuses)
{
	if (refuses != PLACE_REFUSES_COUNT)
		fault->chance += (uint64_t)refuses - fault->chance % PLACE_REFUSES_COUNT;
	while (strcmp(place_names[fault->place], name) != 0)
		fault->place++;
	draw_error(fault);
}
