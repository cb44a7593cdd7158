/* The pointer current.json: read, and written in place of what was read. See model.h. */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/model/model_internal.h"

int model_pointer_read(struct model *model, struct model_pointer *ret, struct err **err)
{
	AUTO(auto_free) char *what = model_file_url(model, MODEL_POINTER);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MODEL_POINTER_MAX + 1);
	int there = store_get(model->store, MODEL_POINTER, MODEL_POINTER_MAX, &text, ret->tag, err);

	if (there <= 0)
		return there;
	return model_pointer_parse(text.text, text.len, what, model->name, ret, err) < 0 ? -1 : 1;
}

int model_pointer_write(struct model *model, const struct model_pointer *was,
			const struct model_entry *entry, struct err **err)
{
	json_t *body = json_pack("{s:i}", "v", MODEL_FORMAT);
	AUTO(auto_free) char *url = model_entry_url(model, entry);
	AUTO(auto_free) char *text = NULL;

	js_put_str(body, "name", js_str(entry->body, "name"));
	js_put(body, "generation", json_integer(entry->generation));
	js_put_str(body, "digest", entry->digest);
	js_put_str(body, "run", js_str(entry->body, "run"));
	js_put_str(body, "model", url);
	js_put_str(body, "outputs", js_str(js_path(entry->body, "version.outputs"), "url"));
	js_put_str(body, "seen", js_str(js_path(entry->body, "version.data.seen"), "sha256"));
	text = model_seal(body);
	if (was->generation == 0)
		return store_put_if_absent(model->store, MODEL_POINTER, text, strlen(text), err);
	return store_replace_if_same(model->store, MODEL_POINTER, was->tag, text, strlen(text),
				     err);
}
