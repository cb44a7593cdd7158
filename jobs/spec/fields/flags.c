/* Flags in a fixed order: see flags.h. */
#include "jobs/spec/fields/flags.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/shell_words.h"
#include "jobs/spec/fields/compiler_flags.h"

#define BLANKS    " \t\r\n"
#define FLAGS_MAX 1000 /* more flags are left as they are */

static const struct variable_of_flags {
	const char *name;
	bool wrapped;   /* without the flags of Neuron's wrapper */
	bool shortened; /* a name may be shortened */
} variables[] = {
	{ "NEURON_CC_FLAGS", true, true },
	{ "XLA_FLAGS", false, false },
};

/* ---- words -------------------------------------------------------------------------- */

bool flags_is_flag(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.' &&
	       strcspn(word, BLANKS) >= strcspn(word, "=");
}

static bool is_named(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, name, len) == 0 && (!word[len] || word[len] == '=');
}

/* Adds a word in a form that could be read again. */
static void put_word(struct sb *ret, const char *word)
{
	bool plain = *word && !strpbrk(word, BLANKS "\"'\\");

	sb_adds(ret, ret->len > 0 ? " " : "");
	if (plain) {
		sb_adds(ret, word);
		return;
	}
	sb_addc(ret, '\'');
	for (; *word; word++)
		sb_adds(ret, *word == '\'' ? "'\\''" : (char[]){ *word, '\0' });
	sb_addc(ret, '\'');
}

/* ---- flags of the wrapper ----------------------------------------------------------- */

static const struct compiler_flag *wrapper_flag(const char *word)
{
	for (size_t i = 0; i < compiler_flag_count; i++)
		if (compiler_flags[i].wrapped && is_named(word, compiler_flags[i].name))
			return &compiler_flags[i];
	return NULL;
}

static size_t unwrap(char **words, size_t count)
{
	bool is_value = false;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct compiler_flag *flag = wrapper_flag(words[i]);
		bool drop = flag || (is_value && !flags_is_flag(words[i]));

		is_value = flag && flag->takes != TAKES_NOTHING && !strchr(words[i], '=');
		if (drop)
			free(words[i]);
		else
			words[kept++] = words[i];
	}
	words[kept] = NULL;
	return kept;
}

/* ---- flags that may set the same thing ----------------------------------------------- */

/* A flag with its values: `count` words from `words` on. */
struct flags_unit {
	char **words;
	size_t count, at; /* at: position from the left */
	char *topic;      /* units of one topic keep their order among each other */
};

static void units_release(struct flags_unit **units)
{
	for (struct flags_unit *unit = *units; unit && unit->words; unit++)
		free(unit->topic);
	free(*units);
}

static const struct {
	const char *name, *topic;
} aliases[] = {
	{ "--optlevel", "-O" },
	{ "--logical-nc-config", "--lnc" },
	{ "-lnc", "--lnc" },
};

/* Switches of one thing have one topic: "--enable-x", "--no_x" and "--x" are "--x". */
static char *topic_of(const char *word)
{
	static const char *const switches[] = { "enable", "disable", "no" };
	size_t len = strcspn(word, "=");
	struct sb topic = SB_INIT;

	for (size_t i = 0; i < STK_LENGTH(aliases); i++)
		if (is_named(word, aliases[i].name))
			return mem_copy(aliases[i].topic);
	if (word[1] != '-')
		return mem_copy_n(word, 2); /* the value may follow without a blank */
	sb_adds(&topic, "-");
	for (const char *at = word + 2, *end = word + len; at <= end;) {
		size_t word_len = 0;
		bool is_switch = false;

		while (at + word_len < end && at[word_len] != '-' && at[word_len] != '_')
			word_len++;
		for (size_t i = 0; i < STK_LENGTH(switches); i++)
			is_switch = is_switch || (strlen(switches[i]) == word_len &&
						  strncmp(at, switches[i], word_len) == 0);
		if (!is_switch) {
			sb_addc(&topic, '-');
			sb_add(&topic, at, word_len);
		}
		at += word_len + 1;
	}
	return sb_take(&topic);
}

/* True if the one could be short for the other. */
static bool may_be_short(const char *word, const char *other)
{
	size_t len = strcspn(word, "=");

	return word[1] == '-' && len > 2 && strncmp(word, other, len) == 0 &&
	       len < strcspn(other, "=") && !is_named(word, "--auto-cast");
}

/* Joins two topics under the one that sorts first. */
static void join_topics(struct flags_unit *units, size_t count, const char *one, const char *other)
{
	AUTO(auto_free) char *to = mem_copy(strcmp(one, other) < 0 ? one : other);
	AUTO(auto_free) char *from = mem_copy(strcmp(one, other) < 0 ? other : one);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(units[i].topic, from) != 0)
			continue;
		free(units[i].topic);
		units[i].topic = mem_copy(to);
	}
}

static void join_short(struct flags_unit *units, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; n < count; n++)
			if (flags_is_flag(*units[i].words) && flags_is_flag(*units[n].words) &&
			    may_be_short(*units[i].words, *units[n].words))
				join_topics(units, count, units[i].topic, units[n].topic);
}

/* ---- the whole text ------------------------------------------------------------------ */

static int by_topic(const void *a, const void *b)
{
	const struct flags_unit *one = a, *other = b;
	int order = strcmp(one->topic, other->topic);

	return order ? order : one->at < other->at ? -1 : 1;
}

/* Returns the topic of a unit that begins with this word: words before the first flag come
 * first, words behind a bare "--" last. */
static char *first_topic(const char *word)
{
	if (strcmp(word, "--") == 0)
		return mem_copy("\x7f");
	return flags_is_flag(word) ? topic_of(word) : mem_copy("");
}

static size_t units_of(char **words, size_t count, struct flags_unit *ret)
{
	size_t found = 0;
	bool bare = false;

	for (size_t i = 0; i < count; i++) {
		if (found > 0 && (bare || !flags_is_flag(words[i]))) {
			ret[found - 1].count++;
			continue;
		}
		bare = strcmp(words[i], "--") == 0;
		ret[found] = (struct flags_unit){ &words[i], 1, found, first_topic(words[i]) };
		found++;
	}
	return found;
}

static char *normal_text(const struct variable_of_flags *variable, const char *text)
{
	size_t count = 0, found;
	AUTO(auto_strv) char **words = shell_words(text, &count);
	AUTO(units_release) struct flags_unit *units = NULL;
	struct sb ret = SB_INIT;

	if (!words || count > FLAGS_MAX ||
	    (!variable->wrapped && text[strspn(text, BLANKS)] != '-'))
		return mem_copy(text);
	if (variable->wrapped)
		count = unwrap(words, count);
	units = mem_zero(count + 1, sizeof *units);
	found = units_of(words, count, units);
	if (variable->shortened)
		join_short(units, found);
	if (found > 1)
		qsort(units, found, sizeof *units, by_topic);
	for (size_t i = 0; i < found; i++)
		for (size_t n = 0; n < units[i].count; n++)
			put_word(&ret, units[i].words[n]);
	return sb_take(&ret);
}

char *flags_in_key(const char *variable, const char *text)
{
	for (size_t i = 0; i < STK_LENGTH(variables); i++)
		if (strcmp(variables[i].name, variable) == 0)
			return normal_text(&variables[i], text);
	return NULL;
}
