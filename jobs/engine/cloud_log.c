/* Logs in CloudWatch of containers without an agent: see cloud_log.h. */
#include "jobs/engine/cloud_log.h"

#include <stdlib.h>

#define TEXT_MAX ((size_t)4 << 20) /* most bytes read per node */
#define AGAIN_MS 5000              /* between two reads: lines come late */

struct cloud_log *cloud_log_of(struct cloud_log **logs, int *count, int node)
{
	if (node >= *count) {
		*logs = mem_grow(*logs, (size_t)node + 1, sizeof **logs);
		while (*count <= node)
			(*logs)[(*count)++] = (struct cloud_log){ .text = SB_INIT_MAX(TEXT_MAX) };
	}
	return &(*logs)[node];
}

void cloud_logs_release(struct cloud_log **logs, int *count)
{
	for (int i = 0; i < *count; i++) {
		logs_filter_freep(&(*logs)[i].filter);
		sb_release(&(*logs)[i].text);
	}
	free(TAKE(*logs));
	*count = 0;
}

static void add_line(void *arg, const struct logs_event *event)
{
	struct sb *text = arg;

	sb_add(text, event->message, event->len);
	sb_addc(text, '\n');
}

int cloud_log_read(struct cloud_log *log, struct logs **client, const char *group,
		   const char *prefix, struct err **err)
{
	enum logs_state state = LOGS_MORE;

	if (log->at.ms > 0 && clock_mono_now().ms - log->at.ms < AGAIN_MS)
		return 0;
	if (!*client && logs_open(0, client, err) < 0)
		return -1;
	if (!log->filter)
		log->filter = logs_filter_new(group, prefix, NULL);
	while (state == LOGS_MORE && !log->text.truncated)
		if (logs_filter_read(*client, log->filter, add_line, &log->text, &state, err) < 0)
			return -1;
	log->at = clock_mono_now();
	return 0;
}

void cloud_log_copy(const struct cloud_log *log, uint64_t *offset, size_t max, struct sb *ret)
{
	size_t before = ret->len, left;

	if (*offset >= log->text.len)
		return;
	left = log->text.len - (size_t)*offset;
	sb_add(ret, log->text.text + *offset, left < max ? left : max);
	*offset += ret->len - before;
}
