/* The user's own rows of the failure table: see own_rows.h. */
#include "jobs/run/plan/own_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "jobs/base/text/regex.h"
#include "jobs/flow/flow.h"

#define ID_MAX 32

struct own_rows {
	struct failure_own view;
	struct failure_row *rows;
	struct regex **regexes;
	char (*ids)[ID_MAX];
};

static bool find_in_line(const void *arg, size_t row, struct failure_line line,
			 struct failure_line *ret_found)
{
	const struct own_rows *own = arg;
	const struct regex *regex = own->regexes[row];
	struct regex_span spans[REGEX_GROUPS_MAX + 1] = { 0 };

	/* An expression that took too many steps once is not tried again. */
	if (!regex || regex_given_up(regex) > 0 ||
	    !regex_find(regex, line.text, line.len, 0, spans))
		return false;
	if (spans[1].set)
		spans[0] = spans[1];
	*ret_found =
		(struct failure_line){ line.text + spans[0].from, spans[0].to - spans[0].from };
	return true;
}

static void row_init(struct failure_row *row, const char *id, const json_t *object)
{
	const char *class = js_str(object, "class"), *hint = js_str(object, "hint");
	int number = class ? flow_name_find(flow_class_names, CLASS_COUNT, class) : -1;

	*row = (struct failure_row){
		.id = id,
		.source = FAILURE_LOG,
		.pattern = "^",
		.role = FAILURE_ROOT,
		.class = number > 0 ? (enum failure_class)number : CLASS_UNKNOWN,
		.if_killed = true,
		.hint = hint ? hint : "",
	};
}

struct own_rows *own_rows_new(const json_t *rows)
{
	struct own_rows *own = mem_zero(1, sizeof *own);
	size_t count = json_array_size(rows);

	own->rows = mem_zero(count + 1, sizeof *own->rows);
	own->regexes = mem_zero(count + 1, sizeof(struct regex *));
	own->ids = mem_zero(count + 1, sizeof *own->ids);
	own->view = (struct failure_own){ .rows = own->rows, .find = find_in_line, .arg = own };
	for (size_t i = 0; i < count; i++) {
		const json_t *object = json_array_get(rows, i);
		const char *regex = js_str(object, "regex");
		AUTO(err_freep) struct err *err = NULL;

		snprintf(own->ids[i], ID_MAX, OWN_ROW_PREFIX "%zu", i + 1);
		row_init(&own->rows[i], own->ids[i], object);
		if (!regex || regex_compile(regex, &own->regexes[i], &err) < 0)
			own->regexes[i] = NULL;
		own->view.count++;
	}
	return own;
}

void own_rows_freep(struct own_rows **own)
{
	if (!*own)
		return;
	for (size_t i = 0; i < (*own)->view.count; i++)
		regex_freep(&(*own)->regexes[i]);
	free((*own)->rows);
	free((*own)->regexes);
	free((*own)->ids);
	free(*own);
	*own = NULL;
}

const struct failure_own *own_rows_get(const struct own_rows *own)
{
	return &own->view;
}
