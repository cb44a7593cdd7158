/*
 * Kinds of unquoted scalars, by the core schema of YAML 1.2 (section 10.3 of its specification):
 * only null, true and false are words with a meaning, so `no` is a text and 1_000 is one too.
 */
#ifndef STK_SPEC_FIELDS_SCALAR_H
#define STK_SPEC_FIELDS_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

enum scalar_kind {
	SCALAR_NULL, /* also the empty scalar */
	SCALAR_BOOL,
	SCALAR_INT,  /* 12, -3, 0o17, 0x1F */
	SCALAR_REAL, /* 1.5, 3e-4, .inf, .nan */
	SCALAR_TEXT,
};

enum scalar_kind scalar_kind(const char *text);

/* Reads an integer scalar; false if it does not fit in 64 bits. */
bool scalar_int(const char *text, int64_t *ret);
/* Returns the value of an integer or real scalar; infinities and NaN included. */
double scalar_real(const char *text);
bool scalar_true(const char *text); /* value of a boolean scalar */

/* True for a number with a leading zero: octal for some readers, decimal for others. */
bool scalar_is_octal_like(const char *text);
/* True for a number of JSON's grammar, so that it can be copied into JSON. */
bool scalar_is_json_number(const char *text);

#endif
