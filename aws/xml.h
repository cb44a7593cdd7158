/*
 * Reading XML replies: the one home of expat. What AWS sends has no attributes that
 * matter, so a reader is told each element that holds text, with the names of those
 * around it.
 *
 * Bounded: nesting and the length of one text are limited, entities beyond XML's own five
 * are errors, so nothing grows by itself.
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
/* Piece by piece, as it comes; the last piece may be empty. -1: it is no XML, or is cut
 * off (`what` names it in the error). */
int xml_feed(struct xml *xml, const void *bytes, size_t len, bool last, const char *what,
	     struct err **err);

/* The whole at once. */
int xml_parse(const void *bytes, size_t len, const char *what, xml_fn fn, void *arg,
	      struct err **err);

/* Append with & < > " ' escaped, for what we send. */
struct sb;
void xml_escape(struct sb *ret, const char *text);

#endif
