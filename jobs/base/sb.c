/* A growing string with a maximum: see sb.h. */
#include "jobs/base/sb.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char sb_empty[1] = "";

static void give_back(struct sb *sb)
{
	if (!sb->cap)
		return;
	if (sb->secret)
		explicit_bzero(sb->text, sb->cap);
	free(sb->text);
}

/* Makes room for `more` bytes and a NUL; returns how many of the bytes fit below max. */
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
