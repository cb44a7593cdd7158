/* Keys and URLs of what lies in a model folder: see model.h and model_internal.h. */
#include <inttypes.h>
#include <string.h>

#include "jobs/model/model_internal.h"

const char *model_url(const struct model *model)
{
	return store_url(model->store);
}

char *model_entry_key(int64_t generation)
{
	return mem_format(MODEL_ENTRIES "%" PRId64 ".json", generation);
}

char *model_files_prefix(const char *run)
{
	return mem_format(MODEL_VERSIONS "%s/model/", run);
}

char *model_list_key(const char *run, const char *sha256)
{
	return mem_format(MODEL_VERSIONS "%s/data/%s.jsonl", run, sha256);
}

char *model_file_url(const struct model *model, const char *file)
{
	return file ? mem_format("%s/%s", model_url(model), file) : NULL;
}

char *model_entry_url(const struct model *model, const struct model_entry *entry)
{
	return model_file_url(model, js_str(js_path(entry->body, "version.model"), "path"));
}

bool model_is_digest(const char *text)
{
	return text && strlen(text) == SHA256_HEX - 1 &&
	       strspn(text, "0123456789abcdef") == SHA256_HEX - 1;
}
