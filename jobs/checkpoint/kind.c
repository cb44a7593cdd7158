/* The table of kinds, and functions shared by their files. See kind.h. */
#include "jobs/checkpoint/kind.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/format.h"

#define TEXT_MAX    ((size_t)64 << 10)
#define STEP_DIGITS 18 /* more may not fit into 63 bits */

static const struct ckpt_kind kind_auto = { .name = "auto", .named = checkpoint_name_any };

/* Order in which `auto` asks: markers that belong to one writer alone come first; `files` takes
 * the rest. */
static const struct ckpt_kind *const kinds[] = {
	&kind_orbax, &kind_megatron, &kind_deepspeed, &kind_nxd,
	&kind_hf,    &kind_dcp,      &kind_files,     &kind_auto,
};

const struct ckpt_kind *checkpoint_kind_find(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

const char *checkpoint_kind_name(const struct ckpt_kind *kind)
{
	return kind->name;
}

const struct ckpt_kind *kind_of(const struct ckpt_kind *kind, const struct checkpoint_look *look)
{
	if (kind->looks)
		return kind;
	for (size_t i = 0; i < STK_LENGTH(kinds) && !look->tree->single; i++)
		if (kinds[i]->looks && kinds[i]->looks(look))
			return kinds[i];
	return &kind_files;
}

bool checkpoint_look_fail(struct checkpoint_look *look, const char *fmt, ...)
{
	AUTO(sb_release) struct sb why = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&why, fmt, args);
	va_end(args);
	if (!look->why)
		look->why = sb_take(&why);
	return false;
}

