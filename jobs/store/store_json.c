/* Objects of a store that hold one JSON value: see store_json.h. */
#include "jobs/store/store_json.h"

#include <string.h>

int store_json_get(struct store *store, const char *key, size_t max, json_t **ret,
		   char ret_tag[STORE_TAG], struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(max + 1);
	AUTO(err_freep) struct err *garbage = NULL;
	int there = store_get(store, key, max, &text, ret_tag, err);

	*ret = NULL;
	if (there > 0)
		(void)!js_parse(text.text, text.len, key, ret, &garbage);
	return there;
}

int store_json_put(struct store *store, const char *key, const json_t *value, struct err **err)
{
	AUTO(auto_free) char *text = js_line_exact(value);

	return store_put(store, key, text, strlen(text), err);
}

int store_json_replace(struct store *store, const char *key, const char *tag, const json_t *value,
		       struct err **err)
{
	AUTO(auto_free) char *text = js_line_exact(value);

	return tag ? store_replace_if_same(store, key, tag, text, strlen(text), err)
		   : store_put_if_absent(store, key, text, strlen(text), err);
}
