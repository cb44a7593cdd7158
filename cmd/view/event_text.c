/* Events as sentences: see event_text.h and the sentences of events.def. */
#include "cmd/view/event_text.h"

#include <string.h>

#include "jobs/base/sb.h"

static void add_value(struct sb *out, const json_t *value);

/* Appends {"loss":0.25,"accuracy":0.98} as "loss 0.25, accuracy 0.98". The step has a field of
 * its own. */
static void add_members(struct sb *out, const json_t *object)
{
	const char *name, *comma = "";
	json_t *value;

	json_object_foreach ((json_t *)object, name, value) {
		if (strcmp(name, "step") == 0)
			continue;
		sb_addf(out, "%s%s ", comma, name);
		add_value(out, value);
		comma = ", ";
	}
}

static void add_elements(struct sb *out, const json_t *array)
{
	json_t *value;
	size_t i;

	json_array_foreach (array, i, value) {
		sb_adds(out, i > 0 ? "; " : "");
		add_value(out, value);
	}
}

static void add_value(struct sb *out, const json_t *value)
{
	if (json_is_string(value)) {
		sb_adds(out, json_string_value(value));
	} else if (json_is_real(value)) {
		sb_addf(out, "%.4g", json_real_value(value));
	} else if (json_is_boolean(value)) {
		sb_adds(out, json_is_true(value) ? "yes" : "no");
	} else if (json_is_object(value)) {
		add_members(out, value);
	} else if (json_is_array(value)) {
		add_elements(out, value);
	} else {
		AUTO(auto_free) char *line = js_line(value);

		sb_adds(out, line);
	}
}

/* True if the value is absent, null, empty or the word for no class or no verdict. */
static bool says_nothing(const json_t *value)
{
	return !value || json_is_null(value) ||
	       (json_is_object(value) && json_object_size(value) == 0) ||
	       (json_is_array(value) && json_array_size(value) == 0) ||
	       (json_is_string(value) && strcmp(json_string_value(value), "none") == 0);
}

/* Appends the text with its fields filled in; returns false if a field is empty. */
static bool add_filled(struct sb *out, const char *text, size_t len, const json_t *row)
{
	const char *end = text + len;

	while (text < end) {
		const char *open = memchr(text, '{', (size_t)(end - text));
		const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
		const json_t *value;

		if (!close) {
			sb_add(out, text, (size_t)(end - text));
			return true;
		}
		value = json_object_getn(row, open + 1, (size_t)(close - open - 1));
		if (says_nothing(value))
			return false;
		sb_add(out, text, (size_t)(open - text));
		add_value(out, value);
		text = close + 1;
	}
	return true;
}

/* Appends the first alternative of a clause that can be filled in. */
static bool add_clause(struct sb *out, const char *clause, size_t len, const json_t *row)
{
	const char *end = clause + len;

	for (;;) {
		const char *bar = memchr(clause, '|', (size_t)(end - clause));

		sb_clear(out);
		if (add_filled(out, clause, (size_t)((bar ? bar : end) - clause), row))
			return out->len > 0;
		if (!bar)
			return false;
		clause = bar + 1;
	}
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
	if (out.len > 0)
		return sb_take(&out);
	sb_release(&out);
	return NULL;
}
