/* The best cell so far: see sweep_best.h. */
#include "cmd/sweep/sweep_best.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/compare/compare_runs.h"

/* The cell of a row, from the name by which its repeats are known: SWEEP/CELL. */
static size_t cell_of_row(const struct compare_sheet *sheet, size_t row)
{
	return strtoul(strrchr(sheet->runs[sheet->rows[row].first].cell, '/') + 1, NULL, 10);
}

int sweep_best_find(struct journal *journal, const json_t *record,
		    const struct measure_question *question, size_t *ret, struct err **err)
{
	AUTO(compare_runs_release) struct compare compare = { 0 };
	const struct compare_sheet *sheet = &compare.sheet;
	bool repeats = js_int(record, "repeat", 1) > 1;
	double best = 1;

	*ret = 0;
	if (compare_runs_add(&compare, journal, js_str(record, "sweep"), err) < 0 ||
	    compare_runs_make(&compare, journal, question, err) < 0)
		return -1;
	for (size_t i = 0; i < sheet->row_count; i++) {
		const struct comparison_row *row = &sheet->rows[i];

		if (repeats ? !row->is_best : !(row->same_quality && row->x > best))
			continue;
		best = row->x;
		*ret = cell_of_row(sheet, i);
	}
	return 0;
}
