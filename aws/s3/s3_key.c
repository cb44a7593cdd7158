/* Keys that can be names of files, and parsing of S3 URLs. See s3.h. */
#include <ctype.h>
#include <string.h>

#include "aws/s3/s3.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"

/* True if the key has a control byte, which no intended name has. Right-to-left marks and the
 * like only mislead a reader: they are escaped when shown. */
static bool has_control(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] < 0x20 || key[i] == 0x7f)
			return true;
	return false;
}

const char *s3_key_unsafe(const char *key, size_t len)
{
	const char *end = key + len;

	if (len == 0)
		return "is empty";
	if (len > S3_KEY_MAX)
		return "is longer than 1024 bytes";
	if (key[0] == '/')
		return "begins with a slash";
	if (has_control(key, len))
		return "has a control byte";
	if (!text_is_utf8(key, len))
		return "is not UTF-8";
	if (end[-1] == '/')
		return "ends with a slash";
	for (const char *part = key; part <= end;) {
		const char *slash = memchr(part, '/', (size_t)(end - part));
		const char *stop = slash ? slash : end;
		const char *why = fs_name_unsafe(part, (size_t)(stop - part));

		if (why)
			return why;
		part = stop + 1;
	}
	return NULL;
}

static bool bucket_is_good(const char *bucket)
{
	size_t len = strlen(bucket);

	if (len < 3 || len > S3_BUCKET_MAX || !isalnum((unsigned char)bucket[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)bucket[i]) && !strchr(".-_", bucket[i]))
			return false;
	return strstr(bucket, "..") == NULL;
}

int s3_parse_url(const char *url, char **ret_bucket, char **ret_prefix, struct err **err)
{
	AUTO(auto_free) char *bucket = NULL;
	AUTO(auto_free) char *prefix = NULL;
	const char *rest = url;
	size_t len;

	if (text_starts(rest, "s3:"))
		rest += strlen("s3:");
	if (text_starts(rest, "//"))
		rest += strlen("//");
	len = strcspn(rest, "/");
	bucket = mem_copy_n(rest, len);
	prefix = mem_copy(rest[len] ? rest + len + 1 : "");
	len = strlen(prefix);
	while (len > 0 && prefix[len - 1] == '/')
		prefix[--len] = '\0';
	if (!bucket_is_good(bucket)) {
		err_set(err, EXIT_REFUSED, "'%s' names no bucket", url);
		return err_hint(err,
				"write s3://BUCKET/PREFIX, the bucket as S3 would have it: 3 to "
				"63 letters, digits, dots and hyphens");
	}
	if (len > S3_KEY_MAX / 2)
		return err_set(err, EXIT_REFUSED, "the prefix of '%s' leaves no room for keys",
			       url);
	*ret_bucket = TAKE(bucket);
	*ret_prefix = TAKE(prefix);
	return 0;
}
