/*
 * The words of an expression in jq's language: which names it uses, and where.
 *
 * jobs/spec/derive: values that follow from others. The expressions are read here only as far as
 * errors need it; libjq works them out, in a program of its own (jobs/derive).
 */
#ifndef STK_SPEC_DERIVE_EXPRESSION_H
#define STK_SPEC_DERIVE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#define EXPRESSION_DEPTH 256 /* brackets in brackets, and strings in them */

enum expression_kind {
	EXPRESSION_END,
	EXPRESSION_NAME,     /* a function or a keyword: no field (.env), no key ({env: 1}) */
	EXPRESSION_VARIABLE, /* $name; the word is "name" */
	EXPRESSION_TOO_DEEP,
};

struct expression_word {
	enum expression_kind kind;
	const char *text; /* in the expression, not terminated */
	size_t len;
	size_t at; /* of the first byte of the word, with its dollar sign */
};

/* A walk over the words. Start from { .text = … }. */
struct expression {
	const char *text;
	size_t pos;
	size_t depth;
	char open[EXPRESSION_DEPTH]; /* '(' '[' '{', or '"' for the parenthesis of "\(…)" */
	char last;                   /* last sign outside of words; '\0': the last was a word */
	size_t dollar;               /* place of the last dollar sign */
	bool in_string;
};

/* Returns the next word, as the lexer of jq 1.6 and 1.7 (lexer.l) finds it. */
struct expression_word expression_next(struct expression *expression);

/* Returns the reason for which a function or ("$ENV") a variable is refused, to follow "'env' ";
 * NULL: it is not. */
const char *expression_refusal(const struct expression_word *word);

#endif
