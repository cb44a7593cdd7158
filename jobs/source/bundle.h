/* The list of pinned files, as the packer needs it, and the digest over it. */
#ifndef STK_SOURCE_BUNDLE_H
#define STK_SOURCE_BUNDLE_H

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/source/archive.h"
#include "jobs/source/source.h"

struct bundle {
	struct archive_member *members; /* by path; strings are borrowed from the pin */
	size_t count;
};

void bundle_init(struct bundle *ret, const struct source_pin *pin);
void bundle_release(struct bundle *bundle);

/* SHA-256 over a first line and, for each file in order of paths, mode, size, digest and path:
 * everything that is packed, and nothing else. */
void bundle_digest(const struct bundle *bundle, char hex[SHA256_HEX]);

/* True if the request names a commit instead of the work tree. */
bool source_is_commit(const struct source_request *request);

#endif
