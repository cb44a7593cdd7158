/* Derived values of a spec: see derive.h. */
#include "jobs/spec/derive/derive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/derive/evaluation.h"
#include "jobs/spec/derive/expression.h"
#include "jobs/spec/derive/known.h"
#include "jobs/spec/derive/place.h"
#include "jobs/spec/fields/names.h"

#define SECTION   "derive"
#define WHOLE_MAX 9007199254740992.0 /* 2^53: all whole numbers up to there are doubles */
#define UNDEFINED "is not defined"

/* An expression that is being worked out. */
struct derivation {
	struct binder *binder;
	const struct spec *spec; /* with all values before this one */
	const struct entry *entry;
	field_id field;
	json_t *request; /* owned */
};

/* Adds a problem at a byte of the expression. */
static struct problem *wrong(const struct derivation *derivation, size_t offset, const char *fmt,
			     ...) STK_PRINTF(3, 4);
static struct problem *wrong(const struct derivation *derivation, size_t offset, const char *fmt,
			     ...)
{
	AUTO(auto_free) char *name = mem_format(SECTION ".%s", derivation->entry->key);
	struct mark at =
		place_in_scalar(derivation->binder->spec, derivation->entry->value, offset);
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(&derivation->binder->reporter, at, name, false, fmt, args);
	va_end(args);
	return problem;
}

/* ---- references ---- */

/* Adds the value of $NAME, if there is one. A name whose value cannot be known is a problem, and
 * all other names are left to libjq: the expression may define them itself. */
static bool add_value(const struct derivation *derivation, const struct expression_word *word)
{
	json_t *values = json_object_get(derivation->request, "values");
	AUTO(auto_free) char *name = mem_copy_n(word->text, word->len);
	AUTO(auto_free) char *why = NULL;
	AUTO(auto_free) char *hint = NULL;
	json_t *value = known_value(derivation->spec, name, &why, &hint);

	if (why) {
		problem_hint(wrong(derivation, word->at, "$%s, for '%s', cannot be known: %s", name,
				   derivation->entry->key, why),
			     "%s", hint);
		return false;
	}
	if (json_is_integer(value) && (json_integer_value(value) > (int64_t)WHOLE_MAX ||
				       json_integer_value(value) < -(int64_t)WHOLE_MAX)) {
		problem_hint(wrong(derivation, word->at,
				   "$%s, for '%s', is %lld: numbers of expressions are exact up to "
				   "2^53 alone",
				   name, derivation->entry->key,
				   (long long)json_integer_value(value)),
			     "write the value without an expression, or a smaller one");
		json_decref(value);
		return false;
	}
	js_put(values, name, value);
	return true;
}

/* Reads the words of the expression. False after a problem. */
static bool read_words(const struct derivation *derivation)
{
	struct expression expression = { .text = derivation->entry->value->text };

	for (;;) {
		struct expression_word word = expression_next(&expression);
		const char *why = expression_refusal(&word);

		if (word.kind == EXPRESSION_END)
			return true;
		if (word.kind == EXPRESSION_TOO_DEEP) {
			problem_hint(wrong(derivation, word.at,
					   "the expression of '%s' is nested more than %d deep",
					   derivation->entry->key, EXPRESSION_DEPTH),
				     "write it with fewer brackets");
			return false;
		}
		if (why) {
			problem_hint(wrong(derivation, word.at,
					   "'%s%.*s', for '%s', is refused: it %s",
					   word.kind == EXPRESSION_VARIABLE ? "$" : "",
					   (int)word.len, word.text, derivation->entry->key, why),
				     "a derived value follows from the spec alone: "
				     "'stoker help derive' shows from what");
			return false;
		}
		if (word.kind == EXPRESSION_VARIABLE && !add_value(derivation, &word))
			return false;
	}
}

/* Returns what . is: the resolved spec, without what is secret or not the job's. */
static json_t *visible(const struct spec *spec)
{
	static const char *const hidden[] = { "secrets", "env_file", "pass_env", "sweep", SECTION };
	json_t *root = json_deep_copy(spec_root(spec)), *env = json_object_get(root, "env"), *value;
	const char *name;
	void *next;

	for (size_t i = 0; i < STK_LENGTH(hidden); i++)
		json_object_del(root, hidden[i]);
	json_object_foreach_safe (env, next, name, value) {
		if (names_secret(name))
			json_object_del(env, name);
	}
	return root;
}

