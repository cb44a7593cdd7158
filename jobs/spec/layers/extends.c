/* The files that a spec stands on: see layers.h. They are read once; a spec that is read again
 * (spec_with(), spec_stage()) has their texts. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/layers/layers.h"
#include "jobs/spec/yaml.h"

/* A file and those that extend it, up to the spec. */
struct extension {
	const struct extension *up; /* NULL: this is the spec */
	const char *file;           /* as problems name it */
	const char *folder;         /* relative to that of the spec; "" is the same */
	char *real;                 /* the file's real path; NULL: not known */
	int depth;                  /* 0: the spec */
};

struct extends_reader {
	struct binder *binder;
	size_t bytes; /* of all files */
	size_t room;  /* nodes that may still be made */
};

static struct node *tree_of(struct extends_reader *reader, const struct extension *extension,
			    struct node *tree);

char *extends_beside(const char *file, const char *path)
{
	AUTO(auto_free) char *folder = fs_dirname(file);

	if (path[0] == '/' || strcmp(folder, ".") == 0)
		return mem_copy(path);
	return fs_join(folder, path);
}

/* Returns "a.yaml extends b.yaml extends c.yaml". */
static char *chain_text(const struct extension *last, const char *file)
{
	AUTO(auto_free) char *up = last->up ? chain_text(last->up, last->file) : NULL;

	return mem_format("%s extends %s", up ? up : last->file, file);
}

static struct node *refuse(struct extends_reader *reader, const struct node *item, const char *hint,
			   const char *fmt, ...) STK_PRINTF(4, 5);
static struct node *refuse(struct extends_reader *reader, const struct node *item, const char *hint,
			   const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	problem_hint(problem_add(&reader->binder->reporter, item->at, "extends", false, fmt, args),
		     "%s", hint);
	va_end(args);
	return NULL;
}

/* True if the chain reads the file already. */
static bool is_above(const struct extension *extension, const char *file, const char *real)
{
	for (; extension; extension = extension->up)
		if (real && extension->real ? strcmp(extension->real, real) == 0
					    : strcmp(extension->file, file) == 0)
			return true;
	return false;
}

/* Returns the text of a file, which spec->files holds; NULL after a problem. */
static const char *text_of(struct extends_reader *reader, const struct node *item, const char *file,
			   const char *folder)
{
	json_t *files = reader->binder->spec->files, *row = json_object_get(files, file);
	struct reporter reporter = { file, reader->binder->reporter.problems };
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	AUTO(err_freep) struct err *err = NULL;
	size_t errors = reporter.problems->errors, skip;

	if (!row) {
		if (bytes_read(&reporter, file, "it", &text, &err) < 0) {
			if (errors == reporter.problems->errors)
				refuse(reader, item, "correct 'extends', or write the file",
				       "'%s': %s", file, err->message);
			return NULL;
		}
		if (bytes_check(&reporter, text.text, text.len, &skip) < 0)
			return NULL;
		row = json_object();
		js_put(row, "text", json_stringn(text.text, text.len));
		js_put_str(row, "folder", folder);
		js_put(files, file, row);
	}
	reader->bytes += json_string_length(json_object_get(row, "text"));
	if (reader->bytes > SPEC_BYTES_MAX) {
		refuse(reader, item,
		       "extend smaller files; move long lists into files of the source",
		       "the files of the spec are larger than 1 MiB in all");
		return NULL;
	}
	return js_str(row, "text");
}

/* Parses the text of a file, in which a mapping is wanted; NULL after a problem. */
static struct node *parse(struct binder *binder, const char *file, const char *text, size_t len)
{
	struct reporter reporter = { file, binder->reporter.problems };
	struct mark start = { .line = 1, .column = 1 };
	struct node *tree;

	if (spec_file_parse(binder->spec->arena, &reporter, text, len, &tree) < 0)
		return NULL;
	if (tree && tree->kind == NODE_MAP)
		return tree;
	problem_hint(problem_error(&reporter, tree ? tree->at : start, NULL,
				   tree && !node_is_null(tree)
					   ? "the file is not a mapping of fields, but %s"
					   : "the file is %s",
				   tree ? node_kind_text(tree) : "empty"),
		     "write fields of a spec into it, such as limits: {deadline: 8h}");
	return NULL;
}

/* Returns the folder of `path` as a file in `up` says it, relative to that of the spec. */
static char *folder_of(const char *up, const char *path)
{
	AUTO(auto_free) char *own = fs_dirname(path);

	if (strcmp(own, ".") == 0)
		return mem_copy(up);
	return own[0] == '/' || !*up ? mem_copy(own) : fs_join(up, own);
}

