/* The files of configs/catalogue, as they are embedded in the binary: see instance.h. */
#ifndef STK_SPEC_MACHINES_CATALOGUE_H
#define STK_SPEC_MACHINES_CATALOGUE_H

#include "jobs/base/embedded.h"

extern const struct embedded_file catalogue_files[];
extern const size_t catalogue_file_count;

#endif
