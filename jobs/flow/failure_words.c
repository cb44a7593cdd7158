/*
 * Failures that no row of the tables knows, judged by the words of their texts: how
 * much each word speaks for a class was learnt from the corpus of labelled texts
 * (tests/corpus/learn.py). See failure_inside.h.
 */
#include "jobs/flow/failure_inside.h"

#include <string.h>

#include "jobs/flow/flow.h"

#define CLASSES  12
#define WORD_MAX 32
#define SCALE    16 /* of roots, so that they keep what is behind the point */

/* In the order of the weights. */
static const enum failure_class classes[CLASSES] = {
	CLASS_TRANSIENT_INFRA,
	CLASS_CAPACITY,
	CLASS_SPOT,
	CLASS_HARDWARE_NODE,
	CLASS_COMM,
	CLASS_USER_CODE,
	CLASS_USER_CONFIG,
	CLASS_QUOTA_PERMISSION,
	CLASS_DATA,
	CLASS_COMPILE,
	CLASS_TIMEOUT_HANG,
	CLASS_UNKNOWN,
};
#define AT_TRANSIENT 0
#define AT_CODE      5
#define AT_CONFIG    6

struct word {
	const char *text, *weights; /* a letter for each class */
};

#define WORD(text, weights) { text, weights },
static const struct word known[] = {
#include "jobs/flow/failure_words.def"
};
#undef WORD

#define KNOWN (sizeof known / sizeof known[0])

/* Capitals speak for a class, small letters against it. */
static int weight_of(const struct word *word, size_t class)
{
	char c = word->weights[class];

	if (c == '.')
		return 0;
	return c <= 'Z' ? c - 'A' + 1 : 'a' - c - 1;
}

struct votes {
	bool seen[KNOWN];
	int words, sum[CLASSES];
};

/* The place of a word, the first row's where it is not known. */
static size_t find_word(const char *text)
{
	size_t low = 1, high = KNOWN;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(text, known[middle].text);

		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return 0;
}

static void count_word(struct votes *votes, const char *text, size_t len)
{
	char word[WORD_MAX];
	size_t at;

	if (len < 2 || len >= sizeof word)
		return;
	for (size_t i = 0; i < len; i++)
		word[i] = (char)(text[i] | 0x20); /* letters alone come here */
	word[len] = '\0';
	at = find_word(word);
	if (at == 0 || votes->seen[at])
		return;
	votes->seen[at] = true;
	votes->words++;
	for (size_t i = 0; i < CLASSES; i++)
		votes->sum[i] += weight_of(&known[at], i);
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* "OSError: HTTPServer gone" has the words os, error, http, server and gone. */
static void count_words(struct votes *votes, struct failure_line line)
{
	size_t at = 0;

	while (at < line.len) {
		size_t begin = at;

		while (at < line.len && is_capital(line.text[at]))
			at++;
		if (at - begin > 1) {
			if (at < line.len && is_small(line.text[at]))
				at--; /* the last capital belongs to what follows */
		} else {
			while (at < line.len && is_small(line.text[at]))
				at++;
		}
		if (at > begin)
			count_word(votes, line.text + begin, at - begin);
		else
			at++;
	}
}

/* Rounded down, but 1 at least. */
static int root(int square)
{
	int r = 1;

	while ((r + 1) * (r + 1) <= square)
		r++;
	return r;
}

/* How much the words speak for each class. */
static void weigh(const struct votes *votes, int ret_weight[CLASSES])
{
	/* The more words, the less each of them. */
	int share = votes->words > 0 ? root(votes->words * SCALE * SCALE) : SCALE;

	for (size_t i = 0; i < CLASSES; i++)
		ret_weight[i] = votes->sum[i] * SCALE / share + weight_of(&known[0], i);
}

/* What two classes weigh together, which share what speaks for either: e to the power of
 * a sixth of each is added. */
static int together(int a, int b)
{
	static const int more[] = { 4, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1 };
	int high = a > b ? a : b, apart = a > b ? a - b : b - a;

	return high + (apart < (int)(sizeof more / sizeof more[0]) ? more[apart] : 0);
}

/* The heaviest class for which the run stops, or does not. *ret_weight: what speaks for it;
 * the code and the settings of the user stop the run alike and have many words in common, so
 * that a doubt between them is none about the stop. */
static size_t heaviest(const int weight[CLASSES], bool stops, int *ret_weight)
{
	size_t found = stops ? AT_CODE : AT_TRANSIENT;
	int user;

	for (size_t i = 0; i < CLASSES; i++)
		if ((retry_action(classes[i]) == ACTION_STOP) == stops && weight[i] > weight[found])
			found = i;
	*ret_weight = weight[found];
	if (!stops)
		return found;
	user = together(weight[AT_CODE], weight[AT_CONFIG]);
	if (user <= weight[found])
		return found;
	*ret_weight = user;
	return weight[AT_CODE] > weight[AT_CONFIG] ? AT_CODE : AT_CONFIG;
}

enum failure_class failure_guess(const struct failure_text *text)
{
	struct votes votes = { .words = 0 };
	int weight[CLASSES], for_stop, for_other, lead;
	size_t stop, other;

	for (size_t i = text->first; i < text->end && i < text->log->count; i++) {
		struct failure_line line = failure_line_trim(text->log->lines[i]);

		if (text->skip_advice)
			line = failure_witness(line);
		if (line.len > 0 && line.text[0] != ' ' && line.text[0] != '\t')
			count_words(&votes, line);
	}
	if (text->engine)
		count_words(&votes, (struct failure_line){ text->engine, strlen(text->engine) });
	if (votes.words < text->words_min)
		return CLASS_UNKNOWN;
	weigh(&votes, weight);
	weight[AT_CODE] += text->is_mistake;
	stop = heaviest(weight, true, &for_stop);
	other = heaviest(weight, false, &for_other);
	lead = for_stop - for_other;
	if (lead >= text->lead_of_stop)
		return classes[stop];
	return lead > -text->lead_of_other ? CLASS_UNKNOWN : classes[other];
}
