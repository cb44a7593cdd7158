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

/* Finds the rarest four bytes in a row of a pattern's literal text, and the literal around them. */
static void choose_gram(const char *pattern, struct failure_index_row *ret)
{
	const char *literal = pattern + (*pattern == '^'), *at = literal;
	size_t best = 0;
	uint32_t gram = 0;

	for (; *at; at++) {
		size_t sum = 0;

		if (*at == '*' || *at == '#') {
			literal = at + 1;
			continue;
		}
		gram = gram << 8 | (unsigned char)failure_lower(*at);
		if (at + 1 - literal < GRAM)
			continue;
		for (size_t i = 0; i < GRAM; i++)
			sum += rarity(failure_lower(at[-(ptrdiff_t)i]));
		if (ret->literal && sum <= best)
			continue;
		best = sum;
		ret->gram = gram;
		ret->literal = literal;
		ret->before = (size_t)(at + 1 - literal) - GRAM;
	}
	ret->len = ret->literal ? strcspn(ret->literal, "*#") : 0;
}

/* A test ensures that there is room, and that each pattern has four bytes in a row. */
static void add(struct failure_index *index, const char *pattern)
{
	struct failure_index_row *row = &index->rows[index->count];
	uint32_t hash;

	row->pattern = pattern;
	choose_gram(pattern, row);
	hash = hash_of(row->gram);
	index->present[hash / 64] |= UINT64_C(1) << hash % 64;
	row->next = index->head[hash % BUCKETS];
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

/* True if the line has the whole literal of which the rarest bytes begin at `at`. */
static bool has_literal(const struct failure_index_row *row, struct failure_line line, size_t at)
{
	return at >= row->before && at - row->before + row->len <= line.len &&
	       failure_is_alike(line.text + at - row->before, row->literal, row->len);
}

/* True if the line has one of the patterns with these rarest bytes, which begin at `at`. Each
 * whole look at the line is counted. */
static bool has_pattern(const struct failure_index *index, uint32_t gram, struct failure_line line,
			size_t at, int *looks)
{
	uint32_t hash = hash_of(gram);

	for (uint16_t i = index->head[hash % BUCKETS]; i != NO_ROW; i = index->rows[i].next) {
		const struct failure_index_row *row = &index->rows[i];

		if (row->gram != gram || !has_literal(row, line, at))
			continue;
		if (failure_matches(row->pattern, false, line, NULL))
			return true;
		++*looks;
	}
	return false;
}

static bool has_any(const struct failure_index *index, struct failure_line line)
{
	uint32_t gram = 0;
	int looks = 0;

	for (size_t i = 0; i < line.len && looks < LOOKS_MAX; i++) {
		gram = gram << 8 | (unsigned char)failure_lower(line.text[i]);
		if (i + 1 >= GRAM && has_gram(index, gram) &&
		    has_pattern(index, gram, line, i + 1 - GRAM, &looks))
			return true;
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
