/*
 * TensorBoard's event files, as its own writers make them: records in the framing of TFRecord
 * (tensorflow/core/lib/io/record_writer.h), each a serialised Event of
 * tensorflow/core/util/event.proto, of which four fields are needed:
 *
 *   record  u64 length, u32 masked CRC-32C of the length, the bytes, u32 masked CRC-32C of them;
 *           little-endian; masked: (crc >> 15 | crc << 17) + 0xa282ead8
 *   Event   1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary summary
 *   Summary 1 repeated Value; Value: 1 string tag, 2 float simple_value
 *
 * Values are in single precision: that is the field that every reader knows.
 */
#ifndef STK_SERIES_EVENT_FILE_H
#define STK_SERIES_EVENT_FILE_H

#include "jobs/base/clock.h"
#include "jobs/base/sb.h"

/* Appends the record with which a file begins. */
void event_file_begin(struct sb *ret, struct utc at);
/* Appends a value of a curve at a step. */
void event_file_scalar(struct sb *ret, struct utc at, int64_t step, const char *tag, double value);

#endif
