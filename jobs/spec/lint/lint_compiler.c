/* Flags of the Neuron compiler against their table: see lint_compiler.h. */
#include "jobs/spec/lint/lint_compiler.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/compiler_flags.h"
#include "jobs/spec/lint/suggest.h"
#include "jobs/spec/machines/compatibility.h"
#include "jobs/spec/machines/instance.h"

#define WORDS_MAX 1000 /* longer texts are no flags of a compiler's */

struct flags_check {
	struct binder *binder;
	const struct flags_text *text;
	const struct flag_use *uses;
	size_t count;
	const char *sdk; /* of the image, NULL: not known */
};

#define CAST_BY_DEFAULT "2.27.0" /* the first SDK in which --auto-cast is none by default */

/* The place that all problems of a text are at. */
#define ABOUT(check) &(check)->binder->reporter, (check)->text->at, (check)->text->field

/* Returns "1, 2 or 3" of "1 2 3", with that word before the last; '#' is a number. The caller
 * frees it. */
static char *in_words(const char *values, const char *word)
{
	struct sb text = SB_INIT;

	for (const char *at = values; *at;) {
		size_t len = strcspn(at, " ");
		bool last = !at[len];

		if (text.len > 0)
			sb_addf(&text, "%s%s%s", last ? " " : ",", last ? word : "",
				last ? " " : " ");
		if (len == 1 && *at == '#')
			sb_adds(&text, "a number");
		else
			sb_add(&text, at, len);
		at += len + !last;
	}
	return sb_take(&text);
}

/* ---- machines ----------------------------------------------------------------------- */

/* Returns the length of the generation in a type's name: "trn2" of "trn2u.48xlarge". */
static size_t generation(const char *type, const char **ret)
{
	size_t letters;

	*ret = text_starts(type, "ml.") ? type + strlen("ml.") : type;
	letters = strspn(*ret, "abcdefghijklmnopqrstuvwxyz");
	return letters + strspn(*ret + letters, "0123456789");
}

/* Returns the length of a machine's family as --target names it: "trn1n" of "trn1n.32xlarge", and
 * "trn2" of "trn2u.48xlarge", whose larger network is no family of the compiler's. */
static size_t family(const char *type, const char **ret)
{
	size_t len = generation(type, ret);

	return strncmp(*ret, "trn1n", strlen("trn1n")) == 0 ? strlen("trn1n") : len;
}

typedef void machine_fn(const struct flags_check *check, const struct flag_use *use,
			const char *type);

static void one_machine(const struct flags_check *check, const struct flag_use *use,
			const char *type, machine_fn *fn)
{
	json_auto_t *row = instance_find(check->binder->catalogue, type);

	if (accelerator_compiles(accelerator_of(row), "neuron"))
		fn(check, use, type);
}

/* Calls `fn` for each type of machine of the job that has Neuron devices. A machine without them
 * may well compile for others. */
static void each_machine(const struct flags_check *check, const struct flag_use *use,
			 machine_fn *fn)
{
	const struct spec *spec = check->binder->spec;
	const json_t *group;
	size_t i = 0;

	if (check->text->type) {
		one_machine(check, use, check->text->type, fn);
		return;
	}
	json_array_foreach (spec_get(spec, SPEC_SAGEMAKER_GROUPS), i, group) {
		if (js_str(group, "instance"))
			one_machine(check, use, js_str(group, "instance"), fn);
	}
	if (i == 0 && spec->instance)
		one_machine(check, use, js_str(spec->instance, "type"), fn);
}

static void check_target(const struct flags_check *check, const struct flag_use *use,
			 const char *type)
{
	const char *name;
	size_t len = family(type, &name), shared = generation(type, &name);
	bool same = strlen(use->value) == len && strncmp(use->value, name, len) == 0;
	struct problem *problem;

	if (same)
		return;
	/* trn1 and trn1n have the same cores, and other networks. */
	if (strncmp(use->value, name, shared) == 0 && !isdigit((unsigned char)use->value[shared]))
		problem = problem_lint(ABOUT(check),
				       "'--target %.20s' in " COMPILER_FLAGS
				       " is not the family of '%.80s'",
				       use->value, type);
	else
		problem = problem_error(ABOUT(check),
					"'--target %.20s' in " COMPILER_FLAGS
					" compiles for other machines than '%.80s'",
					use->value, type);
	problem_hint(problem,
		     "write --target %.*s, or leave the flag out: the framework names the machine "
		     "that it runs on",
		     (int)len, name);
}

static bool is_on(const char *generations, const char *name, size_t len)
{
	AUTO(auto_free) char *word = mem_copy_n(name, len);

	return field_word_in(generations, word);
}

