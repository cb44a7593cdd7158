/* Stacks and the switch between them: see fiber.h. */
#include "tests/world/fiber.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tests/world/kernel_internal.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* Frames are several times as large. */
#define STACK_BYTES ((size_t)4 << 20)
#else
#define STACK_BYTES ((size_t)1 << 20)
#endif
#define GUARD_BYTES ((size_t)4096)

struct fiber {
	void (*fn)(void *arg);
	void *arg;
	char *stack; /* lowest usable byte */
	void *sp;    /* as saved by the switch */
	void *fake;  /* the sanitizer's fake stack */
	bool begun, leaving;
	struct fiber *next; /* unused ones */
};

static struct fiber *running, *unused;

/* To what the running fiber gives way: the stack of its fiber_run(). */
static struct {
	void *sp;
	const void *stack; /* as the sanitizer told it */
	size_t size;
} home;

/*
 * fiber_switch(save, to): saves the registers that a function has to keep, and the stack, and goes
 * on where `to` was saved. swapcontext() would make two system calls for the signal mask each time.
 */
#ifdef __x86_64__
void fiber_switch(void **save, void *to);

__asm__(".text\n"
	".p2align 4\n"
	".globl fiber_switch\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size fiber_switch, .-fiber_switch\n");

static void enter(void);

static void prepare_stack(struct fiber *fiber)
{
	uintptr_t *top = (uintptr_t *)(void *)(fiber->stack + STACK_BYTES);

	/* As after a call: the return address lies 8 below a multiple of 16. */
	top -= 2;
	*--top = 0;
	*--top = (uintptr_t)enter;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	fiber->sp = top;
}
#else
#include <ucontext.h>

static void enter(void);

static void fiber_switch(void **save, void *to)
{
	ucontext_t here;

	*save = &here;
	swapcontext(&here, to);
}

static void prepare_stack(struct fiber *fiber)
{
	/* Lies at the top of the stack that it describes; the stack proper begins below. */
	ucontext_t *first = (void *)(fiber->stack + STACK_BYTES - sizeof *first - 64);

	first = (void *)((uintptr_t)first & ~(uintptr_t)63);
	getcontext(first);
	first->uc_stack.ss_sp = fiber->stack;
	first->uc_stack.ss_size = (size_t)((char *)first - fiber->stack);
	first->uc_link = NULL;
	makecontext(first, enter, 0);
	fiber->sp = first;
}
#endif

/* ---- what the sanitizer has to know ---- */

static void announce_fiber(void **ret_fake, const struct fiber *to)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(ret_fake, to->stack, STACK_BYTES);
#else
	(void)ret_fake, (void)to;
#endif
}

/* `ret_fake` NULL: the fiber does not come back. */
static void announce_home(void **ret_fake)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(ret_fake, home.stack, home.size);
#else
	(void)ret_fake;
#endif
}

static void arrived_in_fiber(void *fake)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(fake, &home.stack, &home.size);
#else
	(void)fake;
#endif
}

static void arrived_home(void *fake)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
	(void)fake;
#endif
}

/* Frames that were left without a return have poisoned what lay between their variables. */
static void clean_stack(const struct fiber *fiber)
{
#ifdef WITH_ASAN
	__asan_unpoison_memory_region(fiber->stack, STACK_BYTES);
#else
	(void)fiber;
#endif
}

#ifdef WITH_ASAN
/* What a killed process had allocated is left. */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

/* ---- fibers ---- */

static void enter(void)
{
	struct fiber *fiber = running;

	arrived_in_fiber(NULL);
	fiber->fn(fiber->arg);
	world_broken("a fiber has returned");
}

static struct fiber *fiber_with_stack(void)
{
	struct fiber *fiber = unused;
	char *block;

	if (fiber) {
		unused = fiber->next;
		clean_stack(fiber);
		return fiber;
	}
	fiber = world_zero(sizeof *fiber);
	block = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (block == MAP_FAILED || mprotect(block, GUARD_BYTES, PROT_NONE) < 0)
		world_broken("there is no memory for another stack");
	fiber->stack = block + GUARD_BYTES;
	return fiber;
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
	struct fiber *fiber = fiber_with_stack();

	fiber->fn = fn;
	fiber->arg = arg;
	fiber->begun = fiber->leaving = false;
	fiber->fake = NULL;
	prepare_stack(fiber);
	return fiber;
}

static void give_back(struct fiber *fiber)
{
	fiber->next = unused;
	unused = fiber;
}

void fiber_run(struct fiber *fiber)
{
	struct fiber *outer = running;
	__typeof__(home) outer_home = home;
	int failed = errno;
	void *fake = NULL;

	fiber->begun = true;
	running = fiber;
	announce_fiber(&fake, fiber);
	fiber_switch(&home.sp, fiber->sp);
	arrived_home(fake);
	running = outer;
	home = outer_home;
	errno = failed;
	if (fiber->leaving)
		give_back(fiber);
}

void fiber_give_way(void)
{
	struct fiber *fiber = running;
	int failed = errno;

	announce_home(&fiber->fake);
	fiber_switch(&fiber->sp, home.sp);
	arrived_in_fiber(fiber->fake);
	errno = failed;
	if (fiber->leaving)
		fiber_leave();
}

_Noreturn void fiber_leave(void)
{
	struct fiber *fiber = running;

	fiber->leaving = true;
	announce_home(NULL);
	fiber_switch(&fiber->sp, home.sp);
	__builtin_unreachable();
}

void fiber_drop(struct fiber *fiber)
{
#ifdef WITH_ASAN
	/* It runs once more, only to have the sanitizer free its fake stack. */
	if (fiber->begun) {
		fiber->leaving = true;
		fiber_run(fiber);
		return;
	}
#endif
	give_back(fiber);
}
