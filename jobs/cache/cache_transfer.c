/* The order in which a cache is copied: see cache_transfer.h. */
#include "jobs/cache/cache_transfer.h"

#include "jobs/base/text/text.h"
#include "jobs/cache/manifest/key_claim.h"

enum sync_stage cache_stage(void *arg, const char *key)
{
	const struct compile_kind *kind;

	(void)arg;
	if (text_starts(key, KEY_CLAIM_PREFIX))
		return SYNC_NOT;
	if (text_starts(key, LOCK_PREFIX))
		return SYNC_LAST;
	for (size_t i = 0; (kind = compile_kind_at(i)); i++) {
		struct entry_object object;

		if (!kind->object || !kind->object(key, &object))
			continue;
		if (object.role & ROLE_LOCK)
			return SYNC_NOT;
		return object.role & ROLE_MARKER ? SYNC_BEHIND_FOLDER : SYNC_AT_ONCE;
	}
	return SYNC_AT_ONCE;
}
