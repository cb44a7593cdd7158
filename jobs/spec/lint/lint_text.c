/* Texts: typographic signs and secrets in the open, and the walk over all texts of a map. See
 * lint.h. */
#include "jobs/spec/lint/lint.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/fields/names.h"
#include "jobs/spec/fields/scalar.h"

/* Signs that word processors and chat programs put in place of a typed one. */
static const struct typographic {
	uint32_t code;
	const char *name, *plain;
	bool dash; /* at the start of a word, it stands for a flag's dash */
} typographics[] = {
	{ 0x00a0, "a no-break space", "a plain space", false },
	{ 0x00ad, "a soft hyphen", "'-' or nothing", false },
	{ 0x200b, "a zero-width space", "nothing", false },
	{ 0x2010, "a typographic hyphen", "'-'", true },
	{ 0x2011, "a no-break hyphen", "'-'", true },
	{ 0x2012, "a figure dash", "'-'", true },
	{ 0x2013, "an en dash", "'-' or '--'", true },
	{ 0x2014, "an em dash", "'--'", true },
	{ 0x2015, "a horizontal bar", "'--'", true },
	{ 0x2018, "a typographic quote", "a plain '", false },
	{ 0x2019, "a typographic quote", "a plain '", false },
	{ 0x201a, "a typographic quote", "a plain '", false },
	{ 0x201b, "a typographic quote", "a plain '", false },
	{ 0x201c, "a typographic quote", "a plain \"", false },
	{ 0x201d, "a typographic quote", "a plain \"", false },
	{ 0x201e, "a typographic quote", "a plain \"", false },
	{ 0x201f, "a typographic quote", "a plain \"", false },
	{ 0x2032, "a prime", "a plain '", false },
	{ 0x2033, "a double prime", "a plain \"", false },
	{ 0x2212, "a minus sign of mathematics", "'-'", true },
	{ 0xff0d, "a full-width hyphen", "'-'", true },
};

/* Returns the first one in a text, but one that begins a flag before all others. */
static const struct typographic *typographic_in(const char *text, bool *ret_flag)
{
	const struct typographic *first = NULL;
	size_t len = strlen(text), step;
	bool word_start = true;
	uint32_t code;

	*ret_flag = false;
	for (; len > 0; text += step, len -= step) {
		step = text_utf8(text, len, &code);
		if (step == 0)
			break;
		for (size_t i = 0; step > 1 && i < STK_LENGTH(typographics); i++) {
			if (typographics[i].code != code)
				continue;
			first = first ? first : &typographics[i];
			*ret_flag = word_start && typographics[i].dash && text[step] &&
				    !strchr(" \t\n", text[step]);
			if (*ret_flag)
				return &typographics[i];
		}
		word_start = code == ' ' || code == '\t' || code == '\n';
	}
	return first;
}

static void visit(struct binder *binder, const struct path *path, const struct node *node,
		  lint_text_fn *fn)
{
	if (node->kind == NODE_SCALAR) {
		AUTO(auto_free) char *field = node_path_text(path);

		fn(binder, field, node);
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		struct path below = { path, node->entries[i].key, i };

		visit(binder, &below, node->entries[i].value, fn);
	}
}

void lint_each_text(struct binder *binder, enum spec_field map, lint_text_fn *fn)
{
	const struct node *node = access_node_of_field(binder->spec, map);
	struct path path = { NULL, field_table[map].path, 0 };

	if (node)
		visit(binder, &path, node, fn);
}

/* No program knows a flag that begins with a typographic dash: an error. Anywhere else the sign
 * may be meant. */
static void check_typographic(struct binder *binder, const char *field, const struct node *text)
{
	static const char because[] = "programs do not take it for the sign it looks like";
	bool flag;
	const struct typographic *sign = typographic_in(text->text, &flag);
	AUTO(auto_free) char *shown = NULL;

	if (!sign)
		return;
	if (!flag) {
		problem_hint(problem_lint(&binder->reporter, text->at, field,
					  "'%s' holds %s (U+%04X)", field, sign->name,
					  (unsigned)sign->code),
			     "%s: write %s", because, sign->plain);
		return;
	}
	shown = value_shown(SPEC_COMMAND_ITEM, text);
	problem_hint(problem_error(&binder->reporter, text->at, field,
				   "a flag in '%s' begins with %s (U+%04X): '%s'", field,
				   sign->name, (unsigned)sign->code, shown),
		     "%s: write %s", because, sign->plain);
}

/* Reports a name that looks secret with a value that could be one. */
static void check_secret(struct binder *binder, const char *field, const struct node *text)
{
	const char *name = strrchr(field, '.');

	if (!name || !names_secret(name + 1) || strlen(text->text) < 8 ||
	    scalar_kind(text->text) != SCALAR_TEXT || strchr(text->text, '/'))
		return;
	problem_hint(problem_lint(&binder->reporter, text->at, field,
				  "'%s' looks like a secret, and plans and journals keep 'env'",
				  field),
		     "move it to 'secrets', for example %s: env:%s", name + 1, name + 1);
}

/* Reports typographic signs, and secrets in the open. */
void lint_text(struct binder *binder)
{
	static const enum spec_field texts[] = {
		SPEC_COMMAND,
		SPEC_HYPERPARAMETERS,
		SPEC_ENV,
		SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS,
		SPEC_COMPILE_OVERRIDES_ENV,
		SPEC_EVALUATE_COMMAND,
		SPEC_INFER_COMMAND,
		SPEC_SLURM_SETUP,
	};

	for (size_t i = 0; i < STK_LENGTH(texts); i++)
		lint_each_text(binder, texts[i], check_typographic);
	lint_each_text(binder, SPEC_ENV, check_secret);
	lint_each_text(binder, SPEC_HYPERPARAMETERS, check_secret);
}
