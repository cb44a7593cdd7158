/* The allocator: see mem.h. */
#include "jobs/base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

void *mem_alloc(size_t size)
{
	void *memory = malloc(size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

void *mem_zero(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

void *mem_grow(void *old, size_t count, size_t size)
{
	size_t total;
	void *memory;

	if (__builtin_mul_overflow(count, size, &total))
		abort();
	memory = realloc(old, total ? total : 1);
	if (!memory)
		abort();
	return memory;
}

void *mem_room(void *old, size_t count, size_t size)
{
	bool is_full = (count & (count - 1)) == 0;

	return is_full ? mem_grow(old, count ? 2 * count : 1, size) : old;
}

char *mem_copy_n(const char *text, size_t len)
{
	char *copy = mem_alloc(len + 1);

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *mem_copy(const char *text)
{
	return mem_copy_n(text, strlen(text));
}

char *mem_format(const char *fmt, ...)
{
	struct sb sb = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&sb, fmt, args);
	va_end(args);
	return sb_take(&sb);
}
