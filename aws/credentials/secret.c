/* Wiping secrets: see secret.h. */
#include "aws/credentials/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

void secret_freep(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void secret_strv_freep(char ***texts)
{
	for (char **text = *texts; text && *text; text++)
		secret_freep(text);
	free(*texts);
	*texts = NULL;
}

static void wipe_strings(json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_string(value)) {
		/* The reference is ours, and nobody reads the value after this. */
		char *bytes = (char *)(uintptr_t)json_string_value(value);

		explicit_bzero(bytes, json_string_length(value));
	}
	json_object_foreach (value, key, member)
		wipe_strings(member);
	json_array_foreach (value, i, member)
		wipe_strings(member);
}

void secret_json_freep(json_t **value)
{
	if (*value)
		wipe_strings(*value);
	json_decref(*value);
	*value = NULL;
}

int secret_read(const char *path, size_t max, char **ret, struct err **err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	size_t size;
	ssize_t len;
	char *text;
	bool nul;

	*ret = NULL;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fs_error(err, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	if ((uint64_t)st.st_size > max) {
		err_set(err, EXIT_REFUSED, "'%s' is larger than %zu KiB", path, max >> 10);
		return err_hint(err, "check that the file is the right one");
	}
	/* Some spare room, in case the file grows right now. */
	size = (size_t)st.st_size + 4096;
	text = mem_zero(1, size + 1);
	len = fs_read_full(fd, text, size, -1);
	if (len < 0)
		fs_error(err, errno, "cannot read '%s'", path);
	nul = len > 0 && memchr(text, '\0', (size_t)len);
	if (nul) {
		err_set(err, EXIT_REFUSED, "'%s' holds a NUL byte", path);
		err_hint(err, "check that the file is the right one; the secret must be text");
	}
	if (len < 0 || nul) {
		explicit_bzero(text, size);
		free(text);
		return -1;
	}
	*ret = text;
	return 0;
}
