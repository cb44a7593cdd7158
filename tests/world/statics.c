/*
 * The mutable statics of the boxes, and `environ`, `stderr` and errno, for each process. The boxes
 * are linked with .data and .bss renamed to world_data (CMakeLists.txt), so that the linker frames
 * them. What the sanitizers and the tables of constants add to these sections never changes; only
 * the symbols that differ from process to process would have to be copied, but the whole is small.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"

extern char world_data_start[] __asm__("__start_world_data") __attribute__((weak));
extern char world_data_end[] __asm__("__stop_world_data") __attribute__((weak));

static char *pristine;
static struct coroutine *owner; /* whose image is in place */
static struct statics host;     /* of the test program itself */

#if defined(__clang__)
#define UNCHECKED __attribute__((no_sanitize("address", "undefined"), noinline))
#else
#define UNCHECKED __attribute__((no_sanitize_address, no_sanitize_undefined, noinline))
#endif

static size_t size(void)
{
	return (size_t)(world_data_end - world_data_start);
}

/* memcpy() would be checked: between two statics lie bytes that nobody may touch. */
UNCHECKED static void copy(char *to, const char *from, size_t len)
{
	volatile uint64_t *to_words = (volatile uint64_t *)(void *)to;
	const uint64_t *from_words = (const uint64_t *)(const void *)from;
	size_t i = 0;

	for (; i < len / sizeof *from_words; i++)
		to_words[i] = from_words[i];
	for (i *= sizeof *from_words; i < len; i++)
		((volatile char *)to)[i] = from[i];
}

static char *image_of_now(void)
{
	char *image = malloc(size() + 1);

	if (!image)
		world_broken("there is no memory left");
	copy(image, world_data_start, size());
	return image;
}

static void save_image(struct coroutine *coroutine)
{
	if (!coroutine->statics.image)
		coroutine->statics.image = image_of_now();
	else
		copy(coroutine->statics.image, world_data_start, size());
}

void statics_enter(struct coroutine *coroutine)
{
	if (!pristine) {
		pristine = image_of_now();
		host.environ = environ;
		host.err = stderr;
	}
	if (owner != coroutine) {
		if (owner)
			save_image(owner);
		copy(world_data_start,
		     coroutine->statics.image ? coroutine->statics.image : pristine, size());
		owner = coroutine;
	}
	environ = coroutine->statics.environ;
	if (coroutine->statics.err)
		stderr = coroutine->statics.err;
}

void statics_leave(struct coroutine *coroutine)
{
	if (coroutine)
		coroutine->statics.environ = environ;
	environ = host.environ;
	stderr = host.err;
}

void statics_copy(struct statics *ret)
{
	*ret = (struct statics){ .image = image_of_now(), .environ = environ };
}

void statics_free(struct statics *statics)
{
	free(statics->image);
	statics->image = NULL;
}

void statics_forget(const struct coroutine *coroutine)
{
	if (owner == coroutine)
		owner = NULL;
}
