/* Stops that cannot be journalled, on the driver's side: see beside.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/driver_internal.h"
#include "jobs/store/order.h"

#define STOP_BYTES_MAX      ((size_t)64 << 10)
#define STOP_FILE_REMOTE_MS 60000 /* between two looks if each is a request */

char *beside_stop_file_key(const char *run)
{
	return mem_format("runs/%s/" STOP_FILE, run);
}

bool beside_stop_file_read(struct driver *driver)
{
	AUTO(auto_free) char *key = beside_stop_file_key(driver->run);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(STOP_BYTES_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;
	struct mono now = clock_mono_now();

	if (driver->flow.state == FLOW_ENDED || driver->flow.stop_requested ||
	    driver->stop_pending || !driver->workspace)
		return false;
	if (!store_directory(driver->workspace) && !driver->journal_fails &&
	    driver->stop_read_at.ms > 0 && now.ms - driver->stop_read_at.ms < STOP_FILE_REMOTE_MS)
		return false;
	driver->stop_read_at = now;
	/* If the disk had no room for a reason, the file is empty. */
	if (store_get(driver->workspace, key, STOP_BYTES_MAX, &text, NULL, &ignored) <= 0)
		return false;
	if (text.len > 0)
		(void)!js_parse(text.text, text.len, STOP_FILE, &body, &ignored);
	free(driver->stop_words);
	driver->stop_words = js_str(body, "reason") ? mem_copy(js_str(body, "reason")) : NULL;
	driver->stop_pending = true;
	return true;
}

void beside_stop_file_clear(struct driver *driver)
{
	AUTO(auto_free) char *key = beside_stop_file_key(driver->run);
	AUTO(err_freep) struct err *ignored = NULL;

	/* A file that cannot be deleted is not read again: the stop is journalled. */
	if (driver->workspace)
		(void)!store_delete(driver->workspace, key, &ignored);
}

/* True while the job is given time to save: the drain file lies in the workspace, so this needs no
 * journal. */
static bool may_drain(struct driver *driver, struct err **err)
{
	const struct flow *flow = &driver->flow;

	if (!flow_phases[flow->phase].drains || !flow->claimed || flow->policy.drain_ms <= 0)
		return false;
	if (driver->stop_since.ms == 0)
		driver->stop_since = clock_mono_now();
	return clock_mono_now().ms - driver->stop_since.ms < flow->policy.drain_ms &&
	       driver_write_drain(driver, flow->phase, flow->attempt, err) == 0;
}

void beside_stop_unrecorded(struct driver *driver)
{
	const struct flow *flow = &driver->flow;
	AUTO(err_freep) struct err *why = NULL;
	AUTO(err_freep) struct err *unrecorded = NULL;

	if (!driver->engine || flow->stop_requested ||
	    (!flow_may_have_job(flow) && flow->attempt_state != ATTEMPT_INTENDED) ||
	    may_drain(driver, &unrecorded))
		return;
	/* A failure is retried with the next try to journal the stop. */
	(void)!driver_stop_job(driver, flow->phase, flow->attempt, flow->job, &why);
}
