/*
 * The row of the kind `neuron`: the Neuron persistent cache of torch-neuronx.
 * Only kind.c needs it; the facts it rests on are told in neuron.c (the cache),
 * neuron_log.c (messages of one line) and neuron_summary.c (those of several).
 */
#ifndef STK_CACHE_NEURON_H
#define STK_CACHE_NEURON_H

#include "jobs/cache/kind.h"

extern const struct compile_kind neuron_kind;

#define NEURON_MODULE_MAX 64  /* bytes of a graph's name */
#define NEURON_PLACE_MAX  128 /* bytes of a version folder's name */

/* The length of `MODULE_<hex>+<8 hex>` at `text`; 0 if there is none. */
size_t neuron_module(const char *text, size_t len);
/* The first graph in a piece of text, as part of the name of a file of its own, and
 * its place if that stands right before it (else len 0). */
bool neuron_find_graph(const char *text, size_t len, struct words *ret_module,
		       struct words *ret_place);

/* neuron_log.c: as compile_kind.scan and .first_error. */
bool neuron_scan(const char *text, size_t len, size_t *at, struct graph_note *ret);
struct words neuron_first_error(const char *log, size_t len);

/* neuron_summary.c: the front-end's report of single graphs. */
extern const struct line_reader neuron_summary;

#endif
