/*
 * Reading XML replies: the only user of expat. Replies of AWS have no attributes that matter, so
 * the reader is called for each element that holds text, with the names of the elements around
 * it.
 *
 * White space before the document is skipped. Nesting (32) and the length of a text (1 MiB) are
 * limited, a document type and entities beyond XML's own five are errors, so memory use is
 * bounded.
 */
#ifndef STK_AWS_XML_H
#define STK_AWS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Called at the end of each element: `path` from the root on ("ListBucketResult/Contents/Key"),
 * `text` directly inside it, not trimmed. Both are valid until it returns. Returning false stops,
 * which is an error. */
typedef bool (*xml_fn)(void *arg, const char *path, const char *text, size_t len);

/* Returns -1 if the text is not XML, is cut off, exceeds a limit or was stopped
 * (EXIT_UNREACHABLE: the service's reply is of no use; `what` names it in the error, which holds
 * no excerpt). */
int xml_parse(const void *bytes, size_t len, const char *what, xml_fn fn, void *arg,
	      struct err **err);

/* Reads the whole document: an element with elements in it becomes an object of them, or an array
 * if all have one name and are several, or are called "item" or "member", as in lists of AWS's
 * replies; any other its text, even where a list would be empty. Returns 0 with the root's value, a
 * new reference. */
int xml_tree(const void *bytes, size_t len, const char *what, json_t **ret, struct err **err);

/* Appends the text with & < > " ' escaped, for requests. */
struct sb;
void xml_escape(struct sb *ret, const char *text);

#endif
