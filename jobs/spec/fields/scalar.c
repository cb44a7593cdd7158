/* Unquoted scalars by the YAML 1.2 core schema: see scalar.h. */
#include "jobs/spec/fields/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/fields/field.h"

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* True for nothing, or ([eE][-+]?[0-9]+). */
static bool is_exponent(const char *text)
{
	if (*text != 'e' && *text != 'E')
		return *text == '\0';
	text++;
	text += *text == '-' || *text == '+';
	return digits(text) > 0 && text[digits(text)] == '\0';
}

/* [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)? */
static bool is_real(const char *text)
{
	size_t whole, part = 0;

	text += *text == '-' || *text == '+';
	whole = digits(text);
	text += whole;
	if (*text == '.') {
		part = digits(++text);
		text += part;
	}
	return whole + part > 0 && is_exponent(text);
}

static bool is_special_real(const char *text)
{
	return field_word_in(".nan .NaN .NAN", text) ||
	       field_word_in(".inf .Inf .INF", text + (*text == '-' || *text == '+'));
}

static bool is_int(const char *text)
{
	if (strncmp(text, "0o", 2) == 0)
		return text[2] && text[2 + strspn(text + 2, "01234567")] == '\0';
	if (strncmp(text, "0x", 2) == 0)
		return text[2] && text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0';
	text += *text == '-' || *text == '+';
	return *text && text[digits(text)] == '\0';
}

enum scalar_kind scalar_kind(const char *text)
{
	if (!*text || field_word_in("~ null Null NULL", text))
		return SCALAR_NULL;
	if (field_word_in("true True TRUE false False FALSE", text))
		return SCALAR_BOOL;
	if (!strchr("+-.0123456789", *text))
		return SCALAR_TEXT;
	if (is_int(text))
		return SCALAR_INT;
	return is_real(text) || is_special_real(text) ? SCALAR_REAL : SCALAR_TEXT;
}

bool scalar_int(const char *text, int64_t *ret)
{
	int base = 10;
	long long value;

	if (strncmp(text, "0x", 2) == 0)
		base = 16;
	if (strncmp(text, "0o", 2) == 0) {
		base = 8;
		text += 2;
	}
	errno = 0;
	value = strtoll(text, NULL, base);
	if (errno == ERANGE)
		return false;
	*ret = value;
	return true;
}

double scalar_real(const char *text)
{
	int64_t whole;

	if (is_special_real(text)) {
		if (strchr("nN", text[1]))
			return (double)NAN;
		return *text == '-' ? (double)-INFINITY : (double)INFINITY;
	}
	if ((strncmp(text, "0x", 2) == 0 || strncmp(text, "0o", 2) == 0) &&
	    scalar_int(text, &whole))
		return (double)whole;
	return strtod(text, NULL);
}

bool scalar_true(const char *text)
{
	return *text == 't' || *text == 'T';
}

bool scalar_is_octal_like(const char *text)
{
	text += *text == '-' || *text == '+';
	return *text == '0' && strchr("0123456789", text[1]) && text[1] &&
	       text[digits(text)] == '\0';
}

bool scalar_is_json_number(const char *text)
{
	size_t whole;

	text += *text == '-';
	whole = digits(text);
	if (whole == 0 || (*text == '0' && whole > 1))
		return false;
	text += whole;
	if (*text == '.') {
		if (digits(++text) == 0)
			return false;
		text += digits(text);
	}
	return is_exponent(text);
}
