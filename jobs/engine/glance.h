/*
 * A glance at a reply of JSON without building anything: where the objects of a list stand in
 * its text, and which is which. For replies of hundreds of objects of which few are news; what
 * is to be read is parsed by jobs/base/json.h from its place.
 *
 * The text is outside text: what is not JSON is refused, or gives members that are not there;
 * nothing is read beyond its end, nesting is bounded.
 */
#ifndef STK_ENGINE_GLANCE_H
#define STK_ENGINE_GLANCE_H

#include <stdbool.h>
#include <stddef.h>

struct glance {
	const char *text; /* of a string: what is between the quotes, escapes as they are */
	size_t len;       /* 0 and NULL: it is not there */
};

struct glance_list {
	const char *at, *end; /* behind the object that was last */
};

/* The list that the object `text` has by that name. False: there is none. */
bool glance_list(const char *text, size_t len, const char *name, struct glance_list *ret);
/* Is the next object this one, a whole one, byte for byte? Then it is passed. */
bool glance_same(struct glance_list *list, struct glance object);
/* The next object: where it stands, and its own member of this name. False: no more, or what
 * follows is no object. */
bool glance_next(struct glance_list *list, const char *name, struct glance *ret_object,
		 struct glance *ret);
bool glance_is(struct glance value, const char *word);

#endif
