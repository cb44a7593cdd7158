/* Numbers, sizes and durations in text: see text.h. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/text/text.h"

__extension__ typedef unsigned __int128 wide; /* -Wpedantic: no such type in C17 */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t digits_at(const char *text, size_t len, size_t from)
{
	size_t i = from;

	while (i < len && is_digit(text[i]))
		i++;
	return i - from;
}

/* The length of nan, inf or infinity as a whole word. */
static size_t word_length(const char *text, size_t len)
{
	static const char *const words[] = { "infinity", "inf", "nan" };

	for (size_t i = 0; i < STK_LENGTH(words); i++) {
		size_t size = strlen(words[i]);

		if (len >= size && strncasecmp(text, words[i], size) == 0 &&
		    (len == size || !is_word(text[size])))
			return size;
	}
	return 0;
}

/* The length of digits . digits e[+-]digits, with at least one digit before e. */
static size_t decimal_length(const char *text, size_t len)
{
	size_t whole = digits_at(text, len, 0), fraction = 0, end = whole;

	if (end < len && text[end] == '.') {
		fraction = digits_at(text, len, end + 1);
		end += 1 + fraction;
	}
	if (whole + fraction == 0)
		return 0;
	if (end < len && (text[end] == 'e' || text[end] == 'E')) {
		size_t digits = end + 1;

		if (digits < len && (text[digits] == '+' || text[digits] == '-'))
			digits++;
		if (digits_at(text, len, digits) > 0)
			end = digits + digits_at(text, len, digits);
	}
	return end;
}

#define NUMBER_BRIEF 64

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c_locale)
		abort();
}

size_t text_float(const char *text, size_t len, double *ret_value)
{
	size_t sign = len > 0 && (text[0] == '+' || text[0] == '-');
	size_t size = word_length(text + sign, len - sign);
	AUTO(auto_free) char *longer = NULL;
	char brief[NUMBER_BRIEF], *copy = brief;

	if (size == 0)
		size = decimal_length(text + sign, len - sign);
	if (size == 0)
		return 0;
	if (sign + size >= sizeof brief)
		copy = longer = mem_copy_n(text, sign + size);
	else
		*(char *)mempcpy(brief, text, sign + size) = '\0';
	pthread_once(&c_locale_once, make_c_locale);
	*ret_value = strtod_l(copy, NULL, c_locale);
	return sign + size;
}

/* A decimal number: digits, or digits . digits. */
struct decimal {
	uint64_t whole;
	uint64_t fraction, scale; /* fraction / scale, at most 17 digits kept */
	bool has_point;
};

/* Returns the text after the number; NULL if there is no number or it is too large. */
static const char *decimal_parse(const char *text, struct decimal *ret)
{
	struct decimal d = { .scale = 1 };

	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(d.whole, 10u, &d.whole) ||
		    __builtin_add_overflow(d.whole, (uint64_t)(*text - '0'), &d.whole))
			return NULL;
	if (*text == '.') {
		d.has_point = true;
		if (!is_digit(*++text))
			return NULL;
		for (; is_digit(*text); text++) {
			if (d.scale >= UINT64_C(100000000000000000))
				continue;
			d.scale *= 10;
			d.fraction = d.fraction * 10 + (uint64_t)(*text - '0');
		}
	}
	*ret = d;
	return text;
}

/* d × unit, rounded half up; false if it exceeds `max`. */
static bool decimal_times(const struct decimal *d, uint64_t unit, uint64_t max, uint64_t *ret)
{
	wide total = (wide)d->whole * unit;

	total += ((wide)d->fraction * unit + d->scale / 2) / d->scale;
	if (total > max)
		return false;
	*ret = (uint64_t)total;
	return true;
}

struct text_number_unit {
	const char *name;
	uint64_t value;
};

static uint64_t unit_find(const struct text_number_unit *units, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(units[i].name, name) == 0)
			return units[i].value;
	return 0;
}

