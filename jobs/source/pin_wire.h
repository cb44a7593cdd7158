/*
 * A pin, or the error in its place, as bytes: from the process that reads a repository to the
 * process that asked for it. Both run the same program, so the format is private.
 */
#ifndef STK_SOURCE_PIN_WIRE_H
#define STK_SOURCE_PIN_WIRE_H

#include "jobs/source/source.h"

void pin_encode(const struct source_pin *pin, struct sb *out);
void pin_encode_error(const struct err *err, struct sb *out);

/* Returns 0 with a new pin, or -1 with the error that was sent, or with EXIT_DEFECT for bytes that
 * are neither. */
int pin_decode(const char *bytes, size_t len, struct source_pin **ret, struct err **err);

#endif
