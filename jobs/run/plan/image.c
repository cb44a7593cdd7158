/* The image of a plan's jobs: from its tag to the digest that the graph key holds. See plan.h. */
#include "aws/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"
#include "aws/http/patience.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/engine/engine.h"
#include "jobs/run/plan/plan.h"

/* A run waits for a slow service; a command that only looks does not wait for long. */
#define RUN_WAIT_MS  30000
#define READ_WAIT_MS 10000
#define MOVE_WAIT_MS 5000

static void enter_digest(json_t *image, const char *digest)
{
	AUTO(auto_free) char *pinned = NULL;
	const char *reference = js_str(image, "reference");

	/* A reference with a digest is taken as it is. */
	pinned = image_digest(reference) ? mem_copy(reference) : image_pinned(reference, digest);
	js_put_str(image, "digest", digest);
	js_put_str(image, "pinned", pinned);
}

static bool is_mark(const char *digest)
{
	return strcmp(digest, ENGINE_NO_DIGEST) == 0;
}

bool image_plan_name(json_t *plan)
{
	const char *reference = json_string_value(js_path(plan, "spec.image")), *digest;
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));
	json_t *image;

	if (!engine || !engine->in_image || !reference)
		return false;
	image = json_object();
	js_put_str(image, "reference", reference);
	digest = image_digest(reference);
	if (digest && image_is_digest(digest))
		enter_digest(image, digest);
	js_put(plan, "image", image);
	return true;
}

void image_plan_compute_key(json_t *plan)
{
	const json_t *image = json_object_get(plan, "image");
	json_t *compile = json_object_get(plan, "compile");
	json_t *ingredients = json_object_get(compile, "ingredients");
	const char *digest = js_str(image, "digest");
	char key[SHA256_HEX];

	if (!compile || (image && !digest))
		return;
	if (image)
		js_put_str(ingredients, "image", digest);
	graph_key_of(ingredients, key);
	js_put_str(compile, "graph_key", image && is_mark(digest) ? ENGINE_NO_KEY : key);
}

void image_plan_left_out(json_t *identity)
{
	json_t *compile, *ingredients;

	if (!json_object_get(identity, "image"))
		return;
	json_object_del(identity, "image");
	if (!json_object_get(identity, "compile"))
		return;
	compile = json_copy(json_object_get(identity, "compile"));
	ingredients = json_copy(json_object_get(compile, "ingredients"));
	json_object_del(ingredients, "image");
	json_object_del(compile, "graph_key");
	js_put(compile, "ingredients", ingredients);
	js_put(identity, "compile", compile);
}

/* True if a command that only looks could ask nobody, so that the failure says nothing of the
 * image. */
static bool is_unasked(const struct err *why)
{
	AUTO(credentials_release) struct credentials keys = { 0 };
	AUTO(err_freep) struct err *none = NULL;

	return patience_is_limited() &&
	       (why->code == EXIT_UNREACHABLE || credentials_get(&keys, &none) < 0);
}

static int resolve_tag(json_t *plan, int64_t wait_limit_ms, struct err **err)
{
	json_t *image = json_object_get(plan, "image");
	const char *reference = js_str(image, "reference");
	char digest[IMAGE_DIGEST];

	if (!image || js_str(image, "digest"))
		return 0;
	if (image_resolve(reference, wait_limit_ms, digest, err) < 0) {
		AUTO(auto_free) char *name = image_pinned(reference, IMAGE_DIGEST_PREFIX "…");
		AUTO(auto_free) char *hint = (*err)->hint ? mem_copy((*err)->hint) : NULL;

		if (is_unasked(*err))
			js_put(image, "unasked", json_true());
		err_wrap(err, "cannot resolve image '%.300s' to its digest", reference);
		err_code(err, EXIT_REFUSED);
		err_field(err, "image");
		return err_hint(err, "name the digest in the spec: image: %.300s%s%s", name,
				hint ? "; or " : "", hint ? hint : "");
	}
	enter_digest(image, digest);
	image_plan_compute_key(plan);
	return 0;
}

/* Takes from the image's ENV the variables that steer the compiler, and nothing else. A run goes on
 * without them: a variable is then not known to be set by the image, and is withheld. */
static void learn_env(json_t *plan)
{
	const char *name = js_str(json_object_get(plan, "compile"), "kind"), *variable;
	const struct compile_kind *kind = name ? compile_kind_find(name) : NULL;
	json_t *image = json_object_get(plan, "image"), *steering, *value;
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *env = NULL;

	if (!kind || !toolkit_limits_has_agent(plan) || json_object_get(image, "env") ||
	    js_str(image, "env_unknown"))
		return;
	if (image_env(js_str(image, "reference"), js_str(image, "digest"), READ_WAIT_MS, &env,
		      &why) < 0) {
		js_put_str(image, "env_unknown", why->message);
		js_put_str(image, "env_hint", why->hint);
		return;
	}
	steering = json_object();
	json_object_foreach (env, variable, value)
		if (compile_kind_steers(kind, variable))
			json_object_set(steering, variable, value);
	js_put(image, "env", steering);
}

int image_plan_resolve(json_t *plan, struct err **err)
{
	/* No key needs the digest. A service may pull what this machine may not look at. */
	if (!json_object_get(plan, "compile")) {
		image_plan_try(plan);
		return 0;
	}
	if (resolve_tag(plan, RUN_WAIT_MS, err) < 0)
		return -1;
	if (json_object_get(plan, "image"))
		learn_env(plan);
	return 0;
}

void image_plan_try(json_t *plan)
{
	json_t *image = json_object_get(plan, "image");
	AUTO(err_freep) struct err *why = NULL;

	/* A plan that was made a moment ago may have tried in vain already. */
	if (js_str(image, "unknown") || resolve_tag(plan, READ_WAIT_MS, &why) == 0)
		return;
	js_put_str(image, "unknown", patience_reason(why));
	js_put_str(image, "hint", why->hint);
}

json_t *image_plan_marked(const json_t *plan)
{
	const json_t *image = json_object_get(plan, "image");
	json_t *ret;

	if (!json_is_true(json_object_get(image, "unasked")) ||
	    (!json_object_get(plan, "compile") && !patience_is_offline()))
		return json_incref((json_t *)(uintptr_t)plan);
	ret = json_deep_copy(plan);
	enter_digest(json_object_get(ret, "image"), ENGINE_NO_DIGEST);
	image_plan_compute_key(ret);
	return ret;
}

char *image_plan_moved(const json_t *plan)
{
	const json_t *image = json_object_get(plan, "image");
	const char *reference = js_str(image, "reference"), *digest = js_str(image, "digest");
	AUTO(err_freep) struct err *ignored = NULL;
	char now[IMAGE_DIGEST];

	if (!digest || image_digest(reference) ||
	    image_resolve(reference, MOVE_WAIT_MS, now, &ignored) < 0 || strcmp(now, digest) == 0)
		return NULL;
	return mem_copy(now);
}
