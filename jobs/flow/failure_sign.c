/*
 * Signatures: the same failure in two attempts gives the same short text. Text that differs from
 * one attempt to the next by itself (numbers, addresses, folders, ranks, times) is taken out before
 * the rest is hashed. See failure.h.
 */
#include "jobs/flow/failure_internal.h"

#include <stdio.h>
#include <string.h>

/* FNV-1a, 64 bits: short, and a collision is of no use to an attacker. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* A number after such words says what failed, not how far it had come. */
static const char *const telling[] = { "Errno ",  "errno ",      "exit status ", "signal ",
				       "status=", "HTTP Error ", "status code ", "NCC_" };

static bool is_hex(char c)
{
	return failure_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool in_path(char c)
{
	return is_letter(c) || failure_is_digit(c) || c == '.' || c == '_' || c == '-' || c == '+';
}

static bool tells(const char *text, size_t at)
{
	for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++) {
		size_t len = strlen(telling[i]);

		if (len <= at && strncmp(text + at - len, telling[i], len) == 0)
			return true;
	}
	return false;
}

/* Returns the length of a word of at least six hex digits, one of them decimal: an address, a
 * digest or a process; 0 if there is none. */
static size_t hex_word(const char *text, size_t at, size_t len)
{
	size_t end = at;
	bool digit = false;

	if (at > 0 && (is_letter(text[at - 1]) || failure_is_digit(text[at - 1])))
		return 0;
	/* The text is terminated: the byte behind its last may be looked at. */
	if (text[at] == '0' && text[at + 1] == 'x')
		end = at + 2;
	while (end < len && is_hex(text[end]))
		digit = failure_is_digit(text[end++]) || digit;
	if (end < len && is_letter(text[end]))
		return 0;
	return digit && end - at >= 6 ? end - at : 0;
}

/* Returns the length of a path's folders, up to and with the last slash; 0 if no path begins
 * here. */
static size_t folders(const char *text, size_t at, size_t len)
{
	size_t end = at, last = at;

	if (text[at] != '/' || (at > 0 && (in_path(text[at - 1]) || text[at - 1] == '/')))
		return 0;
	while (end < len && (text[end] == '/' || in_path(text[end]))) {
		if (text[end] == '/')
			last = end;
		end++;
	}
	return last - at + 1;
}

static uint64_t hash(uint64_t sum, char c)
{
	return (sum ^ (unsigned char)c) * FNV_PRIME;
}

static uint64_t hash_normal(const char *text, size_t len)
{
	uint64_t sum = FNV_BASIS;
	size_t at = 0;

	while (at < len) {
		size_t skip = folders(text, at, len);

		if (skip == 0)
			skip = hex_word(text, at, len);
		if (skip == 0 && failure_is_digit(text[at]) && !tells(text, at))
			while (at + skip < len && failure_is_digit(text[at + skip]))
				skip++;
		if (skip > 0) {
			sum = hash(sum, '#');
			at += skip;
			continue;
		}
		do
			sum = hash(sum, text[at++]);
		while (at < len && failure_is_digit(text[at - 1]) && failure_is_digit(text[at]));
	}
	return sum;
}

void failure_sign(struct failure_classification *ret)
{
	size_t len = strlen(ret->evidence);
	uint64_t sum =
		hash_normal(ret->evidence, ret->decisive_bytes < len ? ret->decisive_bytes : len);

	ret->signature[0] = '\0';
	/* Two kills do not have a common cause for that alone. */
	if (strcmp(ret->rule, "sigkill") == 0 || strcmp(ret->rule, "killed") == 0)
		return;
	if (ret->class != CLASS_NONE)
		snprintf(ret->signature, sizeof ret->signature, "%s/%.24s/%016llx",
			 flow_class_names[ret->class], ret->rule, (unsigned long long)sum);
}
