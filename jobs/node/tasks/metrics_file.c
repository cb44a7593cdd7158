/* Reads metrics.json: see metrics_file.h. */
#include "jobs/node/tasks/metrics_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"

void metrics_file_release(struct metrics_file *metrics)
{
	json_decref(metrics->values);
	json_decref(metrics->invalid);
	*metrics = (struct metrics_file){ 0 };
}

/* The command wrote it: whatever is wrong is for its author. */
static int invalid(struct err **err, const char *fmt, ...) STK_PRINTF(2, 3);

static int invalid(struct err **err, const char *fmt, ...)
{
	AUTO(sb_release) struct sb why = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&why, fmt, args);
	va_end(args);
	err_set(err, EXIT_RUN_FAILED, "%s", why.text);
	return err_hint(err,
			"write one object of names and numbers to $STOKER_OUTPUT_DIR/" METRICS_FILE
			", such as {\"accuracy\": 0.95}");
}

/* Puts the words that are not of JSON into quotes, outside of texts. */
static void quote_words(struct sb *out, const char *text, size_t len)
{
	static const char *const words[] = { "-Infinity", "Infinity", "NaN" };
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		size_t word = 0;

		for (size_t k = 0; !quoted && word == 0 && k < STK_LENGTH(words); k++)
			if (len - i >= strlen(words[k]) &&
			    memcmp(text + i, words[k], strlen(words[k])) == 0)
				word = strlen(words[k]);
		if (word > 0) {
			sb_addf(out, "\"%.*s\"", (int)word, text + i);
			i += word - 1;
			continue;
		}
		if (text[i] == '"')
			quoted = !quoted;
		sb_addc(out, text[i]);
		if (quoted && text[i] == '\\' && i + 1 < len)
			sb_addc(out, text[++i]);
	}
}

static int take(struct metrics_file *metrics, const char *name, json_t *value, struct err **err)
{
	if (json_is_object(value) || json_is_array(value))
		return invalid(err, METRICS_FILE " is nested: '%.*s' is not a number",
			       METRICS_FILE_NAME, name);
	if (!*name || strlen(name) > METRICS_FILE_NAME)
		return invalid(err, METRICS_FILE " has a name of %zu bytes", strlen(name));
	if (json_is_number(value) && isfinite(json_number_value(value))) {
		js_put(metrics->values, name, json_incref(value));
	} else if (json_is_string(value)) {
		size_t len = json_string_length(value);

		js_put(metrics->invalid, name,
		       js_text(json_string_value(value),
			       len < METRICS_FILE_NAME ? len : METRICS_FILE_NAME));
	} else {
		js_put_str(metrics->invalid, name,
			   json_is_null(value)   ? "null"
			   : json_is_true(value) ? "true"
						 : "false");
	}
	return 0;
}

int metrics_file_parse(const char *text, size_t len, struct metrics_file *ret, struct err **err)
{
	AUTO(metrics_file_release)
	struct metrics_file metrics = { json_object(), json_object() };
	AUTO(sb_release) struct sb plain = SB_INIT_MAX(2 * METRICS_FILE_MAX);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *body = NULL;
	const char *name;
	json_t *value;

	quote_words(&plain, text, len);
	if (plain.truncated || len > METRICS_FILE_MAX)
		return invalid(err, METRICS_FILE " is larger than 1 MiB");
	if (js_parse(plain.text, plain.len, METRICS_FILE, &body, &why) < 0)
		return invalid(err, "%s", why->message);
	if (!json_is_object(body))
		return invalid(err, METRICS_FILE " is not an object");
	if (json_object_size(body) > METRICS_FILE_NAMES)
		return invalid(err, METRICS_FILE " has %zu names, more than %d",
			       json_object_size(body), METRICS_FILE_NAMES);
	json_object_foreach (body, name, value)
		if (take(&metrics, name, value, err) < 0)
			return -1;
	*ret = metrics;
	metrics = (struct metrics_file){ 0 };
	return 0;
}

int metrics_file_read(const char *folder, struct metrics_file *ret, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(folder, METRICS_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(METRICS_FILE_MAX);
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return invalid(err, METRICS_FILE " is not a regular file");
	if ((uint64_t)st.st_size > METRICS_FILE_MAX)
		return invalid(err, METRICS_FILE " is larger than 1 MiB");
	if (fs_read(path, METRICS_FILE_MAX, &text, err) < 0)
		return -1;
	return metrics_file_parse(text.text, text.len, ret, err) < 0 ? -1 : 1;
}
