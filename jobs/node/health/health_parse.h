/*
 * Parsers of what Neuron's tools print: pure, and without trust in the text. The tools are programs
 * of the image, of any age; unknown members and columns are passed over, and what makes no sense is
 * an error, never a figure.
 *
 * Sources: AWS Neuron SDK documentation, tools/neuron-sys-tools (neuron-ls.rst, nccom-test.rst).
 */
#ifndef STK_NODE_HEALTH_HEALTH_PARSE_H
#define STK_NODE_HEALTH_HEALTH_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Output of `neuron-ls -j`: an array, one object per device. */
struct neuron_ls {
	int devices;
	int cores;         /* cores of all devices, as they are used (logical ones); 0: not known */
	json_t *processes; /* processes that have a device open: [{"device","pid","command"}…] */
};

void health_neuron_ls_release(struct neuron_ls *ls); /* for AUTO(); { 0 } is fine */
int health_neuron_ls_parse(const char *text, size_t len, struct neuron_ls *ret, struct err **err);

/* Line of nccom-test for the largest message. */
struct nccom_row {
	double size;    /* bytes */
	double busbw;   /* GiB/s, which the tool calls GB/s */
	double time_us; /* time of one operation; 0: not known */
};

/* Parses the file of --report-to-json-file. */
int health_nccom_parse_json(const char *text, size_t len, struct nccom_row *ret, struct err **err);
/* Parses the table by the names of its columns, whichever there are and in whatever order. If the
 * tool prints no bus bandwidth per row, the average below the table stands for it. */
int health_nccom_parse_table(const char *text, size_t len, struct nccom_row *ret, struct err **err);

/* Returns the line that says that the test failed, NULL if there is none; the caller frees it.
 * `text` need not end in NUL. The tool's exit status is documented nowhere, so its words count
 * too. */
char *health_nccom_failure(const char *text, size_t len);

#endif
