/* Converting a scalar by a row of the table: see resolved.h. */
#include "jobs/spec/resolved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/fields/units.h"
#include "jobs/spec/lint/suggest.h"

#define SHOWN_MAX 60 /* bytes of a value in a message */

struct value_value { /* the value being converted */
	struct binder *binder;
	const struct field *row;
	const struct node *node;
	const struct path *path;
	bool plain; /* unquoted, or from a variable: the form decides the type */
	enum scalar_kind kind;
};

char *value_shown(field_id field, const struct node *node)
{
	size_t len = strlen(node->written);

	if (field_table[field].secret)
		return mem_copy("(not shown)");
	if (len <= SHOWN_MAX)
		return mem_copy(node->written);
	len = SHOWN_MAX;
	while (len > 0 && ((unsigned char)node->written[len] & 0xc0) == 0x80)
		len--; /* not inside a character */
	return mem_format("%.*s…", (int)len, node->written);
}

static field_id id_of(const struct value_value *value)
{
	return (field_id)(value->row - field_table);
}

/* Reports "'retry.attempts' must be an integer, not 'many'"; returns NULL. */
static json_t *wrong(const struct value_value *value, const char *must_be, const char *hint)
{
	AUTO(auto_free) char *field = node_path_text(value->path);
	AUTO(auto_free) char *shown = value_shown(id_of(value), value->node);
	struct problem *problem;

	if (!value->plain && value->kind != SCALAR_TEXT && !value->row->secret)
		problem = problem_error(&value->binder->reporter, value->node->at, field,
					"'%s' must be %s, not the string \"%s\"", field, must_be,
					shown);
	else
		problem = problem_error(&value->binder->reporter, value->node->at, field,
					"'%s' must be %s, not '%s'", field, must_be, shown);
	if (hint)
		problem_hint(problem, "%s", hint);
	else
		problem_hint(problem, "for example: %s", value->row->example);
	return NULL;
}

static bool in_range(const struct value_value *value, double number)
{
	const struct field *row = value->row;
	AUTO(auto_free) char *range = field_range_text(row);
	AUTO(auto_free) char *field = NULL;
	AUTO(auto_free) char *shown = NULL;
	struct problem *problem;

	if (!range || (number >= (double)row->min && number <= (double)row->max))
		return true;
	field = node_path_text(value->path);
	shown = value_shown(id_of(value), value->node);
	problem = problem_error(&value->binder->reporter, value->node->at, field,
				"'%s' is %s, but must be %s", field, shown, range);
	if (row->type == FIELD_SIZE && value->kind == SCALAR_INT)
		problem_hint(problem, "write a unit, without which it counts bytes: %sGiB or %sMiB",
			     shown, shown);
	else if (row->min == row->max)
		problem_hint(problem, "write %s", range);
	else
		problem_hint(problem, "write a value %s, for example %s", range, row->example);
	return false;
}

/* Returns the number meant by 1_000, 1,000, 1e3 or 10.0; or NULL. */
static char *plain_number(const char *text)
{
	AUTO(sb_release) struct sb digits = SB_INIT_MAX(64);
	double number;

	for (const char *c = text; *c; c++)
		if (!strchr("_, '", *c))
			sb_addc(&digits, *c);
	switch (scalar_kind(digits.text)) {
	case SCALAR_INT:
	case SCALAR_REAL:
		number = scalar_real(digits.text);
		if (isfinite(number) && floor(number) == number && fabs(number) < 1e15)
			return mem_format("%.0f", number);
		break;
	case SCALAR_NULL:
	case SCALAR_BOOL:
	case SCALAR_TEXT:
		break;
	}
	return NULL;
}

static json_t *convert_int(const struct value_value *value)
{
	AUTO(auto_free) char *better = NULL;
	AUTO(auto_free) char *hint = NULL;
	const char *text = value->node->text;
	int64_t number;

	if (value->plain && value->kind == SCALAR_INT && !scalar_is_octal_like(text)) {
		if (!scalar_int(text, &number))
			return wrong(value, "an integer of at most 64 bits", value->row->help);
		return in_range(value, (double)number) ? json_integer(number) : NULL;
	}
	better = plain_number(text);
	if (!value->plain && value->kind == SCALAR_INT)
		hint = mem_format("remove the quotes: %s", text);
	else if (better)
		hint = mem_format("write %s", better);
	else
		hint = mem_format("for example: %s", value->row->example);
	return wrong(value, "an integer", hint);
}

