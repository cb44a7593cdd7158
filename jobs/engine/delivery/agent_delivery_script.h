/* The shell scripts sent in a container's command, from this folder. */
#ifndef STK_ENGINE_DELIVERY_AGENT_DELIVERY_SCRIPT_H
#define STK_ENGINE_DELIVERY_AGENT_DELIVERY_SCRIPT_H

#include "jobs/base/embedded.h"

extern const struct embedded_file agent_delivery_scripts[];
extern const size_t agent_delivery_script_count;

#endif
