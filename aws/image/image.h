/*
 * Container images: the parts of a reference, and the digest that its tag now points to.
 *
 *   [HOST/]REPOSITORY[:TAG][@sha256:…]     no host: Docker Hub; no tag: latest
 *
 * The tag of a private registry of Amazon ECR (the host names account and region) is resolved by
 * ECR's own API, with the credentials of the chain: BatchGetImage, permitted to every user that
 * pulls the image, else DescribeImages. Any other registry is asked by the OCI distribution API,
 * over verified TLS and anonymously: with a token that it gives to everybody, never with a login.
 *
 * The digest is that of the object the tag names: an index, if the image is made for several
 * architectures. So NAME@DIGEST is pulled just as NAME:TAG is.
 *
 * Sources: ECR API reference; OCI distribution specification 1.1, "Pulling manifests";
 * distribution project, "Token Authentication Specification".
 *
 * aws/image: digest and environment of a container image, asked of ECR or of any registry.
 * Nothing here runs or pulls an image.
 */
#ifndef STK_AWS_IMAGE_IMAGE_H
#define STK_AWS_IMAGE_IMAGE_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

#define IMAGE_DIGEST_PREFIX "sha256:"
#define IMAGE_DIGEST        (7 + SHA256_HEX) /* with its NUL */

/* True if the text is a digest and nothing else. */
bool image_is_digest(const char *text);

/* Returns the digest in the reference itself, whatever its tag; NULL: none. Borrowed. It may be
 * malformed: check with image_is_digest(). */
const char *image_digest(const char *reference);

/* Returns the reference with this digest in place of its tag: "NAME@sha256:…". The caller frees
 * it. */
char *image_pinned(const char *reference, const char *digest);

/* True if the reference is of a private registry of Amazon ECR. The caller frees what is returned.
 */
bool image_in_ecr(const char *reference, char **ret_account, char **ret_region,
		  char **ret_repository);

/* Finds the digest: the one in the reference, or the registry's answer. EXIT_REFUSED if the
 * reference is malformed, the image is absent, or the caller may not see it; EXIT_UNREACHABLE if
 * no usable answer came within about `timeout_ms`. Waits as aws_perform() does (cancel_when).
 */
int image_resolve(const char *reference, int64_t timeout_ms, char ret[IMAGE_DIGEST],
		  struct err **err);

/* Returns the ENV of the image with this digest, from the config in its registry: {name: value},
 * a new object. For an index, the image for Linux on x86-64 counts. ECR is asked by BatchGetImage
 * and GetDownloadUrlForLayer, permitted to every user that pulls the image. Errors as for
 * image_resolve(). */
int image_env(const char *reference, const char *digest, int64_t timeout_ms, json_t **ret,
	      struct err **err);
/* The same of what machines of an architecture ("amd64", "arm64") pull: {"architectures": those
 * that the image is made for, "bytes": of the compressed layers, "layers": their number}; the
 * latter two are absent if it is not made for that one. */
int image_facts(const char *reference, const char *digest, const char *architecture,
		int64_t timeout_ms, json_t **ret, struct err **err);

#endif
