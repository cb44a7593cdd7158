/* The parts of a reference to an image: see image.h and image_internal.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "aws/image/image_internal.h"
#include "jobs/base/text/text.h"

#define NAME_MAX_LEN 255 /* limit of a repository, longer than any host name */
#define TAG_MAX_LEN  128
#define HUB          "docker.io"

bool image_is_digest(const char *text)
{
	size_t prefix = strlen(IMAGE_DIGEST_PREFIX);

	return text_starts(text, IMAGE_DIGEST_PREFIX) && strlen(text) == IMAGE_DIGEST - 1 &&
	       strspn(text + prefix, "0123456789abcdef") == SHA256_HEX - 1;
}

const char *image_digest(const char *reference)
{
	const char *at = strchr(reference, '@');

	return at ? at + 1 : NULL;
}

/* Returns the offset of the tag's colon, or of the end. A colon before a slash is a port's. */
static size_t name_length(const char *reference)
{
	size_t len = strcspn(reference, "@");

	for (size_t i = len; i > 0 && reference[i - 1] != '/'; i--)
		if (reference[i - 1] == ':')
			return i - 1;
	return len;
}

char *image_pinned(const char *reference, const char *digest)
{
	return mem_format("%.*s@%s", (int)name_length(reference), reference, digest);
}

/* ---- parsing a reference ------------------------------------------------------------ */

void image_name_release(struct image_name *name)
{
	free(name->host);
	free(name->repository);
	free(name->tag);
}

static bool is_made_of(const char *text, const char *more, bool upper)
{
	for (; *text; text++)
		if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text) &&
		    !(upper && isupper((unsigned char)*text)) && !strchr(more, *text))
			return false;
	return true;
}

/* True if the first word must be a host. */
static bool is_host(const char *word, size_t len)
{
	return memchr(word, '.', len) || memchr(word, ':', len) ||
	       (len == strlen("localhost") && strncmp(word, "localhost", len) == 0);
}

static bool has_dots(const char *path)
{
	return strstr(path, "..") || strstr(path, "//") || strstr(path, "/.") || *path == '/' ||
	       path[strlen(path) - 1] == '/';
}

bool image_name_parse(const char *reference, struct image_name *ret)
{
	size_t len = name_length(reference), first = strcspn(reference, "/");
	const char *tag = reference[len] == ':' ? reference + len + 1 : "latest";
	const char *path = reference;

	if (first < len && is_host(reference, first)) {
		ret->host = mem_copy_n(reference, first);
		path = reference + first + 1;
		len -= first + 1;
	} else {
		ret->host = mem_copy(HUB);
	}
	if (strcmp(ret->host, "index." HUB) == 0) {
		free(ret->host);
		ret->host = mem_copy(HUB);
	}
	if (strcmp(ret->host, HUB) == 0 && !memchr(path, '/', len))
		ret->repository = mem_format("library/%.*s", (int)len, path);
	else
		ret->repository = mem_copy_n(path, len);
	ret->tag = mem_copy(tag);
	return *ret->host && len > 0 && strlen(ret->host) <= NAME_MAX_LEN &&
	       is_made_of(ret->host, ".-:[]", true) && strlen(ret->repository) <= NAME_MAX_LEN &&
	       is_made_of(ret->repository, "._-/", false) && !has_dots(ret->repository) &&
	       *ret->tag && strlen(ret->tag) <= TAG_MAX_LEN && is_made_of(ret->tag, "._-", true);
}

int image_absent(const struct image_name *image, struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%s' has no image '%.200s' with the tag '%s'", image->host,
		image->repository, image->tag);
	return err_hint(err, "correct 'image', or push it first");
}
