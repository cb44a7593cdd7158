/* Outside text, edit distance and run ids: see text.h. */
#include "jobs/base/text/text.h"

#include <stdatomic.h>
#include <string.h>

#include "jobs/base/hash.h"

/* Well-formed sequences by Unicode 15, table 3-7: the bytes allowed after a first byte. */
static bool tail_fits(const unsigned char *s, size_t size)
{
	static const struct {
		unsigned char lead, low, high;
	} narrow[] = {
		{ 0xe0, 0xa0, 0xbf }, /* else overlong */
		{ 0xed, 0x80, 0x9f }, /* else half of a surrogate pair */
		{ 0xf0, 0x90, 0xbf }, /* else overlong */
		{ 0xf4, 0x80, 0x8f }, /* else above U+10FFFF */
	};

	for (size_t i = 1; i < size; i++)
		if ((s[i] & 0xc0) != 0x80)
			return false;
	for (size_t i = 0; i < STK_LENGTH(narrow); i++)
		if (s[0] == narrow[i].lead)
			return s[1] >= narrow[i].low && s[1] <= narrow[i].high;
	return true;
}

size_t text_utf8(const char *text, size_t len, uint32_t *ret_code)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code;
	size_t size;

	if (len == 0)
		return 0;
	if (s[0] < 0x80)
		size = 1;
	else if (s[0] >= 0xc2 && s[0] <= 0xdf)
		size = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		size = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		size = 4;
	else
		return 0;
	if (size > len || (size > 1 && !tail_fits(s, size)))
		return 0;
	code = size == 1 ? s[0] : s[0] & (0x7fu >> size);
	for (size_t i = 1; i < size; i++)
		code = code << 6 | (s[i] & 0x3fu);
	*ret_code = code;
	return size;
}

bool text_is_utf8(const char *text, size_t len)
{
	uint32_t code;

	for (size_t i = 0, step; i < len; i += step) {
		step = text_utf8(text + i, len - i, &code);
		if (step == 0)
			return false;
	}
	return true;
}

bool text_has_login(const char *text)
{
	size_t user = strcspn(text, ":/@?# \t\n");

	/* Proxies are written without a scheme, too. */
	if (user > 0 && text[user] == ':' && text[user + strcspn(text + user, "/@?# \t\n")] == '@')
		return true;
	for (const char *at = strstr(text, "://"); at; at = strstr(at + 3, "://"))
		if (at[3 + strcspn(at + 3, "/@?# \t\n")] == '@')
			return true;
	return false;
}

bool text_is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x0000, 0x001f }, /* C0 */
		{ 0x007f, 0x009f }, /* DEL and C1 */
		{ 0x061c, 0x061c }, /* Arabic letter mark */
		{ 0x200e, 0x200f }, /* left-to-right and right-to-left marks */
		{ 0x2028, 0x202e }, /* separators, embeddings and overrides */
		{ 0x2066, 0x2069 }, /* isolates */
		{ 0xfeff, 0xfeff }, /* byte order mark */
	};

	for (size_t i = 0; i < STK_LENGTH(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* The length of the plain text at the start, which needs no escaping. */
static size_t plain_length(const char *text, size_t len, bool keep_newlines)
{
	size_t i = 0;

	while (i < len && ((text[i] >= 0x20 && text[i] < 0x7f) || text[i] == '\t' ||
			   (keep_newlines && text[i] == '\n')))
		i++;
	return i;
}

void text_escape(struct sb *out, const char *text, size_t len, bool keep_newlines)
{
	for (size_t i = 0; i < len;) {
		size_t plain = plain_length(text + i, len - i, keep_newlines);
		uint32_t code = 0;
		size_t step;

		sb_add(out, text + i, plain);
		i += plain;
		if (i == len)
			return;
		step = text_utf8(text + i, len - i, &code);
		if (step < 2) {
			sb_addf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
			step = 1;
		} else if (text_is_control(code)) {
			sb_addf(out, "\\u%04x", (unsigned)code);
		} else {
			sb_add(out, text + i, step);
		}
		i += step;
	}
}

bool text_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Computes one row of the distance table between prefixes of a and b: `row[j]` is the distance of
 * a's first i characters to b's first j. Returns the row's minimum. */
static size_t distance_row(const char *a, size_t i, const char *b, size_t b_len,
			   const size_t *before_last, const size_t *last, size_t *row)
{
	size_t least = row[0] = i;

	for (size_t j = 1; j <= b_len; j++) {
		row[j] = min_size(min_size(last[j], row[j - 1]) + 1,
				  last[j - 1] + (a[i - 1] != b[j - 1]));
		if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
			row[j] = min_size(row[j], before_last[j - 2] + 1);
		least = min_size(least, row[j]);
	}
	return least;
}

size_t text_distance(const char *a, const char *b, size_t limit)
{
	size_t a_len = strlen(a), b_len = strlen(b), width = b_len + 1;
	size_t beyond = limit < SIZE_MAX ? limit + 1 : limit;
	AUTO(auto_free) size_t *rows = NULL;
	size_t *before_last, *last, *row;

	if ((a_len > b_len ? a_len - b_len : b_len - a_len) > limit)
		return beyond;
	rows = mem_zero(3 * width, sizeof *rows);
	before_last = rows;
	last = rows + width;
	row = rows + 2 * width;
	for (size_t j = 0; j < width; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *spare = before_last;

		/* The rows' minimum never decreases. */
		if (distance_row(a, i, b, b_len, before_last, last, row) > limit)
			return beyond;
		before_last = last;
		last = row;
		row = spare;
	}
	return min_size(last[b_len], beyond);
}

#define RUN_ID_EPOCH_MS  INT64_C(1577836800000) /* 2020-01-01T00:00:00Z */
#define RUN_ID_TIME_BITS 40                     /* lasts until 2054 */
#define RUN_ID_LUCK_BITS 20

void text_run_id_new(char id[RUN_ID_LEN + 1])
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	static _Atomic uint64_t newest;
	const uint64_t time_mask = (UINT64_C(1) << RUN_ID_TIME_BITS) - 1;
	const uint64_t luck_mask = (UINT64_C(1) << RUN_ID_LUCK_BITS) - 1;
	uint64_t before = atomic_load(&newest), value, luck;

	hash_random_bytes(&luck, sizeof luck);
	do {
		value = ((uint64_t)(clock_utc_now().ms - RUN_ID_EPOCH_MS) & time_mask)
			<< RUN_ID_LUCK_BITS;
		value |= luck & luck_mask;
		if (value <= before) /* same millisecond, or the clock was set back */
			value = before + 1;
	} while (!atomic_compare_exchange_weak(&newest, &before, value));
	for (int i = RUN_ID_LEN - 1; i >= 0; i--, value >>= 5)
		id[i] = digits[value & 31];
	id[RUN_ID_LEN] = '\0';
}

bool text_run_id_valid(const char *id)
{
	size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len >= 1 && len <= 40 && id[len] == '\0' && id[0] != '-';
}
