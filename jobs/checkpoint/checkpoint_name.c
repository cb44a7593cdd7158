/* Names of checkpoints, their files and their steps: see checkpoint_name.h. */
#include "jobs/checkpoint/checkpoint_name.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/text.h"

#define STEP_DIGITS 18 /* more may not fit into 63 bits */

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
