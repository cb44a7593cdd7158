/* Checks that are the same for all kinds. See candidate.h. */
#include "jobs/checkpoint/candidate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/format.h"

#define POINTER_MAX 4096

char *checkpoint_pointer_text(const char *root, const struct ckpt_kind *kind)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;

	if (!kind->pointer)
		return NULL;
	path = fs_join(root, kind->pointer);
	if (checkpoint_tree_read(path, &tree, &ignored) <= 0 || !tree.single ||
	    checkpoint_tree_text(&tree, &tree.files[0], POINTER_MAX, &text) < 0)
		return NULL;
	while (text.len > 0 && strchr(" \r\n\t", text.text[text.len - 1]))
		text.text[--text.len] = '\0';
	return sb_take(&text);
}

/* `auto` takes a folder or file of no known kind for a checkpoint only if its name or a file in
 * it says so. */
static bool is_plausible(const struct checkpoint_tree *tree, const char *name)
{
	if (checkpoint_name_tells(name))
		return true;
	for (size_t i = 0; i < tree->count && !tree->single; i++)
		if (checkpoint_name_of_state(tree->files[i].path))
			return true;
	return false;
}

int candidate_read(const char *root, const char *name, const struct ckpt_kind *kind,
		   struct checkpoint_tree *ret_tree, struct ckpt *ret, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	AUTO(auto_free) char *pointer = NULL;
	struct checkpoint_check check = { .tree = ret_tree, .name = name };
	int there = checkpoint_tree_read(path, ret_tree, err);

	if (there <= 0)
		return there;
	*ret = (struct ckpt){ .kind = kind_of(kind, &check),
			      .files = ret_tree->count,
			      .bytes = ret_tree->bytes,
			      .saving_ms = checkpoint_tree_saving_ms(ret_tree) };
	if (!kind->named(name, !ret_tree->single, &ret->step))
		return 0;
	if (!kind->looks && ret->kind == &kind_files && !is_plausible(ret_tree, name))
		return 0;
	ret->name = mem_copy(name);
	ret->path = TAKE(path);
	pointer = checkpoint_pointer_text(root, ret->kind);
	checkpoint_tree_tag(ret_tree, pointer ? pointer : "", ret->tag);
	return 1;
}

/* For "a-00002-of-00007.x", checks that the shards before and after it are there; if this holds
 * for each shard, all are there. Some writers count from 0. */
static bool shard_has_siblings(struct checkpoint_check *check, const char *path)
{
	const char *of = strstr(path, "-of-"), *end, *begin = of;
	uint32_t numbers[PATTERN_NUMBERS];
	int width;

	while (of && begin > path && strchr("0123456789", begin[-1]))
		begin--;
	if (!of || of - begin < 5)
		return true;
	end = of + 4 + strspn(of + 4, "0123456789");
	{
		AUTO(auto_free) char *middle = mem_copy_n(begin, (size_t)(end - begin));

		if (!checkpoint_pattern_match("%-of-%", middle, numbers))
			return true;
	}
	width = (int)(of - begin);
	for (int step = -1; step <= 1; step += 2) {
		int64_t other = (int64_t)numbers[0] + step;
		AUTO(auto_free)
		char *sibling = mem_format("%.*s%0*" PRId64 "%s", (int)(begin - path), path, width,
					   other < 0 ? 0 : other, of);
		AUTO(auto_free)
		char *zeroth = mem_format("%.*s%0*d%s", (int)(begin - path), path, width, 0, of);

		if (other < 1 || other > numbers[1] || checkpoint_tree_find(check->tree, sibling))
			continue;
		if (other == numbers[1] && checkpoint_tree_find(check->tree, zeroth))
			continue;
		return checkpoint_check_fail(check, "'%s' is missing", sibling);
	}
	return true;
}

/* Checks that the files of an index of weights ({"weight_map": {name: file}}) lie beside it. */
static bool index_has_files(struct checkpoint_check *check, const char *path)
{
	static const char ending[] = ".index.json";
	size_t len = strlen(path), tail = sizeof ending - 1;
	const char *slash = strrchr(path, '/'), *weight;
	json_auto_t *index = NULL;
	json_t *map, *file;

	if (len < tail || strcmp(path + len - tail, ending) != 0)
		return true;
	index = checkpoint_check_json(check, path);
	map = json_object_get(index, "weight_map");
	if (!json_is_object(map))
		return true;
	json_object_foreach (map, weight, file) {
		AUTO(auto_free) char *beside = NULL;

		if (!json_is_string(file))
			return checkpoint_check_fail(check, "'%s' does not name files", path);
		beside = mem_format("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path,
				    json_string_value(file));
		if (!checkpoint_tree_find(check->tree, beside))
			return checkpoint_check_fail(check, "'%s' is missing, which '%s' names",
						     beside, path);
	}
	return true;
}

/* True if some part of the path is a name for unfinished files. */
static bool path_temporary(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");
		AUTO(auto_free) char *name = mem_copy_n(path, len);

		if (checkpoint_name_temporary(name))
			return true;
		if (path[len] == '\0')
			return false;
		path += len + 1;
	}
}