/* Returns the tree of the file at `path`, as the file `up` says it; NULL after a problem. */
static struct node *load_path(struct extends_reader *reader, const struct extension *up,
			      const struct node *item, const char *path)
{
	struct binder *binder = reader->binder;
	struct arena *arena = binder->spec->arena;
	AUTO(auto_free) char *beside = extends_beside(up->file, path);
	AUTO(auto_free) char *real = realpath(beside, NULL);
	AUTO(auto_free) char *chain = chain_text(up, beside);
	AUTO(auto_free) char *folder = folder_of(up->folder, path);
	struct extension extension = { .up = up,
				       .file = node_arena_text(arena, beside, strlen(beside)),
				       .folder = folder,
				       .real = real,
				       .depth = up->depth + 1 };
	const char *text;
	struct node *tree;

	if (is_above(up, beside, real))
		return refuse(reader, item, "remove one of the 'extends'",
			      "the files extend each other: %s", chain);
	if (extension.depth > EXTENDS_DEPTH_MAX)
		return refuse(reader, item, "extend fewer files in a row",
			      "more than %d files extend one another: %s", EXTENDS_DEPTH_MAX,
			      chain);
	text = text_of(reader, item, extension.file, folder);
	tree = text ? parse(binder, extension.file, text, strlen(text)) : NULL;
	if (!tree)
		return NULL;
	tree = node_copy(arena, tree, extension.file, NULL, &reader->room);
	if (!tree)
		return refuse(reader, item, "use fewer aliases",
			      "with its aliases the spec unfolds to more than 200000 values");
	return tree_of(reader, &extension, tree);
}

/* Returns the tree of one file that `up` extends; NULL after a problem. */
static struct node *load(struct extends_reader *reader, const struct extension *up,
			 const struct node *item)
{
	AUTO(auto_free) char *path = home_expand(reader->binder, item, "extends");

	if (!path)
		return NULL;
	if (strstr(path, "://") || strcmp(path, "-") == 0)
		return refuse(reader, item, "copy the file beside the spec",
			      "'extends' takes local files only");
	if (strchr(path, '$'))
		return refuse(reader, item, "write the path out; profiles choose between layers",
			      "variables do not expand in 'extends'");
	return load_path(reader, up, item, path);
}

/* Puts a file on those that it extends. */
static struct node *tree_of(struct extends_reader *reader, const struct extension *extension,
			    struct node *tree)
{
	struct arena *arena = reader->binder->spec->arena;
	const struct entry *entry = node_entry(tree, "extends");
	struct node *base = NULL;
	const struct node *items;
	bool failed = false;

	if (!entry)
		return tree;
	items = entry->value;
	if (node_is_null(items) || (items->kind != NODE_SCALAR && items->kind != NODE_LIST))
		return refuse(reader, items, "for example extends: base.yaml",
			      "'extends' must be a file or a list of files");
	if (items->kind == NODE_LIST && items->count > field_table[SPEC_EXTENDS].max_items)
		return refuse(reader, items, "extend a file that extends others",
			      "'extends' has more than %zu files",
			      field_table[SPEC_EXTENDS].max_items);
	for (size_t i = 0; i < (items->kind == NODE_LIST ? items->count : 1) && reader->room; i++) {
		const struct node *item =
			items->kind == NODE_LIST ? items->entries[i].value : items;
		struct node *one;

		if (items->kind != NODE_LIST && !*item->text)
			one = refuse(reader, item, "for example extends: base.yaml",
				     "'extends' must be the path of a file");
		else if (item->kind != NODE_SCALAR || node_is_null(item) || !*item->text)
			one = refuse(reader, item, "for example extends: [base.yaml]",
				     "'extends[%zu]' must be the path of a file", i);
		else
			one = load(reader, extension, item);
		failed = failed || !one;
		if (one)
			base = base ? merge_nodes(arena, FIELD_NONE, base, one, NULL_DROPS) : one;
	}
	tree = node_own(arena, tree);
	node_remove(tree, "extends");
	if (failed)
		return NULL;
	return base ? merge_nodes(arena, FIELD_NONE, base, tree, NULL_DROPS) : tree;
}

int extends_apply(struct binder *binder)
{
	struct spec *spec = binder->spec;
	AUTO(auto_free) char *real = realpath(spec->file, NULL);
	struct extension extension = { .file = spec->file, .folder = "", .real = real };
	struct extends_reader reader = { binder, spec->len, TREE_NODES_MAX };
	struct node *tree = tree_of(&reader, &extension, spec->tree);

	if (!tree)
		return -1;
	spec->tree = tree;
	return 0;
}
