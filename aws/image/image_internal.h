/*
 * Interface between image.c, which chooses a registry, the registries (image_ecr.c,
 * image_registry.c), and what both use: references (image_name.c) and configs (image_config.c).
 * Internal to aws/image.
 */
#ifndef STK_AWS_IMAGE_IMAGE_INTERNAL_H
#define STK_AWS_IMAGE_IMAGE_INTERNAL_H

#include "aws/image/image.h"
#include "jobs/base/sb.h"

/* A reference with a tag; all texts are owned and of known characters. */
struct image_name {
	char *host; /* registry host; Docker Hub: "docker.io" */
	char *repository, *tag;
	int64_t timeout_ms;
};

/* Splits a reference without a digest. False if it is malformed; `ret` is released in any case. */
bool image_name_parse(const char *reference, struct image_name *ret);
void image_name_release(struct image_name *name); /* for AUTO() */

/* True if the host is a private registry of Amazon ECR. The caller frees account and region. */
bool image_ecr_host(const char *host, char **ret_account, char **ret_region);
int image_ecr_digest(const struct image_name *image, const char *account, const char *region,
		     char ret[IMAGE_DIGEST], struct err **err);
int image_registry_digest(const struct image_name *image, char ret[IMAGE_DIGEST], struct err **err);

/* Source of an image's manifests and blobs by digest; both functions append to `ret`. */
#define IMAGE_TEXT_MAX ((size_t)4 << 20)
struct image_reader {
	int (*manifest)(void *arg, const char *digest, struct sb *ret, struct err **err);
	int (*blob)(void *arg, const char *digest, struct sb *ret, struct err **err);
	void *arg;
};

/* A part of the image with a digest that is to be read. */
struct image_question {
	int (*read)(const struct image_reader *reader, const struct image_question *question,
		    json_t **ret, struct err **err);
	const char *digest, *architecture;
};

int image_read_env(const struct image_reader *reader, const struct image_question *question,
		   json_t **ret, struct err **err);
int image_read_facts(const struct image_reader *reader, const struct image_question *question,
		     json_t **ret, struct err **err);
int image_ecr_read(const struct image_name *image, const char *account, const char *region,
		   const struct image_question *question, json_t **ret, struct err **err);
int image_registry_read(const struct image_name *image, const struct image_question *question,
			json_t **ret, struct err **err);

/* Sets the error "there is no image …", in the same words for every registry. Returns -1. */
int image_absent(const struct image_name *image, struct err **err);

#endif
