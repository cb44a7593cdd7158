/* Tools for the rows that judge a checkpoint: see checkpoint_check.h. */
#include "jobs/checkpoint/checkpoint_check.h"

#include <stdarg.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/checkpoint/format.h"

#define TEXT_MAX ((size_t)64 << 10)

bool checkpoint_check_fail(struct checkpoint_check *check, const char *fmt, ...)
{
	AUTO(sb_release) struct sb why = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&why, fmt, args);
	va_end(args);
	if (!check->why)
		check->why = sb_take(&why);
	return false;
}

bool checkpoint_check_grid(struct checkpoint_check *check, const char *pattern,
			   uint32_t ret_sides[PATTERN_NUMBERS])
{
	uint64_t found = 0, expected = 1;

	memset(ret_sides, 0, PATTERN_NUMBERS * sizeof *ret_sides);
	for (size_t i = 0; i < check->tree->count; i++) {
		uint32_t at[PATTERN_NUMBERS] = { 0 };

		if (!checkpoint_pattern_match(pattern, check->tree->files[i].path, at))
			continue;
		found++;
		for (size_t k = 0; k < PATTERN_NUMBERS; k++)
			if (at[k] >= ret_sides[k])
				ret_sides[k] = at[k] + 1;
	}
	if (found == 0)
		return true;
	for (size_t k = 0; k < PATTERN_NUMBERS; k++)
		if (__builtin_mul_overflow(expected, (uint64_t)ret_sides[k], &expected))
			expected = UINT64_MAX;
	if (found == expected)
		return true;
	return checkpoint_check_fail(
		check, "ranks are missing: %llu of %llu files like '%s' are there",
		(unsigned long long)found, (unsigned long long)expected, pattern);
}

char *checkpoint_check_text(const struct checkpoint_check *check, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(check->tree, path);

	if (!file || checkpoint_tree_text(check->tree, file, TEXT_MAX, &text) < 0)
		return NULL;
	return sb_take(&text);
}

json_t *checkpoint_check_json(const struct checkpoint_check *check, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(check->tree, path);
	json_t *value;

	if (!file || checkpoint_tree_text(check->tree, file, FORMAT_JSON_MAX, &text) < 0)
		return NULL;
	value = format_json(text.text, text.len);
	if (value && !json_is_object(value)) {
		json_decref(value);
		return NULL;
	}
	return value;
}
