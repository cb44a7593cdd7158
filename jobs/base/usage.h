/*
 * Figures of what a node does while it trains, and their names, under which they stand beside the
 * metrics of a spec: all begin with USAGE_PREFIX, with which no metric of a spec may begin. Those
 * of the host are rows of usage.def; each device (a NeuronCore, or a GPU) has two of its own.
 */
#ifndef STK_BASE_USAGE_H
#define STK_BASE_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#define USAGE_PREFIX      "node/"
#define USAGE_NAME        48 /* bytes of the longest name, with its end */
#define USAGE_DEVICES_MAX 256

enum usage_figure {
#define USAGE(id, name, unit, help) USAGE_##id,
#include "jobs/base/usage.def"
#undef USAGE
	USAGE_FIGURES
};

/* Figures of devices: USAGE_DEVICE + 2 * index, how busy it is in %, and behind it, how full its
 * memory is in %. */
#define USAGE_DEVICE 32
#define USAGE_END    (USAGE_DEVICE + 2 * USAGE_DEVICES_MAX)

static inline size_t usage_busy(size_t device)
{
	return USAGE_DEVICE + 2 * device;
}

static inline size_t usage_full(size_t device)
{
	return USAGE_DEVICE + 2 * device + 1;
}

/* Writes the name of a figure; false if there is no such figure. */
bool usage_name(size_t figure, char ret[USAGE_NAME]);
/* Returns the figure of that name; SIZE_MAX: none. */
size_t usage_find(const char *name);
/* True for a name that only a figure of a node may have. */
bool usage_is_reserved(const char *name);

#endif