const char *text_number(double value, char ret[TEXT_NUMBER])
{
	double same;

	if (isnan(value) || isinf(value)) {
		snprintf(ret, TEXT_NUMBER, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
		return ret;
	}
	/* Most numbers of most logs are whole. */
	if (value == floor(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value))) {
		snprintf(ret, TEXT_NUMBER, "%lld", (long long)value);
		return ret;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(ret, TEXT_NUMBER, "%.*g", digits, value);
		if (text_float(ret, strlen(ret), &same) > 0 && same == value)
			break;
	}
	return ret;
}

bool text_duration(const char *text, int64_t *ret_ms)
{
	static const struct text_number_unit units[] = {
		{ "ms", 1 },      { "s", 1000 },     { "m", 60000 },
		{ "h", 3600000 }, { "d", 86400000 }, { "w", 604800000 },
	};
	struct decimal number;
	const char *rest = decimal_parse(text, &number);
	uint64_t unit, ms;

	if (!rest)
		return false;
	unit = strcmp(text, "0") == 0 ? 1 : unit_find(units, STK_LENGTH(units), rest);
	if (unit == 0 || !decimal_times(&number, unit, INT64_MAX, &ms))
		return false;
	*ret_ms = (int64_t)ms;
	return true;
}

bool text_size(const char *text, uint64_t *ret_bytes)
{
	static const struct text_number_unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "KB", UINT64_C(1000) },
		{ "MB", UINT64_C(1000000) },
		{ "GB", UINT64_C(1000000000) },
		{ "TB", UINT64_C(1000000000000) },
		{ "KiB", UINT64_C(1) << 10 },
		{ "MiB", UINT64_C(1) << 20 },
		{ "GiB", UINT64_C(1) << 30 },
		{ "TiB", UINT64_C(1) << 40 },
	};
	struct decimal number;
	const char *rest = decimal_parse(text, &number);
	uint64_t unit;

	if (!rest)
		return false;
	if (rest[0] == ' ' && rest[1] != '\0')
		rest++;
	unit = unit_find(units, STK_LENGTH(units), rest);
	if (unit == 0 || (unit == 1 && number.has_point)) /* no fractions of a byte */
		return false;
	return decimal_times(&number, unit, UINT64_MAX, ret_bytes);
}

char *text_format_duration(int64_t ms)
{
	const char *sign = ms < 0 ? "-" : "";
	uint64_t t = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
	unsigned long long s = t / 1000;

	if (t < 1000)
		return mem_format("%s%llu ms", sign, (unsigned long long)t);
	if (s < 60)
		return mem_format("%s%llu.%llu s", sign, s, (unsigned long long)(t % 1000 / 100));
	if (s < 3600)
		return mem_format("%s%llum %02llus", sign, s / 60, s % 60);
	if (s < 86400)
		return mem_format("%s%lluh %02llum", sign, s / 3600, s % 3600 / 60);
	return mem_format("%s%llud %02lluh", sign, s / 86400, s % 86400 / 3600);
}

char *text_format_speed(double steps_per_second, const char *unit)
{
	bool slow = steps_per_second < 1;
	double value = slow && steps_per_second > 0 ? 1 / steps_per_second : steps_per_second;

	return mem_format(slow ? "%.*f s/%s" : "%.*f %ss/s",
			  value < 10    ? 2
			  : value < 100 ? 1
					: 0,
			  value, unit ? unit : "step");
}

char *text_format_bytes(uint64_t bytes)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned shift = 0;
	uint64_t part;

	while (shift < 60 && bytes >> shift >= 1024)
		shift += 10;
	if (shift == 0)
		return mem_format("%llu B", (unsigned long long)bytes);
	part = bytes & ((UINT64_C(1) << shift) - 1);
	return mem_format("%llu.%llu %s", (unsigned long long)(bytes >> shift),
			  (unsigned long long)(part * 10 >> shift), names[shift / 10 - 1]);
}
