/* Questions to services, whatever protocol they speak: see doctor_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/operation.h"
#include "aws/xml.h"
#include "jobs/base/text/text.h"
#include "jobs/run/doctor/doctor_internal.h"

/* Parameters of a form, as they are made of a body. */
struct ask_form {
	struct sigv4_pair *pairs;
	size_t count;
	char **owned; /* names and values */
	size_t owned_count;
};

static void form_release(struct ask_form *form)
{
	for (size_t i = 0; i < form->owned_count; i++)
		free(form->owned[i]);
	free(form->owned);
	free(form->pairs);
}

static const char *keep(struct ask_form *form, char *text)
{
	form->owned = mem_grow(form->owned, form->owned_count + 1, sizeof *form->owned);
	form->owned[form->owned_count++] = text;
	return text;
}

/* Adds a value under its name; its members, and the rows of a list, behind a dot. */
static void add(struct ask_form *form, const char *name, const json_t *value)
{
	const char *key;
	json_t *inner;
	size_t i;

	if (json_is_string(value)) {
		form->pairs = mem_grow(form->pairs, form->count + 1, sizeof *form->pairs);
		form->pairs[form->count++] =
			(struct sigv4_pair){ keep(form, mem_copy(name)),
					     keep(form, mem_copy(json_string_value(value))) };
	}
	json_object_foreach ((json_t *)(uintptr_t)value, key, inner) {
		AUTO(auto_free) char *full = mem_format("%s%s%s", name, *name ? "." : "", key);

		add(form, full, inner);
	}
	json_array_foreach (value, i, inner) {
		AUTO(auto_free) char *full = mem_format("%s.%zu", name, i + 1);

		add(form, full, inner);
	}
}

/* Returns what the reply says: a new reference. */
static json_t *said(enum aws_operation operation, const struct aws_reply *reply, struct err **err)
{
	const struct operation_row *row = operation_row(operation);
	AUTO(auto_free) char *what = NULL, *result = NULL;
	json_auto_t *tree = NULL;

	if (operation_service_row(row->service)->protocol != PROTOCOL_QUERY)
		return json_incref(reply->json);
	what = mem_format("the reply of %s", operation_service_row(row->service)->signing);
	if (xml_tree(reply->http->body.text, reply->http->body.len, what, &tree, err) < 0)
		return NULL;
	/* IAM's are within an element of their own. */
	result = mem_format("%sResult", row->name);
	return json_incref(json_object_get(tree, result) ? json_object_get(tree, result) : tree);
}

json_t *doctor_ask(struct aws **aws, enum aws_operation operation, const json_t *body,
		   const char *name, struct err **err)
{
	const struct operation_row *row = operation_row(operation);
	const struct service_row *service = operation_service_row(row->service);
	struct aws_call call = { .operation = operation, .body_fd = -1 };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(form_release) struct ask_form form = { 0 };
	json_auto_t *answer = NULL;
	json_t *ret;

	if (service->protocol == PROTOCOL_QUERY)
		add(&form, "", body);
	else
		call.json = body;
	call.params = form.pairs;
	call.param_count = form.count;
	if ((!*aws && aws_open(aws, err) < 0) || aws_perform(*aws, &call, &reply, err) < 0)
		return NULL;
	answer = said(operation, &reply, err);
	if (*err)
		return NULL;
	ret = name ? json_object_get(answer, name) : answer;
	if (!ret) {
		err_set(err, EXIT_UNREACHABLE, "the reply of %s has no '%s'", service->signing,
			name ? name : "body");
		err_hint(err, "check that AWS_ENDPOINT_URL leads to the service");
	}
	return json_incref(ret);
}
