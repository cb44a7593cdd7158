/* Rows, time and machine of one check-up, for all of its parts: see health_internal.h. */
#include <stdarg.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"

/* Number of parts of health.timeout; a tool that had one of them was not short of time. */
#define SHARE_PARTS 4

void health_checkup_say(struct checkup *c, const char *check, const char *verdict, const char *fmt,
			...)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(2000);
	json_t *row = json_object();
	va_list args;

	va_start(args, fmt);
	sb_addv(&words, fmt, args);
	va_end(args);
	js_put_str(row, "check", check);
	js_put_str(row, "verdict", verdict);
	js_put(row, "words", js_text(words.text, words.len));
	json_array_append_new(c->rows, row);
	c->sick |= strcmp(verdict, ROW_SICK) == 0;
}

char *health_checkup_sick_words(const json_t *rows)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(2000);
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *text = js_str(row, "words");

		if (js_is(row, "verdict", ROW_SICK))
			sb_addf(&words, "%s%s", words.len ? "; " : "", text ? text : "?");
	}
	return sb_take(&words);
}

char *health_checkup_limit(const struct checkup *c)
{
	AUTO(auto_free) char *time = text_format_duration(c->order->timeout_ms);

	return mem_format("health.timeout (%s)", time);
}

bool health_checkup_had_time(const struct checkup *c, struct mono from, struct mono end)
{
	return (end.ms - from.ms) * SHARE_PARTS >= c->order->timeout_ms;
}

static bool starts(const char *text, const char *prefix)
{
	return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* False for inf2 and trn1.2xlarge: aws-neuron-sdk issue 742. */
bool health_checkup_meets_others(const struct checkup *c)
{
	const char *instance = c->config->order->instance;

	if (starts(instance, "ml."))
		instance += 3;
	return !starts(instance, "inf2.") && !(instance && strcmp(instance, "trn1.2xlarge") == 0);
}
