/* The words of usage lines: see words.h. */
#include "cmd/args/words.h"

#include <string.h>

#include "jobs/base/auto.h"

const struct word_row word_rows[] = {
#define WORD(name, source, help) { name, WORD_##source, help },
#include "cmd/args/words.def"
#undef WORD
};
const size_t word_row_count = STK_LENGTH(word_rows);

const struct word_row *word_next(const char **usage)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ=";

	while (**usage) {
		const char *word = *usage + strcspn(*usage, letters);
		size_t len = strspn(word, letters);

		*usage = word + len;
		for (size_t i = 0; len > 0 && i < word_row_count; i++)
			if (strlen(word_rows[i].name) == len &&
			    memcmp(word_rows[i].name, word, len) == 0)
				return &word_rows[i];
	}
	return NULL;
}
