/* Cron's line and its zone, checked: see schedule.h. */
#include "jobs/spec/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/zoneinfo.h"
#include "jobs/calendar/cron.h"
#include "jobs/spec/resolved.h"

void schedule_zone_release(struct schedule_zone *zone)
{
	sb_release(&zone->bytes);
}

int schedule_zone_read(const char *name, spec_getenv_fn *getenv_fn, struct schedule_zone *ret,
		       struct err **err)
{
	int found;

	sb_clear(&ret->bytes);
	if (strcmp(name, "UTC") == 0) {
		zone_utc(&ret->zone);
		return 1;
	}
	found = zoneinfo_read(getenv_fn ? getenv_fn("TZDIR") : getenv("TZDIR"), name, &ret->bytes,
			      err);
	if (found <= 0)
		return found;
	if (zone_read(ret->bytes.text, ret->bytes.len, &ret->zone))
		return 1;
	err_set(err, EXIT_REFUSED, "the time zone '%s' of this machine is damaged", name);
	return err_hint(err, "reinstall the package tzdata; zones with leap seconds are not read");
}

bool schedule_is_cron(struct binder *binder, const struct node *node, const char *field)
{
	struct cron_fault fault = { 0 };
	struct cron cron;

	if (cron_parse(node->text, &cron, &fault))
		return true;
	problem_hint(problem_error(&binder->reporter, node->at, field, "'%s': '%.*s' %s", field,
				   (int)(fault.len < 80 ? fault.len : 80), fault.text, fault.why),
		     "%s", fault.hint);
	return false;
}

bool schedule_is_zone(struct binder *binder, const struct node *node, const char *field)
{
	AUTO(schedule_zone_release) struct schedule_zone zone = SCHEDULE_ZONE_INIT;
	AUTO(err_freep) struct err *err = NULL;
	int found = schedule_zone_read(node->text, binder->getenv_fn, &zone, &err);

	if (found > 0)
		return true;
	if (found < 0)
		problem_hint(problem_error(&binder->reporter, node->at, field, "'%s': %s", field,
					   err->message),
			     "%s", err->hint ? err->hint : "install the package tzdata");
	else
		problem_hint(problem_error(&binder->reporter, node->at, field,
					   "'%s': there is no time zone '%.80s'", field,
					   node->text),
			     "write its IANA name with this spelling, such as Europe/Berlin; "
			     "'timedatectl list-timezones' lists them");
	return false;
}
