/* JSON helpers on top of Jansson: see js.h. */
#include "jobs/base/text/js.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"

/* JSON_ALLOW_NUL: one "\u0000" in a log line must not make a whole reply unreadable. */
#define PARSE_FLAGS  (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)
#define DIGITS       15
#define EXACT_DIGITS 17 /* digits that tell any double */
#define DUMP_FLAGS   (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS))

/* Append Jansson's reason without the excerpt after " near ": the text may be
 * a credentials file or a reply that holds a secret. */
static void add_reason(struct sb *out, const json_error_t *cause)
{
	const char *excerpt = strstr(cause->text, " near ");

	text_escape(out, cause->text,
		    excerpt ? (size_t)(excerpt - cause->text) : strlen(cause->text), false);
}

int js_parse(const char *text, size_t len, const char *what, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb reason = SB_INIT;
	json_error_t cause;
	json_t *value = json_loadb(text, len, PARSE_FLAGS, &cause);

	if (!value) {
		add_reason(&reason, &cause);
		return err_set(err, EXIT_REFUSED, "%s is not valid JSON: %s (line %d, column %d)",
			       what, reason.text, cause.line, cause.column);
	}
	*ret = value;
	return 0;
}

int js_load(const char *path, size_t max, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(max);
	AUTO(sb_release) struct sb reason = SB_INIT;
	json_error_t cause;
	json_t *value;

	if (fs_read(path, max, &text, err) < 0)
		return -1;
	value = json_loadb(text.text, text.len, PARSE_FLAGS, &cause);
	if (!value) {
		add_reason(&reason, &cause);
		err_set(err, EXIT_REFUSED, "not valid JSON: %s", reason.text);
		return err_at(err, path, cause.line, cause.column);
	}
	*ret = value;
	return 0;
}

static char *dump(const json_t *value, size_t flags)
{
	char *text = json_dumps(value, flags);

	/* Fails only without memory, or if the value contains itself. */
	if (!text)
		abort();
	return text;
}

/* JSON allows characters that steer a terminal (C1 controls, DEL, changes of direction). All of
 * them lie inside strings, where an escape means the same. */
static char *line(const json_t *value, size_t flags)
{
	AUTO(auto_free) char *plain = dump(value, flags);
	size_t len = strlen(plain), from = 0;
	struct sb safe = SB_INIT_MAX(SIZE_MAX / 2);

	for (size_t i = 0, step = 1; i < len; i += step) {
		uint32_t code = 0;

		step = 1;
		if (plain[i] >= ' ' && plain[i] < 0x7f)
			continue; /* most characters need no second look */
		step = text_utf8(plain + i, len - i, &code);
		if (step > 0 && text_is_control(code)) {
			sb_add(&safe, plain + from, i - from);
			sb_addf(&safe, "\\u%04x", (unsigned)code);
			from = i + step;
		}
		step = step > 0 ? step : 1;
	}
	if (from == 0)
		return TAKE(plain);
	sb_add(&safe, plain + from, len - from);
	return sb_take(&safe);
}

char *js_line(const json_t *value)
{
	return line(value, DUMP_FLAGS);
}

/* True if all reals in the value are told by DIGITS. */
static bool is_short(const json_t *value)
{
	const json_t *member;
	const char *key;
	char text[40];
	size_t i;

	if (json_is_real(value)) {
		snprintf(text, sizeof text, "%.*g", DIGITS, json_real_value(value));
		if (strtod(text, NULL) != json_real_value(value))
			return false;
	}
	json_array_foreach (value, i, member)
		if (!is_short(member))
			return false;
	json_object_foreach ((json_t *)value, key, member)
		if (!is_short(member))
			return false;
	return true;
}

/* Adds a real in the fewest digits, from DIGITS on, that read back the same, and in Jansson's form:
 * a real has a point or an exponent, an exponent neither a plus nor leading zeros. */
