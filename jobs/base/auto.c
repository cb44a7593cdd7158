/* Cleanup functions for common types: see auto.h. */
#include "jobs/base/auto.h"

#include <stdlib.h>
#include <unistd.h>

void auto_free(void *pointer_to_pointer)
{
	void **pointer = pointer_to_pointer;

	free(*pointer);
	*pointer = NULL;
}

void auto_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void auto_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
	*file = NULL;
}

void auto_strv(char ***strings)
{
	if (!*strings)
		return;
	for (char **s = *strings; *s; s++)
		free(*s);
	free(*strings);
	*strings = NULL;
}

void auto_strv_add(char ***strings, size_t *count, const char *text)
{
	*strings = mem_grow(*strings, *count + 2, sizeof **strings);
	(*strings)[(*count)++] = mem_copy(text);
	(*strings)[*count] = NULL;
}
