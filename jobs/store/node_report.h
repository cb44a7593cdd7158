/*
 * Report of the agent of one node, as its agent writes it and drivers read it. The members are the
 * rows of node_report.def; order.h has the words that some of them hold. A report that is all zeros
 * is absent.
 */
#ifndef STK_STORE_NODE_REPORT_H
#define STK_STORE_NODE_REPORT_H

#include "jobs/store/message.h"

#define MESSAGE(m, title) MESSAGE_STRUCT(m)
#define FIELD(m, type, name, presence, help)                                                       \
	MESSAGE_C_##type name;                                                                     \
	unsigned has_##name;
#define END(m) MESSAGE_STRUCT_END
#include "jobs/store/node_report.def"
#undef MESSAGE
#undef FIELD
#undef END

extern const struct message *const node_report_message;

/* Parses a report; `ret` must be all zeros. */
int node_report_parse(const char *text, size_t len, struct node_report *ret, struct err **err);
void node_report_release(struct node_report *report); /* for AUTO() */

/* True if the report's state is this one (REPORT_* of order.h). */
bool node_report_is(const struct node_report *report, const char *state);
/* True if the agent stopped the command for this reason (STOPPED_* of order.h). */
bool node_report_was_stopped(const struct node_report *report, const char *why);
/* True if the report's state is final. An absent report is not final. */
bool node_report_is_final(const struct node_report *report);
/* True if the command was to save and stop, whether the driver or an agent asked for it. */
bool node_report_was_drained(const struct node_report *report);

#endif
