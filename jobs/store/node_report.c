/* The tables behind reports: see node_report.h and node_report.def. */
#include "jobs/store/node_report.h"

#include <string.h>

#include "jobs/store/order.h"

#define MESSAGE(m, title) MESSAGE_TABLE(m, title)
#define FIELD(m, type, name, presence, help)                                                       \
	MESSAGE_EXPAND(MESSAGE_ROW, m, name, MESSAGE_T_##type, MESSAGE_P_##presence)
#define END(m) MESSAGE_TABLE_END(m)
#include "jobs/store/node_report.def"
#undef MESSAGE
#undef FIELD
#undef END

const struct message *const node_report_message = &node_report_message_table;

int node_report_parse(const char *text, size_t len, struct node_report *ret, struct err **err)
{
	json_auto_t *json = NULL;

	if (js_parse(text, len, "an agent's report", &json, err) < 0)
		return -1;
	return message_decode(node_report_message, json, ret, err);
}

void node_report_release(struct node_report *report)
{
	message_release(node_report_message, report);
}

static bool is_word(const char *text, const char *word)
{
	return text && strcmp(text, word) == 0;
}

bool node_report_is(const struct node_report *report, const char *state)
{
	return is_word(report->state, state);
}

bool node_report_was_stopped(const struct node_report *report, const char *why)
{
	return is_word(report->stopped, why);
}

bool node_report_is_final(const struct node_report *report)
{
	return node_report_is(report, REPORT_ENDED) || node_report_is(report, REPORT_NOT_MINE) ||
	       node_report_is(report, REPORT_FAILED);
}

bool node_report_was_drained(const struct node_report *report)
{
	return node_report_was_stopped(report, STOPPED_DRAIN) ||
	       node_report_was_stopped(report, STOPPED_WORKER);
}
