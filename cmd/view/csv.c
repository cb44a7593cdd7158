/* Comma-separated values: see csv.h. */
#include "cmd/view/csv.h"

#include <string.h>

void csv_add(struct sb *line, bool first, const char *text)
{
	bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';

	if (!first)
		sb_addc(line, ',');
	if (quoted)
		sb_addc(line, '"');
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			sb_addc(line, '"');
		sb_addc(line, *c);
	}
	if (quoted)
		sb_addc(line, '"');
}
