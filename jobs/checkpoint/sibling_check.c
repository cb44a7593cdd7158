/*
 * Compares a checkpoint with the older ones beside it, for what its format does not tell: the
 * same files, and for files of unknown format the same length. See candidate.h.
 *
 * Names are compared with their numbers (and long hexadecimal words) left out, and counted.
 * Only files that *all* of the older ones have are demanded, so a script that saves something
 * extra now and then loses one checkpoint by it at most. A shorter file counts as cut off if
 * its size is known to be constant (equal in two older ones), or if it has less than half of
 * the size.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/checkpoint/candidate.h"

#define HEX_WORD 8 /* a hexadecimal word of at least this length is an id */

struct shape {
	char *text; /* owned; a path with its numbers left out */
	const char *example;
	size_t count;
};

struct shapes {
	struct shape *items; /* sorted by text, each once */
	size_t count;
};

static void shapes_release(struct shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		free(shapes->items[i].text);
	free(shapes->items);
	*shapes = (struct shapes){ 0 };
}

static char *shape_of(const char *path)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	while (*path) {
		size_t hex = strspn(path, "0123456789abcdef");
		size_t digits = strspn(path, "0123456789");

		if (hex >= HEX_WORD || digits > 0) {
			sb_addc(&out, '#');
			path += hex >= HEX_WORD ? hex : digits;
		} else {
			sb_addc(&out, *path++);
		}
	}
	return sb_take(&out);
}

bool sibling_check_related(const char *name, const char *other)
{
	AUTO(auto_free) char *mine = shape_of(name);
	AUTO(auto_free) char *its = shape_of(other);

	return strcmp(mine, its) == 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct shape *)a)->text, ((const struct shape *)b)->text);
}

static void shapes_of(const struct checkpoint_tree *tree, struct shapes *ret)
{
	struct shape *items = mem_zero(tree->count + 1, sizeof *items);
	size_t kept = 0;

	for (size_t i = 0; i < tree->count; i++)
		items[i] = (struct shape){ shape_of(tree->files[i].path), tree->files[i].path, 1 };
	if (tree->count)
		qsort(items, tree->count, sizeof *items, by_text);
	for (size_t i = 0; i < tree->count; i++) {
		if (kept > 0 && strcmp(items[kept - 1].text, items[i].text) == 0) {
			items[kept - 1].count++;
			free(items[i].text);
		} else {
			items[kept++] = items[i];
		}
	}
	*ret = (struct shapes){ items, kept };
}

static size_t count_of(const struct shapes *shapes, const char *text)
{
	struct shape key = { .text = (char *)text };
	const struct shape *found =
		shapes->count ? bsearch(&key, shapes->items, shapes->count, sizeof key, by_text)
			      : NULL;

	return found ? found->count : 0;
}

static bool names_agree(struct checkpoint_check *check,
			const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	AUTO(shapes_release) struct shapes mine = { 0 };
	AUTO(shapes_release) struct shapes previous = { 0 };
	AUTO(shapes_release) struct shapes earlier = { 0 };

	shapes_of(check->tree, &mine);
	shapes_of(older[0], &previous);
	if (older_count > 1)
		shapes_of(older[1], &earlier);
	for (size_t i = 0; i < previous.count; i++) {
		const struct shape *shape = &previous.items[i];
		size_t want = shape->count, have = count_of(&mine, shape->text);

		if (older_count > 1) {
			size_t before = count_of(&earlier, shape->text);

			want = before < want ? before : want;
		}
		if (have < want)
			return checkpoint_check_fail(
				check,
				"files are missing: %zu like '%s', of which older "
				"checkpoints have %zu",
				have, shape->example, want);
	}
	return true;
}

static bool size_agrees(struct checkpoint_check *check, const struct checkpoint_tree_file *file,
			const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	const struct checkpoint_tree_file *previous = checkpoint_tree_find(older[0], file->path);
	const struct checkpoint_tree_file *earlier =
		older_count > 1 ? checkpoint_tree_find(older[1], file->path) : NULL;
	uint64_t least;

	if (!previous || (older_count > 1 && !earlier))
		return true;
	least = earlier && earlier->size < previous->size ? earlier->size : previous->size;
	if ((earlier && earlier->size == previous->size && file->size < least) ||
	    file->size < least / 2)
		return checkpoint_check_fail(
			check, "'%s' is cut off: %llu bytes, of which older ones have %llu",
			*file->path ? file->path : check->name, (unsigned long long)file->size,
			(unsigned long long)least);
	return true;
}

bool sibling_check_agree(struct checkpoint_check *check, const unsigned char *opaque,
			 const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	if (older_count == 0)
		return true;
	if (!names_agree(check, older, older_count))
		return false;
	for (size_t i = 0; i < check->tree->count; i++)
		if (opaque[i] && !size_agrees(check, &check->tree->files[i], older, older_count))
			return false;
	return true;
}

bool sibling_check_shorter(const struct checkpoint_tree *tree, const unsigned char *opaque,
			   const struct checkpoint_tree *older)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct checkpoint_tree_file *file = &tree->files[i], *before;

		if (!opaque[i])
			continue;
		before = checkpoint_tree_find(older, file->path);
		if (!before || file->size < before->size)
			return true;
	}
	return false;
}
