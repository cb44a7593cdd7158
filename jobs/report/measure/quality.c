/* Settings that decide about quality: see quality.h. */
#include "jobs/report/measure/quality.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/auto.h"

/* Names of data. */
static const char *const data[] = { "dataset", "datasets", "corpus",   "tokenizer", "split",
				    "splits",  "inputs",   "channels", NULL };
/* "data" alone may be of its loading, which is speed. */
static const char *const some_data[] = { "data", NULL };
static const char *const loading[] = { "loader",   "workers", "worker", "prefetch", "threads",
				       "parallel", "pin",     "buffer", "cache",    NULL };
/* A part of the data, and a word that makes it a place of data. */
static const char *const parts[] = { "train", "training",   "eval", "evaluation",
				     "valid", "validation", "test", NULL };
static const char *const places[] = { "file", "files", "path", "dir",  "folder",
				      "set",  "url",   "uri",  "name", NULL };
static const char *const precisions[] = { "precision",    "dtype",      "bf16",     "fp16",
					  "fp8",          "fp32",       "tf32",     "amp",
					  "cast",         "autocast",   "half",     "quantize",
					  "quantization", "stochastic", "rounding", NULL };

#define GAPS " \t\n,;\"'"

/* True if one of the words stands in the text, words being letters and digits. */
static bool has_word(const char *text, size_t len, const char *const *words)
{
	const char *end = text + len;

	while (text < end) {
		size_t word = 0;

		while (text + word < end && isalnum((unsigned char)text[word]))
			word++;
		for (size_t i = 0; word > 0 && words[i]; i++)
			if (strlen(words[i]) == word && strncasecmp(text, words[i], word) == 0)
				return true;
		text += word > 0 ? word : 1;
	}
	return false;
}

static bool names(const char *path, const char *const *words)
{
	return has_word(path, strlen(path), words);
}

/* True if each flag of `text` that is about precision stands in `other`, too. */
static bool keeps_precision(const char *text, const char *other)
{
	for (text += strspn(text, GAPS); *text; text += strspn(text, GAPS)) {
		size_t len = strcspn(text, GAPS);
		bool found = !has_word(text, len, precisions);

		for (const char *at = other + strspn(other, GAPS); *at && !found;
		     at += strspn(at, GAPS)) {
			size_t size = strcspn(at, GAPS);

			found = size == len && memcmp(at, text, len) == 0;
			at += size;
		}
		if (!found)
			return false;
		text += len;
	}
	return true;
}

bool quality_depends_on(const char *path, const char *old_value, const char *new_value)
{
	if (names(path, data) || names(path, precisions))
		return true;
	if (names(path, some_data) && !names(path, loading))
		return true;
	if (names(path, parts) && names(path, places))
		return true;
	return !keeps_precision(old_value, new_value) || !keeps_precision(new_value, old_value);
}
