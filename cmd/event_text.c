/* Events as sentences: see event_text.h and the sentences of events.def. */
#include "cmd/event_text.h"

#include <string.h>

#include "jobs/base/sb.h"

static void add_value(struct sb *out, const json_t *value)
{
	if (json_is_string(value)) {
		sb_adds(out, json_string_value(value));
	} else if (json_is_real(value)) {
		sb_addf(out, "%.3g", json_real_value(value));
	} else if (json_is_boolean(value)) {
		sb_adds(out, json_is_true(value) ? "yes" : "no");
	} else {
		AUTO(auto_free) char *line = js_line(value);

		sb_adds(out, line);
	}
}

/* One clause with its fields filled in; false if one of them is absent. */
static bool add_clause(struct sb *out, const char *clause, size_t len, const json_t *row)
{
	const char *end = clause + len;

	while (clause < end) {
		const char *open = memchr(clause, '{', (size_t)(end - clause));
		const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
		const json_t *value;

		if (!close) {
			sb_add(out, clause, (size_t)(end - clause));
			return true;
		}
		value = json_object_getn(row, open + 1, (size_t)(close - open - 1));
		if (!value || json_is_null(value))
			return false;
		sb_add(out, clause, (size_t)(open - clause));
		add_value(out, value);
		clause = close + 1;
	}
	return true;
}

char *event_sentence(const struct event *ev, const json_t *row)
{
	const char *sentence = event_rows[ev->kind].sentence;
	struct sb out = SB_INIT;

	if (sentence[0] == '\0')
		return NULL;
	while (sentence) {
		const char *next = strstr(sentence, "; ");
		AUTO(sb_release) struct sb clause = SB_INIT;

		if (add_clause(&clause, sentence,
			       next ? (size_t)(next - sentence) : strlen(sentence), row)) {
			sb_adds(&out, out.len ? "; " : "");
			sb_add(&out, clause.text, clause.len);
		}
		sentence = next ? next + 2 : NULL;
	}
	return sb_take(&out);
}
