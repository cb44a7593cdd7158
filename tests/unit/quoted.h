/* JSON as a test writes it: with ' for ", so that it can be read in C. */
#ifndef STK_TESTS_UNIT_QUOTED_H
#define STK_TESTS_UNIT_QUOTED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/text/js.h"

/* The text with its quotes; yours to free. */
static inline char *quoted(const char *text)
{
	char *copy = mem_copy(text);

	for (char *at = copy; *at; at++)
		if (*at == '\'')
			*at = '"';
	return copy;
}

/* Returns what the text says: a new reference. */
static inline json_t *quoted_json(const char *text)
{
	AUTO(auto_free) char *json = quoted(text);
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	if (js_parse(json, strlen(json), "a test's JSON", &value, &err) < 0)
		fail_msg("%s", err->message);
	return value;
}

#endif
