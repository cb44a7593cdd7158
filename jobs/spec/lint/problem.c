/* Problems of a spec, in file order and bounded: see problem.h. */
#include "jobs/spec/lint/problem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

/* Number collected before sorting; more are only counted. */
#define COLLECT_MAX (10 * (size_t)SPEC_PROBLEMS_MAX)

static char *format_v(const char *fmt, va_list args) STK_PRINTF(1, 0);
static char *format_v(const char *fmt, va_list args)
{
	struct sb text = SB_INIT;

	sb_addv(&text, fmt, args);
	return sb_take(&text);
}

struct problem *problem_add(struct reporter *to, struct mark at, const char *field, bool lint,
			    const char *fmt, va_list args)
{
	struct problems *all = to->problems;
	size_t of_kind = lint ? all->count - all->errors : all->errors;
	struct problem *problem;

	if (!lint)
		all->errors++;
	if (all->count >= 2 * COLLECT_MAX || of_kind >= COLLECT_MAX) {
		all->dropped++;
		return NULL;
	}
	if (all->count == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 8;
		all->list = mem_grow(all->list, all->cap, sizeof *all->list);
	}
	problem = &all->list[all->count++];
	*problem = (struct problem){
		.file = mem_copy(at.set ? "--set" : to->file),
		.line = at.set ? 0 : at.line,
		.column = at.set ? 0 : at.column,
		.field = field ? mem_copy(field) : NULL,
		.lint = lint,
	};
	problem->message = format_v(fmt, args);
	if (at.set) {
		char *plain = problem->message;

		problem->message = mem_format("%s: %s", at.set, plain);
		free(plain);
	}
	return problem;
}

struct problem *problem_error(struct reporter *to, struct mark at, const char *field,
			      const char *fmt, ...)
{
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(to, at, field, false, fmt, args);
	va_end(args);
	return problem;
}

struct problem *problem_lint(struct reporter *to, struct mark at, const char *field,
			     const char *fmt, ...)
{
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(to, at, field, true, fmt, args);
	va_end(args);
	return problem;
}

void problem_hint(struct problem *problem, const char *fmt, ...)
{
	va_list args;

	if (!problem)
		return;
	free(problem->hint);
	va_start(args, fmt);
	problem->hint = format_v(fmt, args);
	va_end(args);
}

static void problem_release(struct problem *problem)
{
	free(problem->file);
	free(problem->field);
	free(problem->message);
	free(problem->hint);
}

/* The file before overrides, then by place; equal places keep their order. */
static int compare(const void *a, const void *b)
{
	const struct problem *const *p = a, *const *q = b;
	bool p_set = strcmp((*p)->file, "--set") == 0, q_set = strcmp((*q)->file, "--set") == 0;

	if (p_set != q_set)
		return p_set - q_set;
	if ((*p)->line != (*q)->line)
		return (*p)->line < (*q)->line ? -1 : 1;
	if ((*p)->column != (*q)->column)
		return (*p)->column < (*q)->column ? -1 : 1;
	return (*p < *q) ? -1 : (*p > *q); /* both point into one array */
}

static bool same(const struct problem *a, const struct problem *b)
{
	return a->line == b->line && a->column == b->column && a->lint == b->lint &&
	       strcmp(a->file, b->file) == 0 && strcmp(a->message, b->message) == 0;
}

/* True if the same thing was said before at that place. Repetitions of one place lie in one
 * stretch of the sorted list, which is short in practice, so the search back is bounded. */
static bool repeated(const struct problem *kept, size_t count, const struct problem *problem)
{
	for (size_t back = 1; back <= 16 && back <= count; back++) {
		if (kept[count - back].line != problem->line)
			return false;
		if (same(&kept[count - back], problem))
			return true;
	}
	return false;
}

void problems_finish(struct problems *problems)
{
	AUTO(auto_free) struct problem **order = mem_grow(NULL, problems->count + 1, sizeof *order);
	struct problem *sorted = mem_grow(NULL, problems->count + 1, sizeof *sorted);
	size_t kept = 0, lint_room, listed_errors = 0;

	for (size_t i = 0; i < problems->count; i++) {
		order[i] = &problems->list[i];
		listed_errors += !problems->list[i].lint;
	}
	qsort(order, problems->count, sizeof *order, compare);
	lint_room = listed_errors < SPEC_PROBLEMS_MAX ? SPEC_PROBLEMS_MAX - listed_errors : 0;
	for (size_t i = 0; i < problems->count; i++) {
		struct problem *problem = order[i];

		if (repeated(sorted, kept, problem)) {
			problems->errors -= !problem->lint;
			problem_release(problem);
		} else if (kept >= SPEC_PROBLEMS_MAX || (problem->lint && lint_room == 0)) {
			problems->dropped++;
			problem_release(problem);
		} else {
			lint_room -= problem->lint;
			sorted[kept++] = *problem;
		}
	}
	free(problems->list);
	problems->list = sorted;
	problems->cap = problems->count + 1;
	problems->count = kept;
}

void problems_release(struct problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		problem_release(&problems->list[i]);
	free(problems->list);
	*problems = (struct problems){ 0 };
}

char *problem_format(const struct problem *problem)
{
	struct sb text = SB_INIT;

	sb_adds(&text, problem->file);
	if (problem->line > 0)
		sb_addf(&text, ":%d:%d", problem->line, problem->column);
	sb_addf(&text, ": %s%s", problem->lint ? "warning: " : "", problem->message);
	return sb_take(&text);
}
