/* A growing string with a maximum, and the allocator under it: see sb.h, auto.h. */
#include "jobs/base/sb.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char sb_empty[1] = "";

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

static void give_back(struct sb *sb)
{
	if (!sb->cap)
		return;
	if (sb->secret)
		explicit_bzero(sb->text, sb->cap);
	free(sb->text);
}

/* Room for `more` bytes and a NUL; returns how many of them fit below max. */
static size_t reserve(struct sb *sb, size_t more)
{
	size_t room = sb->max > sb->len ? sb->max - sb->len : 0;
	size_t want;

	if (more > room) {
		more = room;
		sb->truncated = true;
	}
	want = sb->len + more + 1;
	if (want > sb->cap) {
		size_t cap = sb->cap ? sb->cap * 2 : 64;

		if (cap < want)
			cap = want;
		if (sb->secret) {
			char *moved = mem_alloc(cap);

			memcpy(moved, sb->text, sb->len);
			give_back(sb);
			sb->text = moved;
		} else {
			sb->text = mem_grow(sb->cap ? sb->text : NULL, cap, 1);
		}
		sb->cap = cap;
		sb->text[sb->len] = '\0';
	}
	return more;
}

void sb_add(struct sb *sb, const void *bytes, size_t len)
{
	if (len == 0)
		return;
	len = reserve(sb, len);
	memcpy(sb->text + sb->len, bytes, len);
	sb->len += len;
	sb->text[sb->len] = '\0';
}

void sb_adds(struct sb *sb, const char *text)
{
	sb_add(sb, text, strlen(text));
}

void sb_addc(struct sb *sb, char c)
{
	sb_add(sb, &c, 1);
}

void sb_addv(struct sb *sb, const char *fmt, va_list args)
{
	char small[256];
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(small, sizeof small, fmt, args);
	if (len >= 0 && (size_t)len < sizeof small) {
		sb_add(sb, small, (size_t)len);
	} else if (len >= 0) {
		char *big = mem_alloc((size_t)len + 1);

		vsnprintf(big, (size_t)len + 1, fmt, again);
		sb_add(sb, big, (size_t)len);
		free(big);
	}
	va_end(again);
}

void sb_addf(struct sb *sb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	sb_addv(sb, fmt, args);
	va_end(args);
}

void sb_drop(struct sb *sb, size_t len)
{
	if (len > sb->len)
		len = sb->len;
	if (len == 0)
		return;
	memmove(sb->text, sb->text + len, sb->len - len + 1);
	sb->len -= len;
}

void sb_clear(struct sb *sb)
{
	sb->len = 0;
	sb->truncated = false;
	if (sb->cap)
		sb->text[0] = '\0';
}

void sb_release(struct sb *sb)
{
	give_back(sb);
	*sb = (struct sb){ sb_empty, 0, 0, sb->max, false, sb->secret };
}

char *sb_take(struct sb *sb)
{
	char *text = sb->cap ? sb->text : mem_copy("");

	*sb = (struct sb){ sb_empty, 0, 0, sb->max, false, sb->secret };
	return text;
}
