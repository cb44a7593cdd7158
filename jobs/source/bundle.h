/* The digest of a pin, and what its bundle is packed from. */
#ifndef STK_SOURCE_BUNDLE_H
#define STK_SOURCE_BUNDLE_H

#include "jobs/base/hash.h"
#include "jobs/source/archive.h"
#include "jobs/source/source.h"

/* SHA-256 over a first line and, for each file in order of paths, mode, size, digest and path:
 * everything that is packed, and nothing else. */
void bundle_digest(const struct source_pin *pin, char hex[SHA256_HEX]);

/* True if the request names a commit instead of the work tree. */
bool source_is_commit(const struct source_request *request);

#endif