static json_t *convert_real(const struct value_value *value)
{
	bool number = value->kind == SCALAR_INT || value->kind == SCALAR_REAL;
	AUTO(auto_free) char *hint = NULL;
	double real = number ? scalar_real(value->node->text) : (double)NAN;

	if (value->plain && number && isfinite(real)) {
		if (!in_range(value, real))
			return NULL;
		return json_real(real);
	}
	hint = !value->plain && number ? mem_format("remove the quotes: %s", value->node->text)
				       : mem_format("for example: %s", value->row->example);
	return wrong(value, "a number", hint);
}

static json_t *convert_bool(const struct value_value *value)
{
	static const char yes[] = "yes Yes YES on On ON y Y 1", no[] = "no No NO off Off OFF n N 0";
	const char *text = value->node->text;

	if (value->plain && value->kind == SCALAR_BOOL)
		return json_boolean(scalar_true(text));
	if (value->kind == SCALAR_BOOL)
		return wrong(value, "true or false", "remove the quotes");
	if (field_word_in(yes, text) || field_word_in(no, text))
		return wrong(value, "true or false",
			     field_word_in(yes, text) ? "write true" : "write false");
	return wrong(value, value->row->words ? "true, false or auto" : "true or false",
		     "write true or false, without quotes");
}

static json_t *convert_choice(const struct value_value *value)
{
	AUTO(auto_free) char *all = field_words_list(value->row->words, " or ");
	AUTO(auto_free) char *suggestion = NULL;
	AUTO(auto_free) char *hint = NULL;

	suggestion = suggest_word(value->row->words, value->node->text);
	if (suggestion)
		hint = mem_format("did you mean '%s'?", suggestion);
	return wrong(value, all, hint);
}

/* Durations, sizes, percentages: number and unit, kept as text. */
static json_t *convert_measure(const struct value_value *value)
{
	AUTO(auto_free) char *hint = NULL;
	const char *text = value->node->text;
	int64_t number = 0;
	bool good = units_parse(value->row->type, text, &number);

	if (good)
		return in_range(value, (double)number) ? json_string_nocheck(text) : NULL;
	hint = units_hint(value->row->type, text, value->row->example);
	return wrong(value, units_must_be(value->row->type), hint);
}

static json_t *convert_margin(const struct value_value *value)
{
	AUTO(auto_free) char *hint = NULL;
	const char *text = value->node->text;
	double number;
	bool relative;

	if (spec_margin(text, &number, &relative))
		return json_string_nocheck(text);
	hint = units_hint(FIELD_PERCENT, text, value->row->example);
	return wrong(value, units_must_be(FIELD_MARGIN), hint);
}

/* True for an unquoted scalar that another reader of YAML would not take as a text. */
static bool ambiguous(const struct value_value *value)
{
	const char *text = value->node->text;

	if (!value->plain || value->node->expanded)
		return false;
	switch (value->kind) {
	case SCALAR_NULL:
	case SCALAR_BOOL:
		return true;
	case SCALAR_INT:
		return !value->row->numbers &&
		       (scalar_is_octal_like(text) || text[0] == '+' || strpbrk(text, "xo"));
	case SCALAR_REAL:
		return !value->row->numbers;
	case SCALAR_TEXT:
		break;
	}
	return false;
}

bool value_has_shape(struct binder *binder, enum field_shape shape, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	const char *pattern = field_shape_rows[shape].pattern;
	size_t len = strlen(text);

	if (!pattern)
		return true;
	if (!binder->shapes[shape] && regex_compile(pattern, &binder->shapes[shape], &err) < 0)
		abort(); /* a test compiles each of them */
	/* '$' would also match before a final newline. */
	return regex_find(binder->shapes[shape], text, len, 0, spans) && spans[0].to == len;
}

static bool good_regex(const struct value_value *value)
{
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	AUTO(regex_freep) struct regex *regex = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *field = node_path_text(value->path);

	if (strlen(value->node->text) > REGEX_PATTERN_MAX) {
		problem_hint(problem_error(&value->binder->reporter, value->node->at, field,
					   "'%s' is longer than %d bytes", field,
					   REGEX_PATTERN_MAX),
			     "match less of the line");
		return false;
	}
	if (regex_compile(value->node->text, &regex, &err) < 0) {
		problem_hint(problem_error(&value->binder->reporter, value->node->at, field,
					   "'%s': %s", field, err->message),
			     "put the pattern in '…', where a backslash is just that");
		return false;
	}
	if (value->row->shape == SHAPE_READING && regex_groups(regex) == 0) {
		problem_hint(problem_error(&value->binder->reporter, value->node->at, field,
					   "'%s' has no group to read the number from", field),
			     "put the number's part in parentheses: 'loss: ([0-9.eE+-]+)'");
		return false;
	}
	if (value->row->shape == SHAPE_READING || !regex_find(regex, "", 0, 0, spans))
		return true;
	problem_hint(problem_error(&value->binder->reporter, value->node->at, field,
				   "'%s' is found in every line, even an empty one", field),
		     "write a pattern that only the line of the failure matches");
	return false;
}

