/* Documented flags of the Neuron compiler, and those of a text: see compiler_flags.h. */
#include "jobs/spec/fields/compiler_flags.h"

#include <string.h>
#include <strings.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "jobs/spec/fields/flags.h"

#define BLANKS " "

const struct compiler_flag compiler_flags[] = {
#define COMPILER_FLAG(NAME, TAKES, VALUES, SINCE, SOURCE, ...)                                     \
	{ .name = (NAME),                                                                          \
	  .takes = TAKES_##TAKES,                                                                  \
	  .values = (VALUES),                                                                      \
	  .since = (SINCE),                                                                        \
	  .source = (SOURCE),                                                                      \
	  .help = __VA_ARGS__ },
#include "jobs/spec/fields/compiler_flags.def"
#undef COMPILER_FLAG
};
const size_t compiler_flag_count = STK_LENGTH(compiler_flags);

/* ---- finding a row ------------------------------------------------------------------ */

/* Returns the length of a name that the word begins with: "-O" of "-O1", "--target" of
 * "--target=trn1"; 0 if it is another flag. */
static size_t named(const char *word, const char *name, size_t len)
{
	bool letter = len == 2 && name[1] != '-';

	if (strncmp(word, name, len) != 0)
		return 0;
	return letter || word[len] == '=' || word[len] == '\0' ? len : 0;
}

/* The same for a row's name and its other spellings. */
static size_t named_by(const char *word, const struct compiler_flag *row)
{
	size_t len = named(word, row->name, strlen(row->name));
	const char *at = row->also ? row->also : "";

	while (len == 0 && *at) {
		size_t one = strcspn(at, BLANKS);

		len = named(word, at, one);
		at += one + (at[one] == ' ');
	}
	return len;
}

static struct flag_use use_of(const char *word)
{
	struct flag_use use = { .word = word, .len = strcspn(word, "=") };

	/* A whole name counts before a letter with its value: "-lnc" is no "-l nc". */
	for (size_t i = 0; i < compiler_flag_count && !use.row; i++) {
		size_t len = named_by(word, &compiler_flags[i]);

		if (len > 0) {
			use.row = &compiler_flags[i];
			use.len = len;
		}
	}
	if (word[use.len])
		use.value = word + use.len + (word[use.len] == '=');
	return use;
}

size_t compiler_flags_read(char *const *words, struct flag_use *ret)
{
	size_t count = 0;

	for (char *const *word = words; *word; word++) {
		const struct flag_use *last = count > 0 ? &ret[count - 1] : NULL;

		if (strcmp(*word, "--") == 0)
			break;
		if (flags_is_flag(*word)) {
			ret[count++] = use_of(*word);
			continue;
		}
		/* A value of a flag of no row may be one, too. */
		if (last && !last->value && (!last->row || last->row->takes != TAKES_NOTHING))
			ret[count - 1].value = *word;
	}
	return count;
}

/* ---- values ------------------------------------------------------------------------- */

static bool equals(const struct compiler_flag *row, const char *value, size_t len, const char *word,
		   size_t word_len)
{
	return len == word_len && (row->any_case ? strncasecmp(value, word, len) == 0
						 : strncmp(value, word, len) == 0);
}

static bool is_number(const char *value, size_t len)
{
	return len > 0 && strspn(value, "0123456789") >= len;
}

static bool is_documented(const struct compiler_flag *row, const char *value, size_t len)
{
	for (const char *at = row->values; *at;) {
		size_t one = strcspn(at, BLANKS);

		if (one == 1 && *at == '#' ? is_number(value, len)
					   : equals(row, value, len, at, one))
			return true;
		at += one + (at[one] == ' ');
	}
	return false;
}

/* Returns the entry "OLD" or "OLD=NEW" of that value; NULL if it is not among them. */
static const char *older_entry(const struct compiler_flag *row, const char *value)
{
	const char *at = row->older ? row->older : "";

	while (*at) {
		size_t one = strcspn(at, BLANKS);

		if (equals(row, value, strlen(value), at, strcspn(at, "= ")))
			return at;
		at += one + (at[one] == ' ');
	}
	return NULL;
}

static bool fits(const struct compiler_flag *row, const char *value)
{
	if (row->takes == TAKES_WORD)
		return is_documented(row, value, strlen(value));
	for (const char *at = value; row->takes == TAKES_LIST && *at;) {
		size_t one = strcspn(at, ",");

		if (!is_documented(row, at, one))
			return false;
		at += one + (at[one] == ',');
	}
	return true;
}

enum flag_value compiler_flag_value(const struct flag_use *use, char **ret_now)
{
	const struct compiler_flag *row = use->row;
	const char *entry, *now;

	*ret_now = NULL;
	if (!row->values || !use->value || fits(row, use->value))
		return VALUE_FITS;
	if (strpbrk(use->value, "$`{"))
		return VALUE_OPEN;
	entry = older_entry(row, use->value);
	if (!entry)
		return VALUE_WRONG;
	now = entry + strcspn(entry, "= ");
	if (*now == '=')
		*ret_now = mem_copy_n(now + 1, strcspn(now + 1, BLANKS));
	return VALUE_OLDER;
}
