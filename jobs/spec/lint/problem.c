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

/* Returns room for one more at the end of the list. */
static struct problem *problems_grow(struct problems *all)
{
	if (all->count == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 8;
		all->list = mem_grow(all->list, all->cap, sizeof *all->list);
	}
	return &all->list[all->count++];
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
	problem = problems_grow(all);
	*problem = (struct problem){
		.file = mem_copy(at.set    ? "--set"
				 : at.file ? at.file
					   : to->file),
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

struct problem *problem_remark(struct reporter *to, struct mark at, const char *field,
			       const char *fmt, ...)
{
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(to, at, field, true, fmt, args);
	va_end(args);
	if (problem)
		problem->remark = true;
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

void problem_missing(struct problem *problem)
{
	if (problem)
		problem->missing = true;
}

static void problem_release(struct problem *problem)
{
	free(problem->file);
	free(problem->field);
	free(problem->message);
	free(problem->hint);
	free(problem->profiles);
}

struct ranked {
	int rank; /* of its file: the main one, another, --set */
	struct problem *problem;
};

static int rank_of(const struct problem *problem, const char *main)
{
	if (strcmp(problem->file, "--set") == 0)
		return 2;
	return strcmp(problem->file, main) != 0;
}

/* Orders by file, then by place; equal places keep their order. */
static int compare(const void *a, const void *b)
{
	const struct ranked *p = a, *q = b;
	const struct problem *x = p->problem, *y = q->problem;
	int files = p->rank != q->rank ? p->rank - q->rank : strcmp(x->file, y->file);

	if (files != 0)
		return files;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return (x < y) ? -1 : (x > y); /* both point into one array */
}

static bool same(const struct problem *a, const struct problem *b)
{
	return a->line == b->line && a->column == b->column && a->lint == b->lint &&
	       strcmp(a->file, b->file) == 0 && strcmp(a->message, b->message) == 0;
}

void problems_add_of(struct problems *all, const struct problem *problem, const char *profile)
{
	struct problem *known = NULL;

	for (size_t i = 0; i < all->count && !known; i++)
		known = same(&all->list[i], problem) ? &all->list[i] : NULL;
	if (known && known->profiles) {
		AUTO(auto_free) char *before = known->profiles;

		known->profiles = mem_format("%s, %s", before, profile);
	}
	if (known)
		return;
	known = problems_grow(all);
	*known = *problem;
	known->file = mem_copy(problem->file);
	known->field = problem->field ? mem_copy(problem->field) : NULL;
	known->message = mem_copy(problem->message);
	known->hint = problem->hint ? mem_copy(problem->hint) : NULL;
	known->profiles = profile ? mem_copy(profile) : NULL;
	all->errors += !problem->lint;
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

void problems_finish(struct problems *problems, const char *main)
{
	AUTO(auto_free) struct ranked *order = mem_grow(NULL, problems->count + 1, sizeof *order);
	struct problem *sorted = mem_grow(NULL, problems->count + 1, sizeof *sorted);
	size_t kept = 0, lint_room, listed_errors = 0;

	for (size_t i = 0; i < problems->count; i++) {
		order[i] = (struct ranked){ rank_of(&problems->list[i], main), &problems->list[i] };
		listed_errors += !problems->list[i].lint;
	}
	qsort(order, problems->count, sizeof *order, compare);
	lint_room = listed_errors < SPEC_PROBLEMS_MAX ? SPEC_PROBLEMS_MAX - listed_errors : 0;
	for (size_t i = 0; i < problems->count; i++) {
		struct problem *problem = order[i].problem;

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
	sb_addf(&text, ": %s%s",
		problem->remark ? "remark: "
		: problem->lint ? "warning: "
				: "",
		problem->message);
	if (problem->profiles)
		sb_addf(&text, " (with --use %s)", problem->profiles);
	return sb_take(&text);
}
