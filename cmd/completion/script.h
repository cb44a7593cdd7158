/* The completion scripts of shells, from cmd/completion/; each has its shell's name. */
#ifndef STK_CMD_COMPLETION_SCRIPT_H
#define STK_CMD_COMPLETION_SCRIPT_H

#include "jobs/base/embedded.h"

extern const struct embedded_file script_files[];
extern const size_t script_file_count;

#endif
