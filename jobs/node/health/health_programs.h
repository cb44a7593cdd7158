/* Small programs for the command's Python that a check-up runs (health_*.py beside this). */
#ifndef STK_NODE_HEALTH_HEALTH_PROGRAMS_H
#define STK_NODE_HEALTH_HEALTH_PROGRAMS_H

#include "jobs/base/embedded.h"

extern const struct embedded_file health_programs[];
extern const size_t health_program_count;

#endif