static void add_real(struct sb *out, double value)
{
	char text[40], *exponent;
	const char *rest;

	for (int digits = DIGITS; digits <= EXACT_DIGITS; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	exponent = strchr(text, 'e');
	if (!exponent) {
		sb_addf(out, "%s%s", text, strchr(text, '.') ? "" : ".0");
		return;
	}
	rest = exponent + 1 + (exponent[1] == '+' || exponent[1] == '-');
	rest += strspn(rest, "0");
	sb_add(out, text, (size_t)(exponent + 1 - text));
	sb_addf(out, "%s%s", exponent[1] == '-' ? "-" : "", rest);
}

char *js_line_exact(const json_t *value)
{
	AUTO(auto_free) char *full = NULL;
	struct sb out = SB_INIT_MAX(SIZE_MAX / 2);
	bool in_string = false;

	if (is_short(value))
		return js_line(value);
	full = line(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(EXACT_DIGITS));
	for (const char *at = full; *at;) {
		size_t len = in_string || !strchr("-0123456789", *at)
				     ? 0
				     : strspn(at, "-+.0123456789eE");

		if (len > 0 && memchr(at, '.', len) != NULL)
			add_real(&out, strtod(at, NULL));
		else if (len > 0 && memchr(at, 'e', len) != NULL)
			add_real(&out, strtod(at, NULL));
		else
			sb_add(&out, at, len > 0 ? len : 1);
		if (len == 0 && *at == '"')
			in_string = !in_string;
		/* The character behind a backslash ends no string. */
		if (len == 0 && in_string && *at == '\\' && at[1])
			sb_addc(&out, *++at);
		at += len > 0 ? len : 1;
	}
	return sb_take(&out);
}

void js_digest(const json_t *value, char hex[65])
{
	AUTO(auto_free) char *text = dump(value, DUMP_FLAGS | JSON_SORT_KEYS);

	hash_sha256_hex(text, strlen(text), hex);
}

const char *js_str(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

bool js_is(const json_t *object, const char *key, const char *word)
{
	const char *text = js_str(object, key);

	return text && strcmp(text, word) == 0;
}

int64_t js_int(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

double js_real(const json_t *object, const char *key, double fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : fallback;
}

bool js_bool(const json_t *object, const char *key, bool fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) : fallback;
}

json_t *js_path(const json_t *object, const char *dotted)
{
	for (;;) {
		const char *dot = strchrnul(dotted, '.');
		json_t *member = json_object_getn(object, dotted, (size_t)(dot - dotted));

		if (!member || !*dot)
			return member;
		object = member;
		dotted = dot + 1;
	}
}

void js_put(json_t *object, const char *key, json_t *value)
{
	if (!value)
		return;
	if (text_is_utf8(key, strlen(key))) {
		if (json_object_set_new(object, key, value) < 0)
			abort();
	} else {
		json_auto_t *repaired = js_text(key, strlen(key));

		if (json_object_set_new(object, json_string_value(repaired), value) < 0)
			abort();
	}
}

void js_put_str(json_t *object, const char *key, const char *text)
{
	if (text)
		js_put(object, key, js_text(text, strlen(text)));
}

json_t *js_number(double value)
{
	if (isnan(value))
		return json_string("nan");
	if (isinf(value))
		return json_string(value > 0 ? "inf" : "-inf");
	if (value == floor(value) && fabs(value) < 9e15 && !(value == 0 && signbit(value)))
		return json_integer((json_int_t)value);
	return json_real(value);
}

json_t *js_text(const char *bytes, size_t len)
{
	AUTO(sb_release) struct sb repaired = SB_INIT_MAX(SIZE_MAX / 2);
	json_t *string = NULL;

	if (!memchr(bytes, '\0', len))
		string = json_stringn(bytes, len); /* NULL if the bytes are not UTF-8 */
	if (string)
		return string;
	for (size_t i = 0; i < len;) {
		uint32_t code = 0;
		size_t step = text_utf8(bytes + i, len - i, &code);

		if (step == 0 || code == 0) {
			sb_adds(&repaired, "\xef\xbf\xbd");
			step = 1;
		} else {
			sb_add(&repaired, bytes + i, step);
		}
		i += step;
	}
	string = json_stringn(repaired.text, repaired.len);
	if (!string)
		abort();
	return string;
}
