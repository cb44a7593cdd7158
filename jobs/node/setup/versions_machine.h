/* Versions that a machine has, whatever its command: of the drivers of accelerators, of the system.
 */
#ifndef STK_NODE_SETUP_VERSIONS_MACHINE_H
#define STK_NODE_SETUP_VERSIONS_MACHINE_H

#include "jobs/base/text/js.h"

/* Adds them to the object, from the files beneath `root` ("": those of this machine). A version
 * that is not there is left out. */
void versions_machine_add(json_t *versions, const char *root);

/* Puts a version into the object, escaped and cut to a length that a person can read; not if it is
 * empty. */
void versions_machine_put(json_t *versions, const char *name, const char *text, size_t len);

#endif
