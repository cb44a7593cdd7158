/*
 * Names in the Neuron persistent cache, `neuronxcc-<version>+<build>/MODULE_<graph>+<flags>/…`, as
 * they stand in object keys and in log lines. The facts behind them are stated in neuron.c.
 */
#ifndef STK_CACHE_KINDS_NEURON_PATH_H
#define STK_CACHE_KINDS_NEURON_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/cache/kinds/compile_kind.h"

#define NEURON_PLACE_WORD "neuronxcc-" /* begins the name of a version folder */

#define NEURON_MODULE_MAX 64  /* bytes of a graph's name */
#define NEURON_PLACE_MAX  128 /* bytes of a version folder's name */

/* Finds the first graph in a piece of text, as part of the name of one of its files, and its place
 * if that stands right before it (else len 0). */
bool neuron_find_graph(const char *text, size_t len, struct compile_kind_words *ret_module,
		       struct compile_kind_words *ret_place);

/* Returns the length of `MODULE_<hex>+<8 hex>` at `text`; 0 if not found. */
size_t neuron_module_len(const char *text, size_t len);
/* True for a version folder's name, `neuronxcc-<version>+<build>`. */
bool neuron_is_place(const char *text, size_t len);

#endif
