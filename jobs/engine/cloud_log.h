/*
 * The log of a container in which no agent came up, from CloudWatch Logs: streams with a common
 * name prefix, kept from the beginning on. One per node, owned by its engine.
 */
#ifndef STK_ENGINE_CLOUD_LOG_H
#define STK_ENGINE_CLOUD_LOG_H

#include "aws/logs/logs.h"
#include "jobs/base/clock.h"
#include "jobs/base/sb.h"

struct cloud_log {
	struct logs_filter *filter; /* NULL: not read yet */
	struct sb text;
	struct mono at; /* time of the last read; ms 0: none yet */
};

/* Returns the log of a node, new if there was none; valid until the next call with these logs. */
struct cloud_log *cloud_log_of(struct cloud_log **logs, int *count, int node);
void cloud_logs_release(struct cloud_log **logs, int *count);

/* Reads what has come since, at most every few seconds; the client is opened when it is needed. */
int cloud_log_read(struct cloud_log *log, struct logs **client, const char *group,
		   const char *prefix, struct err **err);

/* Appends at most `max` bytes from `*offset` on, and advances it. */
void cloud_log_copy(const struct cloud_log *log, uint64_t *offset, size_t max, struct sb *ret);

#endif
