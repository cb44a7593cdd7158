/* A comparison on stdout, in the form that the command line asks for. */
#ifndef STK_CMD_COMPARE_COMPARE_PRINT_H
#define STK_CMD_COMPARE_COMPARE_PRINT_H

#include "cmd/args/args.h"
#include "cmd/compare/compare_text.h"

/* EXIT_USAGE if more than one form is asked for. */
int compare_print_check(const struct args *args, struct err **err);

/* Prints the rows, the break-even point if it is asked for, and as notes the rules. */
void compare_print(const struct compare_sheet *sheet, const struct args *args);

#endif
