/* The starter specs of `stoker init`, from templates/, in order of file name. */
#ifndef STK_SPEC_TEMPLATE_H
#define STK_SPEC_TEMPLATE_H

#include "jobs/base/embedded.h"

extern const struct embedded_file template_files[];
extern const size_t template_file_count;

#endif
