/* Chooses the registry of an image, ECR or another: see image.h. */
#include "aws/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "aws/image/image_internal.h"

static int no_image(const char *reference, struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%.200s' names no image", reference);
	return err_hint(err, "write HOST/REPOSITORY:TAG or HOST/REPOSITORY@sha256:…");
}

bool image_in_ecr(const char *reference, char **ret_account, char **ret_region,
		  char **ret_repository)
{
	AUTO(image_name_release) struct image_name image = { 0 };
	AUTO(auto_free) char *named = mem_copy_n(reference, strcspn(reference, "@"));

	if (!image_name_parse(named, &image) ||
	    !image_ecr_host(image.host, ret_account, ret_region))
		return false;
	*ret_repository = TAKE(image.repository);
	return true;
}

/* Asks the registry that the image is in. */
static int read_image(const char *reference, int64_t timeout_ms,
		      const struct image_question *question, json_t **ret, struct err **err)
{
	AUTO(image_name_release) struct image_name image = { .timeout_ms = timeout_ms };
	AUTO(auto_free) char *named = mem_copy_n(reference, strcspn(reference, "@"));
	AUTO(auto_free) char *account = NULL;
	AUTO(auto_free) char *region = NULL;

	if (!image_name_parse(named, &image))
		return no_image(reference, err);
	if (image_ecr_host(image.host, &account, &region))
		return image_ecr_read(&image, account, region, question, ret, err);
	return image_registry_read(&image, question, ret, err);
}

int image_env(const char *reference, const char *digest, int64_t timeout_ms, json_t **ret,
	      struct err **err)
{
	const struct image_question question = { image_read_env, digest, NULL };

	return read_image(reference, timeout_ms, &question, ret, err);
}

int image_facts(const char *reference, const char *digest, const char *architecture,
		int64_t timeout_ms, json_t **ret, struct err **err)
{
	const struct image_question question = { image_read_facts, digest, architecture };

	return read_image(reference, timeout_ms, &question, ret, err);
}

int image_resolve(const char *reference, int64_t timeout_ms, char ret[IMAGE_DIGEST],
		  struct err **err)
{
	AUTO(image_name_release) struct image_name image = { .timeout_ms = timeout_ms };
	AUTO(auto_free) char *account = NULL;
	AUTO(auto_free) char *region = NULL;
	const char *given = image_digest(reference);

	if (given && !image_is_digest(given)) {
		err_set(err, EXIT_REFUSED, "invalid digest '%.80s'", given);
		return err_hint(err, "a digest is " IMAGE_DIGEST_PREFIX
				     " and 64 digits of hex in lower case");
	}
	if (given) {
		memcpy(ret, given, IMAGE_DIGEST);
		return 0;
	}
	if (!image_name_parse(reference, &image))
		return no_image(reference, err);
	if (image_ecr_host(image.host, &account, &region))
		return image_ecr_digest(&image, account, region, ret, err);
	return image_registry_digest(&image, ret, err);
}
