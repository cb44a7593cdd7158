/* A row of a list as a line of JSON, and back. What this box writes is read without a parser of
 * JSON, which would take longer than the listing that it is joined with. See data_internal.h. */
#include <inttypes.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

/* --- writing --- */

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return true;
}

static void put_text(struct sb *out, const char *name, const char *text)
{
	if (!text)
		return;
	sb_adds(out, name);
	if (is_plain(text)) {
		sb_addc(out, '"');
		sb_adds(out, text);
		sb_addc(out, '"');
	} else {
		json_auto_t *value = js_text(text, strlen(text));
		AUTO(auto_free)
		char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		sb_adds(out, quoted);
	}
}

static void put_number(struct sb *out, uint64_t number)
{
	char digits[20];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	sb_add(out, digits + at, sizeof digits - at);
}

void data_row_put(struct sb *out, const struct data_row *row, enum data_line form)
{
	put_text(out, "{\"url\":", row->url);
	sb_adds(out, ",\"size\":");
	put_number(out, row->size);
	put_text(out, ",\"etag\":", row->etag);
	put_text(out, ",\"mtime\":", row->mtime);
	put_text(out, ",\"sha256\":", row->sha256);
	if (form != DATA_LINE_SEEN) {
		sb_adds(out, row->is_new ? ",\"new\":true" : ",\"new\":false");
		sb_adds(out, row->replaced ? ",\"replaced\":true" : ",\"replaced\":false");
	}
	if (form != DATA_LINE_MANIFEST && row->aside)
		sb_adds(out, ",\"aside\":true");
	if (form == DATA_LINE_SEEN && row->aside && row->replaced)
		sb_adds(out, ",\"replaced\":true");
	sb_adds(out, "}\n");
}

/* --- reading what was written above --- */

#define PASS(at, literal)                                                                          \
	(strncmp(at, literal, sizeof(literal) - 1) == 0 ? (at += sizeof(literal) - 1, true) : false)

/* Takes the text up to the next quote; false if it is not plain. */
static bool take_text(char **at, const char **ret)
{
	char *end = *at;

	while ((unsigned char)*end >= 0x20 && (unsigned char)*end < 0x7f && *end != '"' &&
	       *end != '\\')
		end++;
	if (*end != '"')
		return false;
	*ret = *at;
	*end = '\0';
	*at = end + 1;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Takes an instant, whose form is checked here and its date only where it matters. */
static bool take_instant(char **at, const char **ret)
{
	static const char form[] = "0000-00-00T00:00:00.000Z\"";
	const char *text = *at;

	for (size_t i = 0; i < sizeof form - 1; i++)
		if (form[i] == '0' ? !is_digit(text[i]) : text[i] != form[i])
			return false;
	*ret = text;
	(*at)[sizeof form - 2] = '\0';
	*at += sizeof form - 1;
	return true;
}

static bool take_digest(char **at, const char **ret)
{
	const char *text = *at;

	for (size_t i = 0; i < SHA256_HEX - 1; i++)
		if (!is_digit(text[i]) && (text[i] < 'a' || text[i] > 'f'))
			return false;
	if (text[SHA256_HEX - 1] != '"')
		return false;
	*ret = text;
	(*at)[SHA256_HEX - 1] = '\0';
	*at += SHA256_HEX;
	return true;
}

static bool take_number(char **at, uint64_t *ret)
{
	const char *start = *at;
	uint64_t number = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
			return false;
	*ret = number;
	return *at > start && number <= INT64_MAX && (*start != '0' || *at == start + 1);
}

static bool take_bool(char **at, bool *ret)
{
	*ret = PASS(*at, "true");
	return *ret || PASS(*at, "false");
}

static bool read_plain(char *line, const char *end, struct data_row *ret)
{
	char *at = line;
	bool before;

	*ret = (struct data_row){ 0 };
	if (!PASS(at, "{\"url\":\"") || !take_text(&at, &ret->url) || !PASS(at, ",\"size\":") ||
	    !take_number(&at, &ret->size))
		return false;
	if ((PASS(at, ",\"etag\":\"") && !take_text(&at, &ret->etag)) ||
	    (PASS(at, ",\"mtime\":\"") && !take_instant(&at, &ret->mtime)) ||
	    (PASS(at, ",\"sha256\":\"") && !take_digest(&at, &ret->sha256)) ||
	    (PASS(at, ",\"new\":") && !take_bool(&at, &ret->is_new)))
		return false;
	/* A manifest has "replaced" before, a cumulative list behind "aside"; no line has both. */
	before = PASS(at, ",\"replaced\":");
	if ((before && !take_bool(&at, &ret->replaced)) ||
	    (PASS(at, ",\"aside\":") && !take_bool(&at, &ret->aside)) ||
	    (PASS(at, ",\"replaced\":") && (before || !take_bool(&at, &ret->replaced))))
		return false;
	return PASS(at, "}") && at == end && ret->url[0] != '\0';
}

/* --- reading anything --- */

static int read_members(const json_t *value, struct data_row *ret, struct err **err)
{
	const json_t *size = json_object_get(value, "size");

	*ret = (struct data_row){
		.url = js_str(value, "url"),
		.etag = js_str(value, "etag"),
		.mtime = js_str(value, "mtime"),
		.sha256 = js_str(value, "sha256"),
		.is_new = js_bool(value, "new", false),
		.replaced = js_bool(value, "replaced", false),
		.aside = js_bool(value, "aside", false),
	};
	if (!json_is_object(value))
		return err_set(err, EXIT_REFUSED, "not a JSON object");
	if (!ret->url || ret->url[0] == '\0')
		return err_set(err, EXIT_REFUSED, "no 'url'");
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_set(err, EXIT_REFUSED, "no 'size' in bytes");
	ret->size = (uint64_t)json_integer_value(size);
	return 0;
}

/* Puts the texts back that read_plain() has ended with NULs. */
static void mend_line(char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] == '\0')
			line[i] = '"';
}

