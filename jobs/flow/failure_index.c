/* Finds the lines of a log that are worth keeping, fast: see failure.h. */
#include <string.h>

#include "jobs/flow/failure_internal.h"

/* Searches in one line: bounds the time for a line made of such bytes alone. */
#define LOOKS_MAX 256
#define GRAM      4 /* bytes of a row's text that are searched for */
#define NO_ROW    UINT16_MAX
#define BUCKETS   (sizeof((struct failure_index *)0)->head / sizeof(uint16_t))

static uint32_t hash_of(uint32_t gram)
{
	return gram * UINT32_C(2654435761) >> 16;
}

/* Rank of a character by how seldom it occurs in logs: English letters by their frequency, then
 * digits; anything else is the rarest. */
static size_t rarity(char c)
{
	static const char common[] = " etaoinsrhldcumfpgwybvkxjqz0123456789.:";
	const char *at = strchr(common, c);

	return at ? (size_t)(at - common) : sizeof common;
}

/* Returns the rarest four bytes in a row of a pattern's literal text. */
static uint32_t rarest_gram(const char *pattern)
{
	size_t best = 0, literal = 0, sum;
	uint32_t gram = 0;
	uint32_t ret = 0;
	bool found = false;

	pattern += *pattern == '^';
	for (; *pattern; pattern++) {
		literal = *pattern == '*' || *pattern == '#' ? 0 : literal + 1;
		gram = gram << 8 | (unsigned char)failure_lower(*pattern);
		if (literal < GRAM)
			continue;
		sum = 0;
		for (size_t i = 0; i < GRAM; i++)
			sum += rarity(failure_lower(pattern[-(ptrdiff_t)i]));
		if (!found || sum > best) {
			found = true;
			best = sum;
			ret = gram;
		}
	}
	return ret;
}

/* A test ensures that there is room, and that each pattern has four bytes in a row. */
static void add(struct failure_index *index, const char *pattern)
{
	uint32_t gram = rarest_gram(pattern), hash = hash_of(gram);

	index->present[hash / 64] |= UINT64_C(1) << hash % 64;
	index->gram[index->count] = gram;
	index->pattern[index->count] = pattern;
	index->next[index->count] = index->head[hash % BUCKETS];
	index->head[hash % BUCKETS] = (uint16_t)index->count++;
}

void failure_index_init(struct failure_index *index)
{
	const struct failure_row *row;

	memset(index, 0, sizeof *index);
	memset(index->head, 0xff, sizeof index->head);
	for (size_t i = 0; (row = failure_row_at(i)); i++)
		if (row->source == FAILURE_LOG)
			add(index, row->pattern);
	add(index, FAILURE_TRACEBACK);
}

static bool has_gram(const struct failure_index *index, uint32_t gram)
{
	uint32_t hash = hash_of(gram);

	return (index->present[hash / 64] >> hash % 64 & 1) != 0;
}

/* True if the line has one of the patterns with these rarest bytes. */
static bool has_pattern(const struct failure_index *index, uint32_t gram, struct failure_line line)
{
	uint32_t hash = hash_of(gram);

	for (uint16_t i = index->head[hash % BUCKETS]; i != NO_ROW; i = index->next[i])
		if (index->gram[i] == gram && failure_matches(index->pattern[i], false, line, NULL))
			return true;
	return false;
}

static bool has_any(const struct failure_index *index, struct failure_line line)
{
	uint32_t gram = 0;
	int looks = 0;

	for (size_t i = 0; i < line.len && looks < LOOKS_MAX; i++) {
		gram = gram << 8 | (unsigned char)failure_lower(line.text[i]);
		if (i + 1 < GRAM || !has_gram(index, gram))
			continue;
		if (has_pattern(index, gram, line))
			return true;
		looks++;
	}
	return false;
}

bool failure_bears(const struct failure_index *index, const struct failure_own *own,
		   struct failure_line line)
{
	struct failure_line ignored;

	line = failure_line_trim(line);
	for (size_t i = 0; own && i < own->count; i++)
		if (own->find(own->arg, i, line, &ignored))
			return true;
	return failure_is_raised(line) ||
	       (has_any(index, line) &&
		(failure_find(line, FAILURE_TRACEBACK) < line.len ||
		 failure_row_find(FAILURE_LOG, failure_witness(line), &ignored)));
}
