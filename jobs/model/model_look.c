/* A look at the objects that a verification has found named, and what it tells of them. See
 * model.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/model/model_internal.h"
#include "jobs/store/store_digest.h"

void model_objects_free(struct model_object *objects, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(objects[i].key);
	free(objects);
}

void model_verify_differs(struct model_verifying *v, const char *object, const char *why)
{
	if (json_object_get(v->told, object))
		return;
	json_object_set_new(v->told, object, json_true());
	v->ret->differences++;
	v->how->on_difference(v->how->arg, object, why);
}

void model_verify_unchecked(struct model_verifying *v, const char *object, const char *why)
{
	v->ret->unchecked++;
	v->how->on_unchecked(v->how->arg, object, why);
}

static int tell(struct model_verifying *v, const char *name, const struct model_object *object,
		struct store_digest *found, struct err **err)
{
	AUTO(auto_free) char *why = NULL;

	v->ret->objects++;
	v->ret->bytes += found->size;
	if (found->there < 0) {
		*err = TAKE(found->err);
		return err_wrap(err, "cannot verify '%s'", name);
	}
	if (found->there == 0)
		model_verify_differs(v, name, "it is missing");
	else if (found->size != object->size)
		model_verify_differs(v, name,
				     why = mem_format("it has %" PRIu64 " bytes, not %" PRIu64,
						      found->size, object->size));
	else if (strcmp(found->sha256, object->sha256) != 0)
		model_verify_differs(v, name, "it has another SHA-256");
	return 0;
}

int model_verify_objects(struct model_verifying *v, struct store *store,
			 const struct model_object *objects, size_t count, struct err **err)
{
	bool outside = store != v->model->store;
	AUTO(auto_free) struct store_digest *found = mem_zero(count + 1, sizeof *found);
	int result = 0;

	for (size_t i = 0; i < count; i++)
		found[i].key = objects[i].key;
	store_sha256_all(store, found, count);
	for (size_t i = 0; i < count; i++) {
		AUTO(auto_free)
		char *name = mem_format("%s%s%s", outside ? store_url(store) : "",
					outside ? "/" : "", objects[i].key);

		if (result == 0)
			result = tell(v, name, &objects[i], &found[i], err);
		err_freep(&found[i].err);
	}
	return result;
}