static json_t *unquoted(const struct value_value *value)
{
	AUTO(auto_free) char *field = node_path_text(value->path);
	AUTO(auto_free) char *shown = value_shown(id_of(value), value->node);

	problem_hint(problem_error(&value->binder->reporter, value->node->at, field,
				   "'%s' must be a string, but %s without quotes is %s", field,
				   shown, node_kind_text(value->node)),
		     "use quotes: \"%s\"", shown);
	return NULL;
}

static json_t *convert_path(const struct value_value *value)
{
	AUTO(auto_free) char *field = node_path_text(value->path);
	AUTO(auto_free) char *path = home_expand(value->binder, value->node, field);

	return path ? json_string_nocheck(path) : NULL;
}

/* Shapes that a reader of their own knows better than a pattern. */
static bool is_good(const struct value_value *value)
{
	AUTO(auto_free) char *field = node_path_text(value->path);

	if (shape_is_regex(value->row->shape))
		return good_regex(value);
	if (value->row->shape == SHAPE_CRON)
		return schedule_is_cron(value->binder, value->node, field);
	if (value->row->shape == SHAPE_TIMEZONE)
		return schedule_is_zone(value->binder, value->node, field);
	return true;
}

static json_t *convert_string(const struct value_value *value)
{
	const struct shape_row *shape = &field_shape_rows[value->row->shape];

	if (ambiguous(value))
		return unquoted(value);
	if (!is_good(value))
		return NULL;
	if (!value_has_shape(value->binder, value->row->shape, value->node->text))
		return wrong(value, shape->what, shape->hint);
	return value->row->is_path ? convert_path(value) : json_string_nocheck(value->node->text);
}

json_t *value_convert(struct binder *binder, field_id field, const struct node *node,
		      const struct path *path)
{
	struct value_value value = {
		.binder = binder,
		.row = &field_table[field],
		.node = node,
		.path = path,
		.plain = !node->quoted || node->expanded,
		.kind = scalar_kind(node->text),
	};

	if (node->unknown)
		return NULL; /* the variable was reported */
	if (value.row->words && field_word_in(value.row->words, node->text))
		return json_string_nocheck(node->text);
	switch (value.row->type) {
	case FIELD_INT:
		return convert_int(&value);
	case FIELD_REAL:
		return convert_real(&value);
	case FIELD_BOOL:
		return convert_bool(&value);
	case FIELD_CHOICE:
		return convert_choice(&value);
	case FIELD_DURATION:
	case FIELD_SIZE:
	case FIELD_PERCENT:
		return convert_measure(&value);
	case FIELD_MARGIN:
		return convert_margin(&value);
	case FIELD_STRING:
		return convert_string(&value);
	case FIELD_ANY:
	case FIELD_OVERLAY:
		return value_any(binder, node, path);
	case FIELD_SECTION:
	case FIELD_LIST:
	case FIELD_FREE:
	case FIELD_TYPE_COUNT:
		break;
	}
	return NULL;
}

static json_t *any_scalar(const struct node *node)
{
	const char *text = node->text;
	int64_t whole;

	if (node->quoted)
		return json_string_nocheck(text);
	switch (scalar_kind(text)) {
	case SCALAR_NULL:
		return node->expanded ? json_string_nocheck(text) : json_null();
	case SCALAR_BOOL:
		return json_boolean(scalar_true(text));
	case SCALAR_INT:
		if (scalar_int(text, &whole))
			return json_integer(whole);
		break;
	case SCALAR_REAL:
		break;
	case SCALAR_TEXT:
		return json_string_nocheck(text);
	}
	/* JSON knows neither infinity nor NaN. */
	return isfinite(scalar_real(text)) ? json_real(scalar_real(text))
					   : json_string_nocheck(text);
}

json_t *value_any(struct binder *binder, const struct node *node, const struct path *path)
{
	AUTO(auto_free) char *field = NULL;
	json_t *list;

	if (node->unknown)
		return NULL;
	if (node->kind == NODE_SCALAR)
		return any_scalar(node);
	if (node->kind == NODE_MAP) {
		field = node_path_text(path);
		problem_hint(problem_error(&binder->reporter, node->at, field,
					   "'%s' must be %s, not a mapping", field,
					   field_type_text(FIELD_ANY)),
			     "write JSON in single quotes: '{\"key\": 1}'");
		return NULL;
	}
	list = json_array();
	for (size_t i = 0; i < node->count; i++) {
		struct path at = { path, NULL, i };

		json_array_append_new(list, value_any(binder, node->entries[i].value, &at));
	}
	return list;
}
