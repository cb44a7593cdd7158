/*
 * Files of variables, as docker compose and the dotenv libraries read them (`stoker help env_file`
 * has the grammar for people):
 *
 *     # a comment
 *     NAME=value             # blanks around the value do not count, nor does ' #' and what follows
 *     export NAME=value
 *     NAME='as it is, $too'  # \' is a quote; lines may follow
 *     NAME="a\tb"            # \a \b \f \n \r \t \v \\ \" \' \$; others stay; lines may follow
 *
 * Nothing expands. Readers differ in what ${NAME} and $(command) mean, so both are refused where
 * one of those readers could expand them: outside of single quotes.
 *
 * Values may be secrets. Memory that held one is wiped, and no fault tells a part of the text.
 */
#ifndef STK_BASE_TEXT_DOTENV_H
#define STK_BASE_TEXT_DOTENV_H

/* Gets each variable in file order, with the line of its name (from 1). Name and value are borrowed
 * for the call. */
typedef void dotenv_fn(void *arg, const char *name, const char *value, int line);

struct dotenv_fault {
	int line;               /* from 1 */
	const char *why, *hint; /* constant texts */
};

/* Reads a whole file. -1 at its first fault; what stands before it has been given. */
int dotenv_read(const char *text, dotenv_fn *fn, void *arg, struct dotenv_fault *ret_fault);

#endif
