/*
 * What Neuron's tools print, read without trust: pure. They are programs of the image, of
 * any age; members and columns that are not known are passed over, and what cannot be
 * made sense of is an error, never a figure.
 *
 * Sources: AWS Neuron SDK documentation, tools/neuron-sys-tools (neuron-ls.rst,
 * nccom-test.rst).
 */
#ifndef STK_NODE_HEALTH_PARSE_H
#define STK_NODE_HEALTH_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"

/* What `neuron-ls -j` shows: an array, one object a device. */
struct neuron_ls {
	int devices;
	int cores;         /* of all of them, as they are used (logical ones); 0: not told */
	json_t *processes; /* [{"device","pid","command"}…] that have a device open */
};

void neuron_ls_release(struct neuron_ls *ls); /* for AUTO(); { 0 } is fine */
int neuron_ls_parse(const char *text, size_t len, struct neuron_ls *ret, struct err **err);

/* One line of an nccom-test: that of the largest message. */
struct nccom_row {
	double size;    /* bytes */
	double busbw;   /* GiB/s, which the tool calls GB/s */
	double time_us; /* of one operation; 0: not told */
};

/* The file of --report-to-json-file. */
int nccom_parse_json(const char *text, size_t len, struct nccom_row *ret, struct err **err);
/* The table, by the names of its columns, whichever there are and in whatever order; where a
 * tool prints no bus bandwidth a row, the average below the table stands for it. */
int nccom_parse_table(const char *text, size_t len, struct nccom_row *ret, struct err **err);

/* The line that says that the test failed, of bytes that need not end in NUL; yours to free.
 * NULL: none does. Its exit status is documented nowhere, so the words count too. */
char *nccom_failure(const char *text, size_t len);

#endif