/* The forms that read_plain() has looked at. */
static int check_forms(const struct data_row *row, struct err **err)
{
	AUTO(auto_free) char *mtime = mem_format("%s\"", row->mtime ? row->mtime : "");
	AUTO(auto_free) char *sha256 = mem_format("%s\"", row->sha256 ? row->sha256 : "");
	char *at = mtime;
	const char *ignored;

	if (row->mtime && (!take_instant(&at, &ignored) || *at != '\0'))
		return err_set(err, EXIT_REFUSED, "an invalid 'mtime'");
	at = sha256;
	if (row->sha256 && (!take_digest(&at, &ignored) || *at != '\0'))
		return err_set(err, EXIT_REFUSED, "an invalid 'sha256'");
	return 0;
}

int data_row_read(char *line, size_t len, json_t **keep, struct data_row *ret, struct err **err)
{
	line[len] = '\0';
	if (memchr(line, '\0', len))
		return err_set(err, EXIT_REFUSED, "a NUL");
	if (!read_plain(line, line + len, ret)) {
		mend_line(line, len);
		json_decref(*keep);
		*keep = NULL;
		if (js_parse(line, len, "the line", keep, err) < 0 ||
		    read_members(*keep, ret, err) < 0 || check_forms(ret, err) < 0)
			return -1;
	}
	if (!ret->etag == !ret->mtime)
		return err_set(err, EXIT_REFUSED, "not one of 'etag' and 'mtime'");
	return 0;
}

/* The path of a url that is written in one way: no part can be empty, "." or "..". */
static bool is_location(const char *url)
{
	const char *path = text_starts(url, "s3://") ? url + 5 : url[0] == '/' ? url + 1 : NULL;

	return path && (url[0] == '/' || strchr(path, '/')) && store_key_fits(path, false);
}

int data_row_read_foreign(const char *line, size_t len, json_t **keep, struct data_row *ret,
			  struct err **err)
{
	const char *etag;
	size_t etag_len;

	json_decref(*keep);
	*keep = NULL;
	if (js_parse(line, len, "the line", keep, err) < 0 || read_members(*keep, ret, err) < 0)
		return -1;
	if (!ret->etag || ret->etag[0] == '\0')
		return err_set(err, EXIT_REFUSED, "no 'etag'");
	if (!is_location(ret->url))
		return err_set(err, EXIT_REFUSED,
			       "the 'url' '%s' is neither s3://bucket/key nor an absolute path",
			       ret->url);
	etag = ret->etag;
	etag_len = strlen(etag);
	/* Services write an ETag in quotes, their tools with and without. */
	if (etag_len > 2 && etag[0] == '"' && etag[etag_len - 1] == '"') {
		json_t *bare = js_text(etag + 1, etag_len - 2);

		js_put(*keep, "etag", bare);
		ret->etag = js_str(*keep, "etag");
	}
	ret->mtime = ret->sha256 = NULL;
	ret->is_new = ret->replaced = ret->aside = false;
	return 0;
}