bool checkpoint_name_temporary(const char *name)
{
	static const char *const patterns[] = {
		"*.tmp",        "*.tmp.*",  "*.tmp-*", "*.temp", "*.part",
		"*.partial",    "*.crswap", "tmp*",    "*~",     "*.orbax-checkpoint-tmp*",
		"*.incomplete",
	};

	for (size_t i = 0; i < STK_LENGTH(patterns); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

static bool read_step(const char *digits, size_t len, int64_t *ret_step)
{
	int64_t step = 0;

	if (len == 0 || len > STEP_DIGITS)
		return false;
	for (size_t i = 0; i < len; i++)
		step = step * 10 + (digits[i] - '0');
	*ret_step = step;
	return true;
}

static size_t digits_at(const char *text)
{
	return strspn(text, "0123456789");
}

bool checkpoint_name_prefixed(const char *name, const char *prefix, int64_t *ret_step)
{
	const char *digits = name + strlen(prefix);

	return text_starts(name, prefix) && digits[digits_at(digits)] == '\0' &&
	       read_step(digits, strlen(digits), ret_step);
}

/* Reads the number after a word such as "step=", in any case. */
static bool step_after(const char *name, const char *word, int64_t *ret_step)
{
	for (const char *at = name; (at = strcasestr(at, word)); at++) {
		const char *digits = at + strlen(word);

		digits += strspn(digits, "sS"); /* steps, iters */
		digits += strspn(digits, "_-=. ");
		if (read_step(digits, digits_at(digits), ret_step))
			return true;
	}
	return false;
}

static bool last_number(const char *name, int64_t *ret_step)
{
	size_t end = strlen(name), begin;

	while (end > 0 && !isdigit((unsigned char)name[end - 1]))
		end--;
	for (begin = end; begin > 0 && isdigit((unsigned char)name[begin - 1]); begin--)
		;
	if (begin > 1 && name[begin - 1] == '.' && isdigit((unsigned char)name[begin - 2])) {
		AUTO(auto_free) char *before = mem_copy_n(name, begin - 1);

		for (end = begin - 1; end > 0 && isdigit((unsigned char)before[end - 1]); end--)
			before[end - 1] = '\0';
		return last_number(before, ret_step); /* the number was a fraction, such as 0.25 */
	}
	return read_step(name + begin, end - begin, ret_step);
}

/* Returns the length of a file's name without the ending of a checkpoint file, 0 without such an
 * ending: logs and tables lie in such folders too. */
static size_t without_ending(const char *name)
{
	static const char *const endings[] = {
		".pt", ".pth", ".ckpt", ".bin",   ".safetensors", ".npz", ".npy",
		".h5", ".tar", ".hdf5", ".keras", ".msgpack",     ".pkl", ".eqx",
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < STK_LENGTH(endings); i++) {
		size_t ending = strlen(endings[i]);

		if (len > ending && strcmp(name + len - ending, endings[i]) == 0)
			return len - ending;
	}
	return 0;
}

bool checkpoint_name_of_state(const char *name)
{
	return without_ending(name) > 0;
}

bool checkpoint_name_tells(const char *name)
{
	static const char *const words[] = { "step",  "iter",  "epoch",  "ckpt",   "checkpoint",
					     "model", "state", "weight", "snapsh", "save" };
	size_t stem = without_ending(name);

	for (size_t i = 0; i < STK_LENGTH(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return digits_at(name) > 0 && digits_at(name) == (stem ? stem : strlen(name));
}

bool checkpoint_name_any(const char *name, bool is_folder, int64_t *ret_step)
{
	AUTO(auto_free) char *stem = NULL;

	if (name[0] == '.' || checkpoint_name_temporary(name))
		return false;
	stem = is_folder ? mem_copy(name) : mem_copy_n(name, without_ending(name));
	return step_after(stem, "step", ret_step) || step_after(stem, "iter", ret_step) ||
	       step_after(stem, "iteration", ret_step) || step_after(stem, "epoch", ret_step) ||
	       last_number(stem, ret_step);
}

bool checkpoint_pattern_match(const char *pattern, const char *path, uint32_t ret[PATTERN_NUMBERS])
{
	size_t count = 0;

	for (; *pattern; pattern++) {
		size_t len;
		int64_t number;

		if (*pattern != '%') {
			if (*path++ != *pattern)
				return false;
			continue;
		}
		len = digits_at(path);
		if (len > 9 || count == PATTERN_NUMBERS || !read_step(path, len, &number))
			return false;
		ret[count++] = (uint32_t)number;
		path += len;
	}
	return *path == '\0';
}

bool checkpoint_look_grid(struct checkpoint_look *look, const char *pattern,
			  uint32_t ret_sides[PATTERN_NUMBERS])
{
	uint64_t found = 0, wanted = 1;

	memset(ret_sides, 0, PATTERN_NUMBERS * sizeof *ret_sides);
	for (size_t i = 0; i < look->tree->count; i++) {
		uint32_t at[PATTERN_NUMBERS] = { 0 };

		if (!checkpoint_pattern_match(pattern, look->tree->files[i].path, at))
			continue;
		found++;
		for (size_t k = 0; k < PATTERN_NUMBERS; k++)
			if (at[k] >= ret_sides[k])
				ret_sides[k] = at[k] + 1;
	}
	if (found == 0)
		return true;
	for (size_t k = 0; k < PATTERN_NUMBERS; k++)
		if (__builtin_mul_overflow(wanted, (uint64_t)ret_sides[k], &wanted))
			wanted = UINT64_MAX;
	if (found == wanted)
		return true;
	return checkpoint_look_fail(look,
				    "ranks are missing: %llu of %llu files like '%s' are there",
				    (unsigned long long)found, (unsigned long long)wanted, pattern);
}

char *checkpoint_look_text(const struct checkpoint_look *look, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(look->tree, path);

	if (!file || checkpoint_tree_text(look->tree, file, TEXT_MAX, &text) < 0)
		return NULL;
	return sb_take(&text);
}

json_t *checkpoint_look_json(const struct checkpoint_look *look, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(look->tree, path);
	json_t *value;

	if (!file || checkpoint_tree_text(look->tree, file, FORMAT_JSON_MAX, &text) < 0)
		return NULL;
	value = format_json(text.text, text.len);
	if (value && !json_is_object(value)) {
		json_decref(value);
		return NULL;
	}
	return value;
}