/* Makes the request. False after a problem. */
static bool prepare(struct derivation *derivation)
{
	const struct entry *entry = derivation->entry;

	if (strlen(entry->value->text) > EVALUATION_BYTES_MAX) {
		problem_hint(wrong(derivation, 0, "the expression of '%s' is longer than %d bytes",
				   entry->key, EVALUATION_BYTES_MAX),
			     "write a shorter one");
		return false;
	}
	derivation->request = json_object();
	js_put_str(derivation->request, "expression", entry->value->text);
	js_put(derivation->request, "values", json_object());
	js_put(derivation->request, "spec", visible(derivation->spec));
	return read_words(derivation);
}

/* ---- errors of libjq ---- */

/* Returns the place of the word that libjq does not know, the first of its words: "$x", "f/0". */
static size_t place_of_word(const char *text, const char *name)
{
	struct expression expression = { .text = text };
	enum expression_kind kind = *name == '$' ? EXPRESSION_VARIABLE : EXPRESSION_NAME;
	size_t len;

	name += *name == '$';
	len = strcspn(name, "/ ");
	for (;;) {
		struct expression_word word = expression_next(&expression);

		if (word.kind == EXPRESSION_END || word.kind == EXPRESSION_TOO_DEEP)
			return 0;
		if (word.kind == kind && word.len == len && strncmp(word.text, name, len) == 0)
			return word.at;
	}
}

/* Tells what libjq says of an expression that it does not take: "jq: error: WORDS at <top-level>,
 * line 1:", and then the line. */
static void tell_invalid(const struct derivation *derivation, const char *said)
{
	static const char head[] = "jq: error: ", shell[] = " (Unix shell";
	const char *text = derivation->entry->value->text, *key = derivation->entry->key;
	AUTO(auto_free) char *words = NULL;
	const char *at, *undefined;

	said += text_starts(said, head) ? sizeof head - 1 : 0;
	at = strstr(said, " at <top-level>");
	words = mem_copy_n(said, at ? (size_t)(at - said) : strcspn(said, "\n"));
	if (strstr(words, shell)) /* a hint that belongs to jq's command line */
		*strstr(words, shell) = '\0';
	undefined = strstr(words, UNDEFINED);
	if (undefined) {
		AUTO(auto_free) char *names = known_names(derivation->spec);
		AUTO(auto_free) char *name = mem_copy_n(words, strcspn(words, "/ "));

		problem_hint(wrong(derivation, place_of_word(text, words),
				   "'%s', for '%s', " UNDEFINED, name, key),
			     "there are %s; any field is a path, such as .resources.nodes", names);
		return;
	}
	problem_hint(wrong(derivation, 0, "the expression of '%s' is invalid: %s", key, words),
		     "it is in jq's language, such as \"5e-5/32*$global_batch\"");
}

static void tell_failed(const struct derivation *derivation, const json_t *answer)
{
	const char *key = derivation->entry->key, *words;

	if ((words = js_str(answer, "invalid")))
		tell_invalid(derivation, words);
	else if ((words = js_str(answer, "error")))
		problem_hint(wrong(derivation, 0, "the expression of '%s' fails: %s", key, words),
			     "see 'stoker help derive' for the values that it can use");
	else if ((words = js_str(answer, "not")))
		problem_hint(
			wrong(derivation, 0,
			      "the expression of '%s' gives %s; a derived value is one number, "
			      "string or boolean",
			      key, words),
			"for example \"5e-5/32*$global_batch\"; 'stoker help derive' shows "
			"what it can use");
	else if (json_object_get(answer, "memory"))
		problem_hint(wrong(derivation, 0,
				   "the expression of '%s' needs more than 64 MiB of memory", key),
			     "write a simpler one");
	else
		problem_hint(wrong(derivation, 0, "the expression of '%s' cannot be worked out: %s",
				   key, js_str(answer, "ended")),
			     "write a simpler one");
}

/* ---- value of an expression ---- */

/* The shortest digits that read back the same; whole numbers without an exponent, which an integer
 * must not have. */
static char *number_text(double number)
{
	char text[TEXT_NUMBER];
	double same;

	if (number == floor(number) && fabs(number) <= WHOLE_MAX)
		return mem_format("%.0f", number == 0 ? 0 : number);
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (text_float(text, strlen(text), &same) > 0 && same == number)
			break;
	}
	return mem_copy(text);
}

