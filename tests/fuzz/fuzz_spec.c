/*
 * The job spec, from a repository that may be anybody's. The input is the file, then
 * behind a FUZZ_PART the overrides, one a line, then behind another the value that
 * every variable has which begins with V.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/spec/fields/field.h"
#include "jobs/spec/spec.h"

#define SETS_MAX 8

static const char *variable; /* NULL: none is set */

static const char *one_variable(const char *name)
{
	return name[0] == 'V' ? variable : NULL;
}

/* The overrides of a part, NULL-terminated. */
static char **read_sets(struct span text)
{
	char **sets = mem_zero(SETS_MAX + 1, sizeof *sets);
	struct span line;

	for (size_t n = 0; n < SETS_MAX && span_next(&text, '\n', &line);)
		if (line.len > 0)
			sets[n++] = mem_copy_n(line.text, line.len);
	return sets;
}

static int count_lines(struct span text)
{
	int lines = 1;

	for (size_t i = 0; i < text.len; i++)
		lines += text.text[i] == '\n' || text.text[i] == '\r' ||
			 (unsigned char)text.text[i] >= 0x80; /* YAML has other ends of lines */
	return lines;
}

static void check_problems(const struct problems *problems, int lines, bool loaded)
{
	const struct problem *before = NULL;

	MUST((problems->errors == 0) == loaded);
	MUST(problems->count <= SPEC_PROBLEMS_MAX);
	MUST(problems->errors <= problems->count + problems->dropped);
	MUST(loaded || problems->count > 0);
	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->list[i];
		AUTO(auto_free) char *said = problem_format(problem);

		MUST(problem->file && problem->message && problem->message[0] && said[0]);
		MUST(problem->line >= 0 && problem->line <= lines && problem->column >= 0);
		MUST(!problem->hint || problem->hint[0]);
		if (before && strcmp(before->file, problem->file) == 0)
			MUST(before->line <= problem->line);
		before = problem;
	}
}

static void check_fields(const struct spec *spec)
{
	for (int n = 0; n < SPEC_FIELD_COUNT; n++) {
		enum spec_field field = (enum spec_field)n;
		const json_t *value = spec_get(spec, field);
		int line = 0, column = 0;
		bool placed = spec_position(spec, field_table[field].path, NULL, &line, &column);

		MUST(!value || !json_is_string(value) || spec_str(spec, field));
		MUST(value || (!spec_str(spec, field) && spec_int(spec, field) == 0));
		MUST(placed || (line == 0 && column == 0));
		spec_bool(spec, field);
		spec_real(spec, field);
		spec_ms(spec, field);
		spec_bytes(spec, field);
		spec_is_set(spec, field);
	}
}

static void check_strings(char **strings)
{
	for (size_t i = 0; strings[i]; i++)
		MUST(strlen(strings[i]) <= SPEC_BYTES_MAX);
	auto_strv(&strings);
}

/* An object of texts. */
static void check_texts(json_t *object)
{
	const char *name;
	json_t *value;

	MUST(json_is_object(object));
	json_object_foreach (object, name, value)
		MUST(name[0] && json_is_string(value));
	json_decref(object);
}

/* Checks the job that the spec makes. */
static void check_job(const struct spec *spec)
{
	for (int with_overrides = 0; with_overrides <= 1; with_overrides++) {
		check_strings(spec_arguments(spec, with_overrides));
		check_texts(spec_env(spec, with_overrides));
		check_texts(spec_hyperparameter_texts(spec, with_overrides));
	}
}

static char *key_of(const struct spec *spec)
{
	json_auto_t *ingredients = spec_key_ingredients(spec);

	MUST(json_is_object(ingredients));
	return json_dumps(ingredients, JSON_SORT_KEYS | JSON_COMPACT);
}

/* A spec that is good is one thing, however often it is read. */
static void check_good(const struct spec *spec, const struct spec *again)
{
	AUTO(problems_release) struct problems not_yet = { 0 };
	AUTO(auto_free) char *root = json_dumps(spec_root(spec), JSON_SORT_KEYS | JSON_COMPACT);
	AUTO(auto_free)
	char *root_again = json_dumps(spec_root(again), JSON_SORT_KEYS | JSON_COMPACT);
	AUTO(auto_free) char *key = key_of(spec);
	AUTO(auto_free) char *key_again = key_of(again);

	MUST(json_is_object(spec_root(spec)));
	MUST(strcmp(root, root_again) == 0 && strcmp(key, key_again) == 0);
	MUST(spec_str(spec, SPEC_NAME) && spec_get(spec, SPEC_COMMAND));
	check_fields(spec);
	check_job(spec);
	MUST(spec_not_yet(spec, &not_yet) >= not_yet.count);
}

static struct spec *load(struct span file, char *const *sets)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(auto_free) char *copy = span_copy(file);
	struct spec *spec = NULL;
	const struct spec_changes changes = { NULL, sets };
	int loaded =
		spec_parse("spec.yaml", copy, file.len, &changes, one_variable, &spec, &problems);

	MUST(loaded == 0 || loaded == -1);
	MUST((loaded == 0) == (spec != NULL));
	check_problems(&problems, count_lines(file), loaded == 0);
	return spec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { (const char *)data, size }, file = { 0 }, part;
	AUTO(auto_strv) char **sets = NULL;
	AUTO(auto_free) char *value = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;

	span_next(&rest, FUZZ_PART, &file);
	if (span_next(&rest, FUZZ_PART, &part))
		sets = read_sets(part);
	if (span_next(&rest, FUZZ_PART, &part))
		value = mem_copy_n(part.text, part.len);
	variable = value;
	spec = load(file, sets);
	if (spec) {
		AUTO(spec_freep) struct spec *again = load(file, sets);

		MUST(again);
		check_good(spec, again);
	}
	return 0;
}
