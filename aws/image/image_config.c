/* The ENV of an image, from its manifest and its config: see image.h. */
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

int image_read_env(const struct image_reader *reader, const char *digest, json_t **ret,
		   struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(IMAGE_TEXT_MAX);
	json_auto_t *config = NULL;
	char at[IMAGE_DIGEST];

	if (find_config(reader, digest, at, err) < 0 ||
	    reader->blob(reader->arg, at, &text, err) < 0 || check_bytes(&text, at, err) < 0 ||
	    parse(&text, "the config", &config, err) < 0)
		return -1;
	*ret = env_of(config);
	return 0;
}