/* Returns the value as text; NULL if there is none. *ret_string is true if it is one. */
static char *text_of(const json_t *answer, bool *ret_string)
{
	const json_t *value = json_object_get(answer, "number");
	const char *string = js_str(answer, "string");

	*ret_string = string != NULL;
	if (value)
		return number_text(json_number_value(value));
	if (string)
		return mem_copy(string);
	value = json_object_get(answer, "boolean");
	return value ? mem_copy(json_is_true(value) ? "true" : "false") : NULL;
}

static void set_value(const struct derivation *derivation, const char *text, bool string)
{
	struct spec *spec = derivation->binder->spec;
	enum field_type type = field_table[derivation->field].type;
	struct mark at = access_mark_of_entry(derivation->entry);
	bool quoted = type == FIELD_STRING || (type == FIELD_ANY && string);
	json_t *row = json_object();

	if (strstr(text, "${")) { /* "${" would mean a variable elsewhere */
		problem_hint(wrong(derivation, 0, "the value of '%s' holds '${'",
				   derivation->entry->key),
			     "leave the dollar sign out: no variable expands in a derived value");
		json_decref(row);
		return;
	}
	set_node(spec->arena, &derivation->binder->reporter, spec->tree, derivation->entry->key,
		 node_scalar(spec->arena, node_arena_text(spec->arena, text, strlen(text)), quoted,
			     at));
	js_put_str(row, "field", derivation->entry->key);
	js_put_str(row, "expression", derivation->entry->value->text);
	js_put_str(row, "value", text);
	if (!spec->derived)
		spec->derived = json_array();
	json_array_append_new(spec->derived, row);
}

static void work_out(struct derivation *derivation)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *answer = NULL;
	bool string;

	if (evaluation_run(derivation->request, &answer, &err) < 0) {
		problem_hint(wrong(derivation, 0, "'%s' cannot be derived: %s",
				   derivation->entry->key, err->message),
			     "%s", err->hint ? err->hint : "try again");
		return;
	}
	text = text_of(answer, &string);
	if (text)
		set_value(derivation, text, string);
	else
		tell_failed(derivation, answer);
}

/* ---- all derived values ---- */

static void release_scratch(struct spec *scratch)
{
	json_decref(scratch->root);
	json_decref(scratch->instance);
	json_decref(scratch->env_files);
	json_decref(scratch->passed);
}

/* Derives one value. False if the spec has problems of its own. */
static bool derive_one(struct binder *binder, const struct entry *entry, field_id field)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(bind_release) struct binder apart = { .getenv_fn = binder->getenv_fn };
	AUTO(release_scratch) struct spec scratch = *binder->spec;
	struct derivation derivation = {
		.binder = binder, .spec = &scratch, .entry = entry, .field = field
	};

	apart.spec = &scratch;
	apart.reporter = (struct reporter){ binder->spec->file, &problems };
	load_resolve(&apart);
	if (problems.errors > 0)
		return false;
	if (prepare(&derivation))
		work_out(&derivation);
	json_decref(derivation.request);
	return true;
}

/* Returns the row of the field that an entry derives; FIELD_NONE after a problem, or if there is no
 * expression. */
static field_id field_of(struct binder *binder, const struct entry *entry)
{
	static const char *const never[] = { SECTION,   "sweep",    "secrets", "version",
					     "extends", "profiles", NULL };

	if (entry->value->kind != NODE_SCALAR || node_is_null(entry->value) ||
	    entry->value->unknown)
		return FIELD_NONE; /* which is reported when the tree is checked */
	return set_check_path(binder, entry, SECTION, never, "cannot be derived");
}

/* Returns the section `derive` of a map; NULL if it has none. */
static const struct node *section_of(const struct node *map)
{
	const struct entry *entry = map && map->kind == NODE_MAP ? node_entry(map, SECTION) : NULL;

	return entry && entry->value->kind == NODE_MAP ? entry->value : NULL;
}

/* False if the spec has problems of its own. */
static bool derive_all(struct binder *binder, const struct node *section)
{
	for (size_t i = 0; section && i < section->count; i++) {
		const struct entry *entry = &section->entries[i];
		field_id field;

		if (spec_override(binder->spec, entry->key))
			continue;
		field = field_of(binder, entry);
		if (field != FIELD_NONE && !derive_one(binder, entry, field))
			return false;
	}
	return true;
}

void derive_apply(struct binder *binder)
{
	const struct node *tree = binder->spec->tree;
	const struct entry *sweep = node_entry(tree, "sweep");

	if (derive_all(binder, section_of(tree)))
		derive_all(binder, section_of(sweep ? sweep->value : NULL));
}

const json_t *spec_derived(const struct spec *spec)
{
	return spec->derived;
}
