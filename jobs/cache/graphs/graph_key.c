/* The graph key and its ingredients: see graph_key.h. */
#include "jobs/cache/graphs/graph_key.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN_PREFIX "sha256:"
#define HIDDEN_DIGITS 16
#define DEPTH_MAX     64 /* deeper values are compared as a whole */

/* Words that make a name look like that of a secret; whole words only, so that "max_tokens" and
 * "tokenizer" stay readable. "key" counts only after one of key_words. */
static const char *const secret_words[] = {
	"apikey", "auth",   "credential", "credentials", "passphrase", "passwd",     "password",
	"pwd",    "secret", "secrets",    "token",       "webhook",    "pgpassword",
};
static const char *const key_words[] = {
	"access", "api", "auth", "encryption", "private", "signing"
};

static bool is_word(const char *word, size_t len, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == len && strncasecmp(words[i], word, len) == 0)
			return true;
	return false;
}

static bool looks_secret(const char *name)
{
	const char *before = NULL;
	size_t before_len = 0;

	while (*name) {
		size_t len = 0;

		while (isalnum((unsigned char)name[len]))
			len++;
		if (len == 0) {
			name++;
			continue;
		}
		if (is_word(name, len, secret_words, STK_LENGTH(secret_words)))
			return true;
		if (len == 3 && strncasecmp(name, "key", 3) == 0 && before &&
		    is_word(before, before_len, key_words, STK_LENGTH(key_words)))
			return true;
		before = name;
		before_len = len;
		name += len;
	}
	return false;
}

static bool is_hidden(const char *text)
{
	size_t prefix = strlen(HIDDEN_PREFIX);

	return strncmp(text, HIDDEN_PREFIX, prefix) == 0 &&
	       strlen(text) == prefix + HIDDEN_DIGITS &&
	       strspn(text + prefix, "0123456789abcdef") == HIDDEN_DIGITS;
}

static char *hidden_text(const char *text, size_t len)
{
	char hex[SHA256_HEX];

	hash_sha256_hex(text, len, hex);
	return mem_format(HIDDEN_PREFIX "%.*s", HIDDEN_DIGITS, hex);
}

static void hide(json_t *value, bool secret, int depth);

static void hide_string(json_t *value)
{
	AUTO(auto_free) char *text = NULL;

	if (is_hidden(json_string_value(value)))
		return;
	text = hidden_text(json_string_value(value), json_string_length(value));
	json_string_set(value, text);
}

/* In a command, hides the value in "--api-key=…" and the argument after "--api-key". */
static void hide_arguments(json_t *array, bool secret, int depth)
{
	bool next = false;
	json_t *value;
	size_t i;

	json_array_foreach (array, i, value) {
		const char *text = json_string_value(value);
		const char *equals = text ? strchr(text, '=') : NULL;
		bool flag = text && text[0] == '-';
		AUTO(auto_free) char *name = NULL;

		hide(value, secret || (next && !flag), depth + 1);
		next = false;
		if (!flag || secret)
			continue;
		name = equals ? mem_copy_n(text, (size_t)(equals - text)) : mem_copy(text);
		if (!looks_secret(name))
			continue;
		if (equals && !is_hidden(equals + 1)) {
			AUTO(auto_free) char *hidden = hidden_text(equals + 1, strlen(equals + 1));
			AUTO(auto_free) char *whole = mem_format("%s=%s", name, hidden);

			json_string_set(value, whole);
		}
		next = !equals;
	}
}

static void hide(json_t *value, bool secret, int depth)
{
	const char *name;
	json_t *member;

	if (depth > DEPTH_MAX)
		return;
	if (json_is_string(value) && secret)
		hide_string(value);
	if (json_is_array(value))
		hide_arguments(value, secret, depth);
	if (!json_is_object(value))
		return;
	json_object_foreach (value, name, member) {
		/* The names below "source" are files, not names of values. */
		if (depth == 0 && (strcmp(name, "source") == 0 || strcmp(name, "depends_on") == 0))
			continue;
		hide(member, secret || looks_secret(name), depth + 1);
	}
}

void graph_key_ingredients_hide_secrets(json_t *ingredients)
{
	hide(ingredients, false, 0);
}

void graph_key_of(const json_t *ingredients, char hex[SHA256_HEX])
{
	json_auto_t *copy = json_deep_copy(ingredients);

	graph_key_ingredients_hide_secrets(copy);
	js_digest(copy, hex);
}

/* Put every value below `value` into `flat` under its field name. */
static void flatten(json_t *flat, const char *field, json_t *value, int depth)
{
	const char *separator = strcmp(field, "source") == 0 ? ":" : ".";
	const char *name;
	json_t *member;

	if (!json_is_object(value) || json_object_size(value) == 0 || depth > DEPTH_MAX) {
		json_object_set(flat, field, value);
		return;
	}
	json_object_foreach (value, name, member) {
		AUTO(auto_free)
		char *below =
			depth == 0 ? mem_copy(name) : mem_format("%s%s%s", field, separator, name);

		flatten(flat, below, member, depth + 1);
	}
}

static json_t *flat_copy(const json_t *ingredients)
{
	json_auto_t *copy = json_deep_copy(ingredients);
	json_t *flat = json_object();

	graph_key_ingredients_hide_secrets(copy);
	if (json_object_size(copy) > 0)
		flatten(flat, "", copy, 0);
	return flat;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *graph_key_ingredients_diff(const json_t *old_ingredients, const json_t *new_ingredients)
{
	json_auto_t *before = flat_copy(old_ingredients);
	json_auto_t *after = flat_copy(new_ingredients);
	json_auto_t *all = json_copy(before);
	AUTO(auto_free) const char **names = NULL;
	json_t *diff = json_array(), *value;
	const char *name;
	size_t count = 0;

	json_object_update_missing(all, after);
	names = mem_zero(json_object_size(all), sizeof *names);
	json_object_foreach (all, name, value)
		names[count++] = name;
	if (count > 1)
		qsort(names, count, sizeof *names, by_name);
	for (size_t i = 0; i < count; i++) {
		json_t *old_value = json_object_get(before, names[i]);
		json_t *new_value = json_object_get(after, names[i]);
		json_t *row;

		if (old_value && new_value && json_equal(old_value, new_value))
			continue;
		row = json_object();
		js_put_str(row, "field", names[i]);
		js_put(row, "old", old_value ? json_incref(old_value) : json_null());
		js_put(row, "new", new_value ? json_incref(new_value) : json_null());
		json_array_append_new(diff, row);
	}
	return diff;
}
