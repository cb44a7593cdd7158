/*
 * The row of the kind `neuron`: the Neuron persistent cache of torch-neuronx. Only compile_kind.c
 * uses it; the facts it relies on are stated in neuron.c (the cache), neuron_log.c (messages of one
 * line) and neuron_summary.c (messages of several lines).
 */
#ifndef STK_CACHE_KINDS_NEURON_H
#define STK_CACHE_KINDS_NEURON_H

#include "jobs/cache/kinds/compile_kind.h"

extern const struct compile_kind neuron_kind;

/* neuron_log.c: as compile_kind.scan and .first_error. */
bool neuron_scan(const char *text, size_t len, size_t *at, struct graph_note *ret);
struct compile_kind_words neuron_first_error(const char *log, size_t len);

/* neuron_summary.c: the front-end's report of single graphs. */
extern const struct line_reader neuron_summary;

#endif