static bool names_are_final(struct checkpoint_check *check)
{
	const struct checkpoint_tree *tree = check->tree;

	if (tree->odd)
		return checkpoint_check_fail(check, "%s", tree->odd);
	if (tree->count == 0 || tree->bytes == 0)
		return checkpoint_check_fail(check, "'%s' holds nothing", check->name);
	for (size_t i = 0; i < tree->count; i++)
		if (path_temporary(tree->files[i].path))
			return checkpoint_check_fail(check, "'%s' is still being written",
						     tree->files[i].path);
	return true;
}

static bool names_are_sound(struct checkpoint_check *check)
{
	const struct checkpoint_tree *tree = check->tree;

	if (!names_are_final(check))
		return false;
	for (size_t i = 0; i < tree->count; i++) {
		const char *path = tree->files[i].path;

		if (!shard_has_siblings(check, path) || !index_has_files(check, path))
			return false;
	}
	return true;
}

static bool files_are_sound(struct checkpoint_check *check, unsigned char *opaque)
{
	for (size_t i = 0; i < check->tree->count; i++) {
		const struct checkpoint_tree_file *file = &check->tree->files[i];
		const char *path = *file->path ? file->path : check->name;
		AUTO(auto_close)
		int fd = file->remote ? -1 : checkpoint_tree_open(check->tree, file);
		AUTO(sb_release) struct sb why = SB_INIT;
		int whole;

		if (file->remote) {
			if (opaque)
				opaque[i] = file->opaque;
			continue;
		}
		if (fd < 0)
			return checkpoint_check_fail(check, "'%s' cannot be read: %s", path,
						     strerror(errno));
		whole = format_prove(fd, file->size, fs_basename(path), &why);
		if (whole < 0)
			return checkpoint_check_fail(check, "'%s' %s", path, why.text);
		if (opaque)
			opaque[i] = whole == 0;
	}
	return true;
}

bool candidate_part_sound(const struct checkpoint_tree *tree, struct ckpt *ckpt,
			  unsigned char *opaque)
{
	struct checkpoint_check check = { .tree = tree, .name = ckpt->name, .step = ckpt->step };
	bool sound = names_are_final(&check) && files_are_sound(&check, opaque);

	free(ckpt->why);
	ckpt->why = TAKE(check.why);
	return sound;
}

bool candidate_sound(const struct checkpoint_tree *tree, struct ckpt *ckpt, unsigned char *opaque)
{
	struct checkpoint_check check = { .tree = tree, .name = ckpt->name, .step = ckpt->step };
	bool sound = names_are_sound(&check) && ckpt->kind->prove(&check) &&
		     files_are_sound(&check, opaque);

	free(ckpt->why);
	ckpt->why = TAKE(check.why);
	ckpt->described = sound && check.described;
	return sound;
}

/* True if the pointer names this step or a later one. */
static bool pointer_agrees(struct checkpoint_check *check, const char *root,
			   const struct ckpt_kind *kind)
{
	AUTO(auto_free) char *text = checkpoint_pointer_text(root, kind);
	int64_t step;

	if (!kind->pointer)
		return true;
	if (!text)
		return checkpoint_check_fail(check, "'%s' is missing, which is written last",
					     kind->pointer);
	if (!checkpoint_name_any(text, true, &step))
		return checkpoint_check_fail(check, "'%s' names no step", kind->pointer);
	return step >= check->step ||
	       checkpoint_check_fail(check, "'%s' names step %" PRId64 " only", kind->pointer,
				     step);
}

/* True if something shows that all of it is there: a file that ends by its own format, or an older
 * sibling of which no file, where its format tells nothing, is longer. To agree with the sibling is
 * not enough: a file that was cut off in its second half does. */
static bool is_shown_whole(const struct checkpoint_tree *tree, const unsigned char *opaque,
			   const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	return older_count > 0 ? !sibling_check_shorter(tree, opaque, older[0])
			       : tree->single && !opaque[0];
}

bool candidate_prove(const char *root, const struct checkpoint_tree *tree, struct ckpt *ckpt,
		     const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	struct checkpoint_check check = { .tree = tree, .name = ckpt->name, .step = ckpt->step };
	AUTO(auto_free) unsigned char *opaque = mem_zero(tree->count + 1, 1);

	ckpt->complete = false;
	if (!candidate_sound(tree, ckpt, opaque))
		return false;
	ckpt->complete = pointer_agrees(&check, root, ckpt->kind) &&
			 sibling_check_agree(&check, opaque, older, older_count);
	ckpt->why = TAKE(check.why);
	ckpt->positively_verified =
		ckpt->complete && (ckpt->kind != &kind_files || ckpt->described ||
				   is_shown_whole(tree, opaque, older, older_count));
	return true;
}

void candidate_prove_part(const struct checkpoint_tree *tree, struct ckpt *ckpt,
			  const struct checkpoint_tree *const older[SIBLINGS], size_t older_count)
{
	struct checkpoint_check check = { .tree = tree, .name = ckpt->name, .step = ckpt->step };
	AUTO(auto_free) unsigned char *opaque = mem_zero(tree->count + 1, 1);

	ckpt->complete = candidate_part_sound(tree, ckpt, opaque);
	ckpt->positively_verified = ckpt->complete &&
				    is_shown_whole(tree, opaque, older, older_count) &&
				    sibling_check_agree(&check, opaque, older, older_count);
	free(check.why);
}