static void check_place(const struct flags_check *check, const struct flag_use *use,
			const char *type)
{
	const struct compiler_flag *row = use->row;
	AUTO(auto_free) char *places = in_words(row->on, "and");
	const char *name;
	size_t len = generation(type, &name);

	if (is_on(row->on, name, len) ||
	    (row->anywhere && use->value && field_word_in(row->anywhere, use->value)))
		return;
	if (row->idle)
		problem_hint(problem_remark(ABOUT(check), "'%s' changes nothing on '%.80s'",
					    row->name, type),
			     "it may stay; it is documented for %s", places);
	else
		problem_hint(problem_lint(ABOUT(check),
					  "'%s' in " COMPILER_FLAGS " is for %s, not for '%.80s'",
					  row->name, places, type),
			     "remove it, or name a machine that has it");
}

/* ---- one flag ------------------------------------------------------------------------ */

/* Returns the value that was most likely meant, NULL if none is near. 7 is near 3, the last of
 * 1, 2 and 3, and "fp8" near fp8_e4m3, whose first part it is. The caller frees it. */
static char *meant(const struct compiler_flag *row, const char *value)
{
	AUTO(auto_free) char *near = suggest_word(row->values, value);
	const char *last = strrchr(row->values, ' ');

	if (last && isdigit((unsigned char)last[1]) &&
	    strtol(value, NULL, 10) > strtol(last, NULL, 10))
		return mem_copy(last + 1);
	if (near)
		return TAKE(near);
	for (const char *at = row->values; *at;) {
		size_t len = strcspn(at, " ");
		AUTO(auto_free) char *head = mem_copy_n(at, strcspn(at, " _"));
		AUTO(auto_free) char *same = suggest_word(head, value);

		if (same)
			return mem_copy_n(at, len);
		at += len + (at[len] == ' ');
	}
	return NULL;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* A value of a row, which is documented with others. Signs that only look like quotes are told by
 * lint_text.c. */
static void wrong_value(const struct flags_check *check, const struct flag_use *use)
{
	AUTO(auto_free) char *values = in_words(use->row->values, "or");
	AUTO(auto_free) char *near = meant(use->row, use->value);
	struct problem *problem;

	if (!is_plain(use->value))
		return;
	problem = problem_lint(ABOUT(check), "'%s' is documented as %s, not '%.40s'",
			       use->row->name, values, use->value);
	if (near)
		problem_hint(problem, "did you mean '%s'?", near);
	else
		problem_hint(problem, "%s takes the %s", use->row->name, use->row->help);
}

static void check_value(const struct flags_check *check, const struct flag_use *use)
{
	const struct compiler_flag *row = use->row;
	AUTO(auto_free) char *now = NULL;
	enum flag_value state = compiler_flag_value(use, &now);

	if (state == VALUE_WRONG)
		wrong_value(check, use);
	else if (state == VALUE_OLDER && now)
		problem_hint(problem_remark(ABOUT(check),
					    "'%s %.40s' is an older spelling of '%s %s'", row->name,
					    use->value, row->name, now),
			     "write %s %s; it is another graph key", row->name, now);
	else if (state == VALUE_OLDER)
		problem_hint(problem_remark(ABOUT(check), "'%s %.40s' is of older compilers",
					    row->name, use->value),
			     "the reference of today's has it no more: try the model without it");
}

static void check_row(const struct flags_check *check, const struct flag_use *use)
{
	const struct compiler_flag *row = use->row;

	if (row->takes != TAKES_NOTHING && (!use->value || !*use->value))
		problem_hint(problem_lint(ABOUT(check), "'%s' in " COMPILER_FLAGS " has no value",
					  row->name),
			     "it names the %s", row->help);
	check_value(check, use);
	if (row->instead)
		problem_hint(problem_remark(ABOUT(check), "'%s' is an older flag", row->name),
			     "write %s; it is another graph key", row->instead);
	if (row->on)
		each_machine(check, use, check_place);
	if (row->since && check->sdk && compatibility_is_older(check->sdk, row->since))
		problem_hint(problem_lint(ABOUT(check),
					  "'%s' in " COMPILER_FLAGS
					  " came with Neuron SDK %s, and the image has %s",
					  row->name, row->since, check->sdk),
			     "remove it, or name an image with that SDK");
}

/* True if the flags of the cache are meant, which are told as errors in any spelling. */
static bool is_of_cache(const char *name)
{
	return strcmp(name, "cache-dir") == 0 || strcmp(name, "no-cache") == 0;
}

/* A flag of no row. It may well be one of the many that are not documented, so this is no
 * warning. */
static void check_unknown(const struct flags_check *check, const struct flag_use *use)
{
	AUTO(sb_release) struct sb names = SB_INIT;
	AUTO(auto_free) char *near = NULL;
	const char *name = use->word + strspn(use->word, "-");
	AUTO(auto_free) char *shown = mem_copy_n(use->word, use->len);
	AUTO(auto_free) char *plain = NULL;
	struct problem *problem;

	if (strpbrk(shown, "$`{") || !is_plain(shown))
		return;
	for (size_t i = 0; i < compiler_flag_count; i++)
		sb_addf(&names, "%s%s", i > 0 ? " " : "", compiler_flags[i].name + 2);
	plain = mem_copy_n(name, use->len - (size_t)(name - use->word));
	if (is_of_cache(plain))
		return;
	near = suggest_word(names.text, plain);
	problem = problem_remark(ABOUT(check),
				 "'%.80s' is no documented flag of the Neuron compiler", shown);
	if (near)
		problem_hint(problem, "did you mean '--%s'?", near);
	else
		problem_hint(problem, "it is handed on as it is; if the compiler does not know it, "
				      "phase 1 fails");
}

/* ---- several flags ------------------------------------------------------------------ */

static const struct flag_use *find_use(const struct flags_check *check, const char *name)
{
	for (size_t i = check->count; i > 0; i--)
		if (check->uses[i - 1].row && strcmp(check->uses[i - 1].row->name, name) == 0)
			return &check->uses[i - 1];
	return NULL;
}

/* True if the second one undoes the first. */
static bool undoes(const struct flag_use *one, const struct flag_use *other)
{
	const struct compiler_flag *row = one->row;

	if (!row || !other->row)
		return false;
	if (row == other->row)
		return row->once && one->value && other->value &&
		       strcmp(one->value, other->value) != 0;
	return row->against && strcmp(row->against, other->row->name) == 0;
}

static void check_twice(const struct flags_check *check, size_t at)
{
	const struct flag_use *use = &check->uses[at], *before = NULL;

	for (size_t i = 0; i < at; i++)
		if (undoes(&check->uses[i], use))
			before = &check->uses[i];
	if (!before)
		return;
	if (before->row == use->row)
		problem_hint(problem_lint(ABOUT(check),
					  "'%s' is given twice, as '%.40s' and as '%.40s'",
					  use->row->name, before->value, use->value),
			     "keep one: the last one counts");
	else
		problem_hint(problem_lint(ABOUT(check), "'%s' undoes '%s'", use->row->name,
					  before->row->name),
			     "keep one: the last one counts");
}

/* A type to cast to, where nothing is cast. */
static void check_cast(const struct flags_check *check)
{
	const struct flag_use *type = find_use(check, "--auto-cast-type");
	const struct flag_use *cast = find_use(check, "--auto-cast");
	AUTO(auto_free) char *now = NULL;

	if (!type || !type->value || compiler_flag_value(type, &now) == VALUE_WRONG)
		return;
	if (cast ? !cast->value || strcmp(cast->value, "none") != 0 : check->text->partial)
		return;
	if (!cast && check->sdk && compatibility_is_older(check->sdk, CAST_BY_DEFAULT))
		return;
	problem_hint(problem_lint(ABOUT(check), "'--auto-cast-type %.40s' casts nothing %s",
				  type->value,
				  cast ? "beside '--auto-cast none'" : "without '--auto-cast'"),
		     "write --auto-cast matmult, the default before Neuron SDK 2.27, or remove the "
		     "type");
}

/* True if the version of the SDK matters to one of the flags. */
static bool asks_for_sdk(const struct flag_use *uses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (uses[i].row &&
		    (uses[i].row->since || strcmp(uses[i].row->name, "--auto-cast-type") == 0))
			return true;
	return false;
}

static json_t *tag_of(const struct spec *spec)
{
	const char *image = spec_str(spec, SPEC_IMAGE);

	return image ? compatibility_image(image) : NULL;
}

void lint_compiler_flags(struct binder *binder, const struct flags_text *text)
{
	size_t count = 0;
	AUTO(auto_free) struct flag_use *uses = NULL;
	struct flags_check check = { .binder = binder, .text = text };
	json_auto_t *tag = NULL;

	while (text->words[count])
		count++;
	if (count > WORDS_MAX)
		return;
	uses = mem_zero(count + 1, sizeof *uses);
	check.uses = uses;
	check.count = compiler_flags_read(text->words, uses);
	tag = asks_for_sdk(uses, check.count) ? tag_of(binder->spec) : NULL;
	check.sdk = js_str(tag, "sdk");
	for (size_t i = 0; i < check.count; i++) {
		if (!uses[i].row)
			check_unknown(&check, &uses[i]);
		else if (!uses[i].row->wrapped)
			check_row(&check, &uses[i]);
		check_twice(&check, i);
	}
	check_cast(&check);
	for (size_t i = 0; i < check.count; i++) {
		AUTO(auto_free) char *now = NULL;

		if (uses[i].row && strcmp(uses[i].row->name, "--target") == 0 && uses[i].value &&
		    compiler_flag_value(&uses[i], &now) == VALUE_FITS)
			each_machine(&check, &uses[i], check_target);
	}
}
