/* Regular expressions by PCRE2, bounded in time and memory: see regex.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "jobs/base/text/regex.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/text/pattern_text.h"
#include "jobs/base/text/text.h"

/* Limits per starting point: steps that PCRE2 may take, nesting depth, and memory (KiB). */
#define STEPS_MAX    100000u
#define DEPTH_MAX    10000u
#define HEAP_KIB_MAX 8192u
#define STACK_START  ((size_t)32 << 10)
#define STACK_MAX    ((size_t)1 << 20)

/* PCRE2 counts steps from zero at each starting point. So a long text is searched from this many
 * starting points at first, then from more at a time while that is quick, and the clock is checked
 * in between. */
#define STARTS_AT_FIRST ((size_t)128)
#define STARTS_MAX      ((size_t)4096)
#define QUICK_US        500
#define SEARCH_US_MAX   50000

/* Working memory of a search. */
struct scratch {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	size_t given_up;
};

struct regex {
	pcre2_code *code;
	size_t groups;
	/* A known text at the beginning of a match ends most searches without PCRE2, whose calls
	 * cost more than to look for that. */
	char prefix[PATTERN_TEXT_PREFIX];
	size_t prefix_len;
	struct scratch *scratch;
};

static int compile_failed(int cause, size_t offset, struct err **err)
{
	char words[256];

	if (pcre2_get_error_message(cause, (PCRE2_UCHAR *)words, sizeof words) < 0)
		snprintf(words, sizeof words, "PCRE2 error %d", cause);
	return err_set(err, EXIT_SPEC, "invalid regular expression: %s (at offset %zu)", words,
		       offset);
}

/* Set the limits and compile just in time; the latter only affects speed, so it may fail. */
static struct scratch *scratch_new(pcre2_code *code)
{
	struct scratch *scratch = mem_zero(1, sizeof *scratch);

	scratch->data = pcre2_match_data_create(REGEX_GROUPS_MAX + 1, NULL);
	scratch->context = pcre2_match_context_create(NULL);
	if (!scratch->data || !scratch->context)
		abort();
	pcre2_set_match_limit(scratch->context, STEPS_MAX);
	pcre2_set_depth_limit(scratch->context, DEPTH_MAX);
	pcre2_set_heap_limit(scratch->context, HEAP_KIB_MAX);
	if (pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0)
		scratch->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
	if (scratch->stack)
		pcre2_jit_stack_assign(scratch->context, NULL, scratch->stack);
	return scratch;
}

int regex_compile(const char *pattern, struct regex **ret, struct err **err)
{
	const uint32_t options = PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP |
				 PCRE2_USE_OFFSET_LIMIT;
	AUTO(regex_freep) struct regex *re = mem_zero(1, sizeof *re);
	size_t len = strlen(pattern), offset = 0;
	uint32_t groups = 0;
	int cause = 0;

	if (len > REGEX_PATTERN_MAX)
		return err_set(err, EXIT_SPEC,
			       "invalid regular expression: %zu bytes long, at most %d are allowed",
			       len, REGEX_PATTERN_MAX);
	re->code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &cause, &offset, NULL);
	if (!re->code)
		return compile_failed(cause, offset, err);
	pcre2_pattern_info(re->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (groups > REGEX_GROUPS_MAX) {
		err_set(err, EXIT_SPEC,
			"invalid regular expression: %u groups, at most %d are allowed", groups,
			REGEX_GROUPS_MAX);
		return err_hint(err, "write (?:...) for a group whose text is not needed");
	}
	re->groups = groups;
	re->prefix_len = pattern_text_prefix(pattern, re->prefix);
	re->scratch = scratch_new(re->code);
	*ret = TAKE(re);
	return 0;
}

void regex_freep(struct regex **re)
{
	if (!*re)
		return;
	if ((*re)->scratch) {
		pcre2_match_data_free((*re)->scratch->data);
		pcre2_match_context_free((*re)->scratch->context);
		pcre2_jit_stack_free((*re)->scratch->stack);
		free((*re)->scratch);
	}
	pcre2_code_free((*re)->code);
	free(*re);
	*re = NULL;
}

size_t regex_groups(const struct regex *re)
{
	return re->groups;
}

size_t regex_given_up(const struct regex *re)
{
	return re->scratch->given_up;
}

/* Search from the starting points `start` to `last`; returns PCRE2's return code. */
static int search_some(const struct regex *re, const char *text, size_t len, size_t start,
		       size_t last)
{
	struct scratch *s = re->scratch;
	PCRE2_SPTR bytes = (PCRE2_SPTR)text;
	int found;

	pcre2_set_offset_limit(s->context, last);
	found = pcre2_match(re->code, bytes, len, start, 0, s->data, s->context);
	/* JIT code has a small stack of its own; the interpreter may still find a match. */
	if (found == PCRE2_ERROR_JIT_STACKLIMIT)
		found = pcre2_match(re->code, bytes, len, start, PCRE2_NO_JIT, s->data, s->context);
	return found;
}

static int search(const struct regex *re, const char *text, size_t len, size_t start)
{
	size_t starts = STARTS_AT_FIRST;
	struct cpu began = { 0 }, before = { 0 };

	if (len - start > starts)
		began = before = clock_cpu_now();
	for (;;) {
		bool is_end = len - start <= starts;
		size_t last = is_end ? len : start + starts - 1;
		int found = search_some(re, text, len, start, last);
		struct cpu now;

		if (found != PCRE2_ERROR_NOMATCH || is_end)
			return found;
		now = clock_cpu_now();
		if (now.us - began.us > SEARCH_US_MAX)
			return PCRE2_ERROR_MATCHLIMIT;
		if (now.us - before.us < QUICK_US && starts < STARTS_MAX)
			starts *= 2;
		before = now;
		start = last + 1;
	}
}

bool regex_find(const struct regex *re, const char *text, size_t len, size_t start,
		struct regex_span spans[REGEX_GROUPS_MAX + 1])
{
	const PCRE2_SIZE *ends;
	int found;

	if (start > len)
		return false;
	if (re->prefix_len > 0) {
		const char *begin = memmem(text + start, len - start, re->prefix, re->prefix_len);

		if (!begin)
			return false;
		start = (size_t)(begin - text);
	}
	found = search(re, text, len, start);
	if (found < 0 && found != PCRE2_ERROR_NOMATCH)
		re->scratch->given_up++;
	if (found <= 0)
		return false;
	ends = pcre2_get_ovector_pointer(re->scratch->data);
	for (size_t i = 0; i <= re->groups; i++) {
		bool set = i < (size_t)found && ends[2 * i] != PCRE2_UNSET;

		spans[i] = set ? (struct regex_span){ ends[2 * i], ends[2 * i + 1], true }
			       : (struct regex_span){ 0 };
	}
	return true;
}

size_t regex_number(const struct regex *re, const char *text, size_t len, double *ret)
{
	struct regex_span spans[REGEX_GROUPS_MAX + 1]; /* written as far as there are groups */
	size_t size;

	if (re->groups == 0 || !regex_find(re, text, len, 0, spans) || !spans[1].set)
		return 0;
	size = text_float(text + spans[1].from, len - spans[1].from, ret);
	return size > 0 ? spans[1].from + size : 0;
}
