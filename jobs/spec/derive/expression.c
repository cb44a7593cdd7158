/* The words of an expression: see expression.h. */
#include "jobs/spec/derive/expression.h"

#include <string.h>

#include "jobs/base/auto.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS  "0123456789"

/* Functions that read or change the world outside. A derived value follows from the spec alone, so
 * that every repeat, on every machine, has the same one. */
static const struct {
	const char *names; /* separated by single spaces */
	const char *why;
} refused[] = {
	{ "env $ENV", "reads the environment" },
	{ "input inputs input_filename input_line_number", "reads input, and there is none" },
	{ "now", "reads the clock" },
	{ "localtime strflocaltime", "reads the time zone of the machine" },
	{ "debug stderr", "writes messages, and nobody reads them" },
	{ "halt halt_error", "ends the program that works the value out" },
	{ "import include modulemeta get_search_list $__prog_args", "reads files" },
};

static size_t name_len(const char *text)
{
	return strchr(LETTERS, *text) && *text ? strspn(text, LETTERS DIGITS) : 0;
}

/* "1e5", ".5": an exponent is no name. */
static size_t number_len(const char *text)
{
	size_t len = strspn(text, DIGITS "."), sign;

	if (text[len] != 'e' && text[len] != 'E')
		return len;
	sign = len + 1 + (text[len + 1] == '+' || text[len + 1] == '-');
	return strspn(text + sign, DIGITS) > 0 ? sign + strspn(text + sign, DIGITS) : len;
}

static bool push(struct expression *expression, char open)
{
	if (expression->depth == EXPRESSION_DEPTH)
		return false;
	expression->open[expression->depth++] = open;
	return true;
}

static char innermost(const struct expression *expression)
{
	return expression->depth > 0 ? expression->open[expression->depth - 1] : '\0';
}

/* Goes on in a string, to its end or to the next "\(". False: too deep. */
static bool pass_string(struct expression *expression)
{
	const char *text = expression->text;

	for (char c; (c = text[expression->pos]) != '\0'; expression->pos++) {
		if (c == '"') {
			expression->in_string = false;
			expression->pos++;
			break;
		}
		if (c != '\\')
			continue;
		c = text[++expression->pos];
		if (c == '\0')
			break;
		if (c == '(') {
			expression->in_string = false;
			expression->pos++;
			expression->last = '(';
			return push(expression, '"');
		}
	}
	return true;
}

/* Passes over a sign, a string's begin or a comment. False: too deep. */
static bool pass_sign(struct expression *expression)
{
	const char *at = expression->text + expression->pos;
	size_t len = 1;

	switch (*at) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		expression->pos++;
		return true;
	case '#':
		expression->pos += strcspn(at, "\n");
		return true;
	case '"':
		expression->in_string = true;
		expression->last = '\0';
		expression->pos++;
		return true;
	case '(':
	case '[':
	case '{':
		if (!push(expression, *at))
			return false;
		break;
	case ')':
	case ']':
	case '}':
		if (expression->depth > 0)
			expression->in_string = expression->open[--expression->depth] == '"';
		break;
	case '.':
		len = at[1] == '.' ? 2 : 1 + name_len(at + 1); /* ".." or ".name" */
		break;
	case '@':
		len += strspn(at + 1, LETTERS DIGITS);
		break;
	default:
		break;
	}
	if (*at == '$')
		expression->dollar = expression->pos;
	expression->last = *at;
	expression->pos += len;
	return true;
}

/* True for a name before a colon, directly within braces: {env: 1}. */
static bool is_key(const struct expression *expression, size_t len)
{
	const char *after = expression->text + expression->pos + len;

	after += strspn(after, " \t\r\n");
	return innermost(expression) == '{' &&
	       (expression->last == '{' || expression->last == ',') && after[0] == ':' &&
	       after[1] != ':';
}

/* Takes a name: of a variable behind a dollar sign, from which blanks may part it. */
static struct expression_word take_name(struct expression *expression, size_t len)
{
	bool variable = expression->last == '$';
	struct expression_word word = {
		.kind = variable ? EXPRESSION_VARIABLE : EXPRESSION_NAME,
		.text = expression->text + expression->pos,
		.len = len,
		.at = variable ? expression->dollar : expression->pos,
	};

	expression->pos += len;
	expression->last = '\0';
	return word;
}

static void pass(struct expression *expression, size_t len)
{
	expression->pos += len;
	expression->last = '\0';
}

struct expression_word expression_next(struct expression *expression)
{
	for (;;) {
		const char *at = expression->text + expression->pos;
		size_t name = name_len(at);
		bool fits = true;

		if (*at == '\0')
			return (struct expression_word){ EXPRESSION_END, at, 0, expression->pos };
		if (expression->in_string)
			fits = pass_string(expression);
		else if (name > 0 && !is_key(expression, name))
			return take_name(expression, name);
		else if (name > 0)
			pass(expression, name);
		else if (strchr(DIGITS, *at) || (*at == '.' && at[1] && strchr(DIGITS, at[1])))
			pass(expression, number_len(at));
		else
			fits = pass_sign(expression);
		if (!fits)
			return (struct expression_word){ EXPRESSION_TOO_DEEP, at, 1,
							 expression->pos };
	}
}

const char *expression_refusal(const struct expression_word *word)
{
	bool variable = word->kind == EXPRESSION_VARIABLE;

	for (size_t i = 0; i < STK_LENGTH(refused); i++)
		for (const char *name = refused[i].names; *name;) {
			size_t len = strcspn(name, " ");

			if ((*name == '$') == variable && len - variable == word->len &&
			    strncmp(name + variable, word->text, word->len) == 0)
				return refused[i].why;
			name += len + (name[len] == ' ');
		}
	return NULL;
}
