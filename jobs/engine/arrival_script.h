/* The shell scripts that travel in a container's command, from this folder. */
#ifndef STK_ENGINE_ARRIVAL_SCRIPT_H
#define STK_ENGINE_ARRIVAL_SCRIPT_H

#include "jobs/base/embedded.h"

extern const struct embedded_file arrival_scripts[];
extern const size_t arrival_script_count;

#endif
