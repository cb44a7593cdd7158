/* Events as JSON: see event_json.h. Driven by the field table of the flow. */
#include "jobs/run/journal/event_json.h"

#include <math.h>
#include <string.h>

static json_t *field_encode(const struct event_field_row *row, const struct event *ev)
{
	const char *at = (const char *)ev + row->offset;
	json_t *value;

	switch (row->type) {
	case EVT_INT:
		return json_integer(*(const int64_t *)(const void *)at);
	case EVT_REAL:
		value = json_real(*(const double *)(const void *)at);
		return value ? value : json_null(); /* JSON has no NaN */
	case EVT_BOOL:
		return json_boolean(*(const bool *)(const void *)at);
	case EVT_STR: {
		const char *text = *(const char *const *)(const void *)at;

		return js_text(text, strlen(text));
	}
	case EVT_JSON:
		return json_incref(*(json_t *const *)(const void *)at);
	case EVT_INSTANT: {
		char text[UTC_TEXT];

		return json_string(
			clock_utc_format((struct utc){ *(const int64_t *)(const void *)at }, text));
	}
	case EVT_DURATION:
		return json_real((double)*(const int64_t *)(const void *)at / 1000);
	case EVT_ENUM:
		return json_string(row->names[*(const int *)(const void *)at]);
	}
	return NULL;
}

json_t *event_encode(const char *run, const struct event *ev)
{
	char at[UTC_TEXT];
	json_t *object = json_object();

	js_put(object, "v", json_integer(1));
	js_put_str(object, "run", run);
	js_put(object, "seq", json_integer(ev->seq));
	js_put_str(object, "at", clock_utc_format(ev->at, at));
	js_put_str(object, "event", event_rows[ev->kind].name);
	for (int i = 0; i < EVF_COUNT; i++)
		if (ev->present & FIELD_SET_OF(i))
			js_put(object, event_fields[i].name, field_encode(&event_fields[i], ev));
	return object;
}

/* Journals of earlier versions hold instants and durations as whole milliseconds. */
static bool instant_decode(const json_t *value, int64_t *ret)
{
	const char *text = json_string_value(value);
	struct utc at = { json_integer_value(value) };
	bool good = text ? clock_utc_parse(text, &at) : json_is_integer(value);

	*ret = at.ms;
	return good;
}

/* A whole number is one of milliseconds: of this version it has a decimal point. */
static bool duration_decode(const json_t *value, int64_t *ret)
{
	*ret = json_is_real(value) ? (int64_t)llround(json_real_value(value) * 1000)
				   : json_integer_value(value);
	return json_is_number(value);
}

/* False if the value's type is not that of the field. */
static bool field_decode(const struct event_field_row *row, json_t *value, struct event *ev)
{
	char *at = (char *)ev + row->offset;
	int index;

	switch (row->type) {
	case EVT_INT:
		*(int64_t *)(void *)at = json_integer_value(value);
		return json_is_integer(value);
	case EVT_REAL:
		*(double *)(void *)at = json_number_value(value);
		return json_is_number(value) || json_is_null(value);
	case EVT_BOOL:
		*(bool *)(void *)at = json_is_true(value);
		return json_is_boolean(value);
	case EVT_STR:
		*(const char **)(void *)at = json_string_value(value);
		return json_is_string(value);
	case EVT_JSON:
		*(json_t **)(void *)at = value;
		return true;
	case EVT_INSTANT:
		return instant_decode(value, (int64_t *)(void *)at);
	case EVT_DURATION:
		return duration_decode(value, (int64_t *)(void *)at);
	case EVT_ENUM:
		index = json_is_string(value) ? flow_name_find(row->names, row->name_count,
							       json_string_value(value))
					      : -1;
		*(int *)(void *)at = index;
		return index >= 0;
	}
	return false;
}

int event_decode(const json_t *object, struct event *ret, struct err **err)
{
	const char *name = js_str(object, "event"), *at = js_str(object, "at");
	int64_t seq = js_int(object, "seq", 0);
	enum event_kind kind;

	if (!name || !at || seq < 1)
		return err_set(err, EXIT_DEFECT, "a journal row lacks its event, seq or at");
	kind = event_kind_find(name);
	if (kind == EV_COUNT)
		return 0;
	*ret = (struct event){ .kind = kind, .seq = seq };
	if (!clock_utc_parse(at, &ret->at))
		return err_set(err, EXIT_DEFECT, "journal row %lld has no valid time: '%s'",
			       (long long)seq, at);
	for (int i = 0; i < EVF_COUNT; i++) {
		json_t *value = json_object_get(object, event_fields[i].name);

		if (!value || !(event_rows[kind].allowed >> i & 1))
			continue;
		if (!field_decode(&event_fields[i], value, ret))
			return err_set(err, EXIT_DEFECT, "journal row %lld: '%s' has a wrong type",
				       (long long)seq, event_fields[i].name);
		ret->present |= FIELD_SET_OF(i);
	}
	if (!event_well_formed(ret))
		return err_set(err, EXIT_DEFECT, "journal row %lld: '%s' lacks a field",
			       (long long)seq, name);
	return 1;
}
