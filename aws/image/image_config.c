/* ENV, architectures and size of an image, from its manifest and its config: see image.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/image/image_internal.h"

#define HOPS 3 /* an index, a manifest; one more for an index of indexes */

/* Returns the index's manifest for machines with accelerators: all of them are x86-64. */
static const char *for_machines(const json_t *manifests)
{
	const json_t *row;
	size_t i;

	json_array_foreach (manifests, i, row) {
		const json_t *platform = json_object_get(row, "platform");

		if (js_is(platform, "os", "linux") && js_is(platform, "architecture", "amd64"))
			return js_str(row, "digest");
	}
	return NULL;
}

static int unreadable(struct err **err, const char *what)
{
	return err_set(err, EXIT_REFUSED, "unknown %s of the image", what);
}

static int parse(const struct sb *text, const char *what, json_t **ret, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;

	if (js_parse(text->text, text->len, what, ret, &why) < 0 || !json_is_object(*ret))
		return unreadable(err, what);
	return 0;
}

/* Finds the digest of the config. */
static int find_config(const struct image_reader *reader, const char *digest,
		       char ret[IMAGE_DIGEST], struct err **err)
{
	char at[IMAGE_DIGEST];

	memcpy(at, digest, IMAGE_DIGEST);
	for (int i = 0; i < HOPS; i++) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX(IMAGE_TEXT_MAX);
		json_auto_t *manifest = NULL;
		const char *config, *next;

		if (reader->manifest(reader->arg, at, &text, err) < 0 ||
		    parse(&text, "the manifest", &manifest, err) < 0)
			return -1;
		config = js_str(json_object_get(manifest, "config"), "digest");
		next = config ? config : for_machines(json_object_get(manifest, "manifests"));
		if (!next || !image_is_digest(next))
			return unreadable(err, "the manifest");
		memcpy(config ? ret : at, next, IMAGE_DIGEST);
		if (config)
			return 0;
	}
	return unreadable(err, "the index");
}

/* Compares the bytes with the digest: a blob may be served by any host. */
static int check_bytes(const struct sb *text, const char *digest, struct err **err)
{
	char hex[SHA256_HEX];

	hash_sha256_hex(text->text, text->len, hex);
	if (strcmp(hex, digest + strlen(IMAGE_DIGEST_PREFIX)) == 0)
		return 0;
	return err_set(err, EXIT_REFUSED, "the received config of the image is not '%s'", digest);
}

static json_t *env_of(const json_t *config)
{
	const json_t *rows = json_object_get(json_object_get(config, "config"), "Env"), *row;
	json_t *env = json_object();
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *text = json_string_value(row),
			   *equals = text ? strchr(text, '=') : NULL;
		AUTO(auto_free) char *name = NULL;

		if (!equals || equals == text)
			continue;
		name = mem_copy_n(text, (size_t)(equals - text));
		js_put_str(env, name, equals + 1);
	}
	return env;
}

/* Reads the config with this digest. */
static int read_config(const struct image_reader *reader, const char *digest, json_t **ret,
		       struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(IMAGE_TEXT_MAX);

	return reader->blob(reader->arg, digest, &text, err) < 0 ||
			       check_bytes(&text, digest, err) < 0 ||
			       parse(&text, "the config", ret, err) < 0
		       ? -1
		       : 0;
}

int image_read_env(const struct image_reader *reader, const struct image_question *question,
		   json_t **ret, struct err **err)
{
	json_auto_t *config = NULL;
	char at[IMAGE_DIGEST];

	if (find_config(reader, question->digest, at, err) < 0 ||
	    read_config(reader, at, &config, err) < 0)
		return -1;
	*ret = env_of(config);
	return 0;
}

/* ---- manifests and configurations ---- */

/* Adds the architectures of an index. Returns the digest of the manifest for one; NULL: there is
 * none. */
static const char *choose(const json_t *manifests, const char *architecture, json_t *ret_names)
{
	const char *chosen = NULL;
	const json_t *row;
	size_t i;

	json_array_foreach (manifests, i, row) {
		const json_t *platform = json_object_get(row, "platform");
		const char *name = js_str(platform, "architecture");

		if (!name || !js_is(platform, "os", "linux"))
			continue;
		json_array_append_new(ret_names, js_text(name, strlen(name)));
		if (!chosen && strcmp(name, architecture) == 0)
			chosen = js_str(row, "digest");
	}
	return chosen;
}

static void put_size(json_t *ret, const json_t *manifest)
{
	const json_t *layers = json_object_get(manifest, "layers"), *layer;
	int64_t bytes = 0;
	size_t i;

	json_array_foreach (layers, i, layer)
		bytes += js_int(layer, "size", 0);
	js_put(ret, "bytes", json_integer(bytes));
	js_put(ret, "layers", json_integer((json_int_t)i));
}

/* An image without an index is for the architecture that its config names. */
static int put_own(const struct image_reader *reader, const json_t *manifest, json_t *names,
		   struct err **err)
{
	const char *digest = js_str(json_object_get(manifest, "config"), "digest"), *name;
	json_auto_t *config = NULL;

	if (!digest || !image_is_digest(digest))
		return unreadable(err, "the manifest");
	if (read_config(reader, digest, &config, err) < 0)
		return -1;
	name = js_str(config, "architecture");
	if (name)
		json_array_append_new(names, js_text(name, strlen(name)));
	return 0;
}

int image_read_facts(const struct image_reader *reader, const struct image_question *question,
		     json_t **ret, struct err **err)
{
	json_auto_t *names = json_array(), *facts = json_object();
	char at[IMAGE_DIGEST];

	memcpy(at, question->digest, IMAGE_DIGEST);
	for (int i = 0; i < HOPS; i++) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX(IMAGE_TEXT_MAX);
		json_auto_t *manifest = NULL;
		const json_t *manifests;
		const char *next;

		if (reader->manifest(reader->arg, at, &text, err) < 0 ||
		    parse(&text, "the manifest", &manifest, err) < 0)
			return -1;
		manifests = json_object_get(manifest, "manifests");
		next = choose(manifests, question->architecture, names);
		if (!manifests) {
			put_size(facts, manifest);
			if (json_array_size(names) == 0 &&
			    put_own(reader, manifest, names, err) < 0)
				return -1;
		} else if (next && image_is_digest(next)) {
			memcpy(at, next, IMAGE_DIGEST);
			continue;
		}
		js_put(facts, "architectures", TAKE(names));
		*ret = TAKE(facts);
		return 0;
	}
	return unreadable(err, "the manifest");
}
