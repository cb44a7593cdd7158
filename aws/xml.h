/*
 * Reading XML replies: the one home of expat. What AWS sends has no attributes that
 * matter, so a reader is told each element that holds text, with the names of those
 * around it.
 *
 * White space before the document is passed over. Nesting (32) and the length of a text
 * (1 MiB) are limited, a document type and entities beyond XML's own five are errors, so
 * nothing grows by itself.
 */
#ifndef STK_AWS_XML_H
#define STK_AWS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

struct xml;

/* At the end of each element: `path` from the root on ("ListBucketResult/Contents/Key"),
 * `text` what stood directly in it, not trimmed. Both until it returns. False: stop, which
 * is an error. */
typedef bool (*xml_fn)(void *arg, const char *path, const char *text, size_t len);

struct xml *xml_new(xml_fn fn, void *arg);
void xml_freep(struct xml **xml); /* for AUTO() */
/* Piece by piece, as it comes; the last piece may be empty. -1, from then on always: it
 * is no XML, is cut off, passes a bound or was stopped (EXIT_UNREACHABLE: what a service
 * sent is of no use; `what` names it in the error, no excerpt of it does). */
int xml_feed(struct xml *xml, const void *bytes, size_t len, bool last, const char *what,
	     struct err **err);

/* The whole at once. */
int xml_parse(const void *bytes, size_t len, const char *what, xml_fn fn, void *arg,
	      struct err **err);

/* Append with & < > " ' escaped, for what we send. */
struct sb;
void xml_escape(struct sb *ret, const char *text);

#endif
