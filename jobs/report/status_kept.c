/*
 * The folded state of a run as bytes, so that a later look need not fold the events before again:
 * see status.h. It is the struct as it lies in memory, and what it points at as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/maker.h"
#include "jobs/report/status_internal.h"

#define FORM 5 /* version of struct status_kept */

struct status_kept {
	int64_t form;
	unsigned char maker[MAKER_MAX];
	struct status bare; /* the pointers in it mean nothing */
};

void status_keep(const struct status *status, struct sb *ret)
{
	AUTO(auto_free) struct status_kept *kept = mem_zero(1, sizeof *kept);
	AUTO(auto_free) char *line = NULL;
	json_auto_t *rest = json_object();

	kept->form = FORM;
	if (!maker_find(kept->maker))
		return;
	memcpy(&kept->bare, status, sizeof kept->bare);
	json_object_set(rest, "root", status->root);
	json_object_set(rest, "attempts", status->attempts);
	json_object_set(rest, "jit", status->jit);
	js_put(rest, "rejected", json_incref(status->rejected));
	js_put_str(rest, "tries", status->tries);
	js_put_str(rest, "waits", status->waits);
	js_put_str(rest, "reason", status->halt.reason);
	js_put_str(rest, "silence", status->halt.silence);
	js_put(rest, "machines", json_incref(status->tally.machines));
	js_put_str(rest, "instance", status->tally.instance);
	line = js_line_exact(rest);
	sb_add(ret, kept, sizeof *kept);
	sb_adds(ret, line);
}

static char *copy_of(const json_t *rest, const char *key)
{
	return js_str(rest, key) ? mem_copy(js_str(rest, key)) : NULL;
}

struct status *status_from_kept(const void *bytes, size_t len)
{
	AUTO(auto_free) struct status_kept *kept = mem_alloc(sizeof *kept);
	AUTO(err_freep) struct err *unreadable = NULL;
	unsigned char maker[MAKER_MAX];
	json_auto_t *rest = NULL;
	struct status *status;

	if (len < sizeof *kept || !maker_find(maker))
		return NULL;
	memcpy(kept, bytes, sizeof *kept);
	if (kept->form != FORM || memcmp(kept->maker, maker, sizeof maker) != 0 ||
	    js_parse((const char *)bytes + sizeof *kept, len - sizeof *kept, "it", &rest,
		     &unreadable) < 0)
		return NULL;
	status = mem_zero(1, sizeof *status);
	memcpy(status, &kept->bare, sizeof *status);
	status->root = json_incref(json_object_get(rest, "root"));
	status->attempts = json_incref(json_object_get(rest, "attempts"));
	status->jit = json_incref(json_object_get(rest, "jit"));
	status->rejected = json_incref(json_object_get(rest, "rejected"));
	status->tries = copy_of(rest, "tries");
	status->waits = copy_of(rest, "waits");
	status->halt.reason = copy_of(rest, "reason");
	status->halt.silence = copy_of(rest, "silence");
	status->tally.machines = json_incref(json_object_get(rest, "machines"));
	status->tally.instance = copy_of(rest, "instance");
	return status;
}
