/* All engines of this version: see engine.h. A new engine is a row here and its own files. */
#include <string.h>

#include "jobs/engine/batch/batch.h"
#include "jobs/engine/engine.h"
#include "jobs/engine/local/local.h"
#include "jobs/engine/sagemaker/sagemaker.h"

static const struct engine_ops *const engines[] = { &local_ops, &batch_ops, &sagemaker_ops };

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; name && i < STK_LENGTH(engines); i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
