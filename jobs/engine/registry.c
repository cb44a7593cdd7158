/* Every engine of this version, once: see engine.h. A new one is a row here and
 * its own files. */
#include <string.h>

#include "jobs/engine/batch.h"
#include "jobs/engine/engine.h"
#include "jobs/engine/local.h"
#include "jobs/engine/sagemaker.h"

static const struct engine_ops *const engines[] = { &local_ops, &batch_ops, &sagemaker_ops };

const char *const engine_names[] = { "local", "batch", "sagemaker", NULL };

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; name && i < STK_LENGTH(engines); i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
