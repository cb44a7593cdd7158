/*
 * Output of the tools that watch devices, read a line at a time: neuron-monitor's report (SDK
 * tools/neuron-sys-tools/neuron-monitor-user-guide.rst; one JSON object a line) and the rows that
 * `nvidia-smi --query-gpu=index,utilization.gpu,memory.used,memory.total
 * --format=csv,noheader,nounits` prints (nvidia-smi(1)). A tool leaves out a figure that it does
 * not know, or says "[N/A]".
 */
#ifndef STK_NODE_USAGE_USAGE_PARSE_H
#define STK_NODE_USAGE_USAGE_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/usage.h"

/* Sums of what the lines have told. */
struct usage_devices {
	struct usage_mean {
		double sum;
		size_t count;
	} busy[USAGE_DEVICES_MAX], full[USAGE_DEVICES_MAX]; /* in %, 0 to 100 */
	bool in_use_only; /* a core of Neuron that nobody uses is not told as idle */
};

/* Adds a report of neuron-monitor, whose devices are NeuronCores. Returns -1 if it is none. */
int usage_parse_neuron(const char *line, size_t len, struct usage_devices *ret);
/* Adds a row of nvidia-smi. Returns -1 if it is none. */
int usage_parse_nvidia(const char *line, size_t len, struct usage_devices *ret);

#endif
