/* Fields of events as members of JSON, for the files that fold them: see status_internal.h. */
#include <stdarg.h>

#include "jobs/report/status_internal.h"

json_t *status_utc(struct utc at)
{
	char text[UTC_TEXT];

	return json_string(clock_utc_format(at, text));
}

/* Returns the named member object, created if absent. */
json_t *status_section(struct status *status, const char *key)
{
	json_t *object = json_object_get(status->root, key);

	if (!object) {
		object = json_object();
		json_object_set_new(status->root, key, object);
	}
	return object;
}

void status_put_as(json_t *object, const struct event *ev, enum event_field_id id, const char *key)
{
	const struct event_field_row *row = &event_fields[id];
	const void *at = (const char *)ev + row->offset;

	if (!(ev->present & FIELD_SET_OF(id)))
		return;
	switch (row->type) {
	case EVT_INT:
		js_put(object, key, json_integer(*(const int64_t *)at));
		break;
	case EVT_REAL:
		js_put(object, key, json_real(*(const double *)at));
		break;
	case EVT_BOOL:
		js_put(object, key, json_boolean(*(const bool *)at));
		break;
	case EVT_STR:
		js_put_str(object, key, *(const char *const *)at);
		break;
	case EVT_JSON:
		js_put(object, key, json_incref(*(json_t *const *)at));
		break;
	case EVT_INSTANT:
		js_put(object, key, status_utc((struct utc){ *(const int64_t *)at }));
		break;
	case EVT_DURATION:
		js_put(object, key, json_real((double)*(const int64_t *)at / 1000));
		break;
	case EVT_ENUM:
		js_put_str(object, key, row->names[*(const int *)at]);
		break;
	}
}

void status_put(json_t *object, const struct event *ev, ...)
{
	va_list ids;
	int id;

	va_start(ids, ev);
	while ((id = va_arg(ids, int)) != EVF_COUNT)
		status_put_as(object, ev, (enum event_field_id)id, event_fields[id].name);
	va_end(ids);
}
