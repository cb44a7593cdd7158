/* compare: runs beside each other, by what was measured of them. */
#include "cmd/cmd.h"
#include "cmd/compare/compare_print.h"
#include "cmd/compare/compare_runs.h"

int cmd_compare(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(compare_runs_release) struct compare compare = { 0 };
	struct measure_question question;

	if (compare_print_check(args, err) < 0 || compare_runs_question(args, &question, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	for (int i = 0; i < args->operand_count; i++)
		if (compare_runs_add(&compare, journal, args->operands[i], err) < 0)
			return -1;
	if (compare_runs_make(&compare, journal, &question, err) < 0)
		return -1;
	if (args->given[OPT_BREAK_EVEN] && compare.sheet.row_count != 2) {
		err_set(err, EXIT_USAGE, "--break-even needs two rows, and these runs are %zu",
			compare.sheet.row_count);
		return err_hint(err, "name two runs whose settings differ");
	}
	compare.sheet.target = args->value[OPT_TO];
	compare_print(&compare.sheet, args);
	return EXIT_DONE;
}
