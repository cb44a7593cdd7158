/* Transfers a checkpoint's files to a store and back. See remote.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/remote.h"
#include "jobs/store/sync.h"

/* A sync between one checkpoint's folder and its objects. A single file is one of many in a
 * folder, so both sides are then the folders of all checkpoints, and all but that file is left
 * alone. */
struct remote_transfer {
	struct store *local, *remote;
	const char *only; /* name of the single file; NULL: everything */
	const struct checkpoint_tree
		*tree; /* with `skip`: the files that it is about; may be NULL */
	unsigned char *skip;
	ckpt_copy_fn fn;
	void *arg;
	uint64_t total; /* bytes */
	size_t taken;   /* number of objects that another writer uploaded meanwhile */
	char *trouble;  /* the first object that did not arrive, and why; NULL: none */
};

static void remote_transfer_release(struct remote_transfer *transfer)
{
	store_freep(&transfer->local);
	store_freep(&transfer->remote);
	free(transfer->trouble);
}

static int remote_transfer_open(struct remote_transfer *transfer, const char *folder,
				const struct ckpt_root *root, const char *name, struct err **err)
{
	AUTO(auto_free) char *url = checkpoint_root_url(root, transfer->only ? "" : name);
	size_t len = strlen(url);

	while (len > 0 && url[len - 1] == '/')
		url[--len] = '\0';
	if (store_open(folder, &transfer->local, err) < 0)
		return -1;
	return store_open(url, &transfer->remote, err);
}

static enum sync_stage only_one(void *arg, const char *key)
{
	const struct remote_transfer *transfer = arg;
	const struct checkpoint_tree_file *file;

	if (transfer->only && strcmp(key, transfer->only) != 0)
		return SYNC_NOT;
	if (!transfer->skip)
		return SYNC_AT_ONCE;
	file = checkpoint_tree_find(transfer->tree, transfer->only ? "" : key);
	return file && !transfer->skip[file - transfer->tree->files] ? SYNC_AT_ONCE : SYNC_NOT;
}

static void note_taken(struct remote_transfer *transfer, const char *key)
{
	const struct checkpoint_tree_file *file =
		checkpoint_tree_find(transfer->tree, transfer->only ? "" : key);

	transfer->taken++;
	transfer->skip[file - transfer->tree->files] = PART_TAKEN;
}

static void note_trouble(void *arg, enum sync_fate fate, const char *key, uint64_t size,
			 const char *why)
{
	struct remote_transfer *transfer = arg;

	(void)size;
	if (why == sync_taken)
		note_taken(transfer, key);
	else if ((fate == SYNC_REFUSED || fate == SYNC_FAILED) && !transfer->trouble)
		transfer->trouble = mem_format("'%s' %s", key, why ? why : "did not arrive");
}

static bool report_progress(void *arg, const struct sync_sum *sum)
{
	const struct remote_transfer *transfer = arg;
	uint64_t done = sum->bytes[SYNC_SAME] + sum->bytes[SYNC_MOVED];

	return !transfer->fn || transfer->fn(transfer->arg, done, transfer->total);
}

static int pass(struct remote_transfer *transfer, bool up, const char *what, struct err **err)
{
	const struct sync_options options = {
		.only = transfer->only,
		.exclusive = transfer->skip != NULL,
		.stage = only_one,
		.on_object = note_trouble,
		.progress = report_progress,
		.arg = transfer,
	};
	struct store *from = up ? transfer->local : transfer->remote;
	struct store *to = up ? transfer->remote : transfer->local;
	struct sync_sum sum;

	if (sync_run(from, to, &options, &sum, err) < 0)
		return err_wrap(err, "cannot copy '%s'", what);
	if (sum.stopped)
		return err_set(err, EXIT_REFUSED, "copying '%s' was stopped", what);
	if (transfer->trouble)
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': %s", what, transfer->trouble);
	return 0;
}

/* Removes the objects that only an older checkpoint of that name had. */
static int clear_others(const struct ckpt_root *to, const char *name,
			const struct checkpoint_tree *tree, struct err **err)
{
	AUTO(remote_release) struct remote there = { 0 };

	if (remote_list(to, name, tree->single, &there, err) < 0)
		return -1;
	for (size_t i = 0; i < there.count; i++) {
		AUTO(auto_free) char *key = remote_key(to, name, there.items[i].path);

		if (!checkpoint_tree_find(tree, there.items[i].path) &&
		    store_delete(to->store, key, err) < 0)
			return -1;
	}
	return 0;
}

static int check_all(const struct ckpt_root *to, const char *name,
		     const struct checkpoint_tree *tree, struct err **err)
{
	AUTO(remote_release) struct remote now = { 0 };
	AUTO(auto_free) char *url = checkpoint_root_url(to, name);
	AUTO(auto_free) char *why = NULL;

	if (remote_list(to, name, tree->single, &now, err) < 0)
		return -1;
	why = remote_differs(&now, tree);
	return why ? err_set(err, EXIT_REFUSED, "cannot copy '%s' to '%s': %s", tree->path, url,
			     why)
		   : 0;
}

int checkpoint_remote_send_part(const struct ckpt_root *to, const struct ckpt *ckpt,
				const struct checkpoint_tree *tree, unsigned char *skip,
				ckpt_copy_fn fn, void *arg, struct err **err)
{
	AUTO(auto_free) char *above = fs_dirname(ckpt->path);
	AUTO(remote_transfer_release)
	struct remote_transfer transfer = {
		.only = tree->single ? ckpt->name : NULL,
		.tree = tree,
		.skip = skip,
		.fn = fn,
		.arg = arg,
		.total = tree->bytes,
	};

	if (remote_transfer_open(&transfer, tree->single ? above : ckpt->path, to, ckpt->name,
				 err) < 0)
		return -1;
	if (pass(&transfer, true, ckpt->path, err) < 0)
		return -1;
	return transfer.taken == 0;
}

int checkpoint_remote_send(const struct ckpt_root *to, const struct ckpt *ckpt,
			   const struct checkpoint_tree *tree, ckpt_copy_fn fn, void *arg,
			   struct err **err)
{
	AUTO(auto_free) char *above = fs_dirname(ckpt->path);
	AUTO(remote_transfer_release)
	struct remote_transfer transfer = {
		.only = tree->single ? ckpt->name : NULL,
		.fn = fn,
		.arg = arg,
		.total = tree->bytes,
	};

	if (clear_others(to, ckpt->name, tree, err) < 0 ||
	    remote_transfer_open(&transfer, tree->single ? above : ckpt->path, to, ckpt->name,
				 err) < 0 ||
	    pass(&transfer, true, ckpt->path, err) < 0)
		return -1;
	return check_all(to, ckpt->name, tree, err);
}

int checkpoint_remote_fetch(const struct ckpt_root *from, const char *name, bool single,
			    const char *folder, struct err **err)
{
	AUTO(auto_free) char *url = checkpoint_root_url(from, name);
	AUTO(remote_transfer_release)
	struct remote_transfer transfer = { .only = single ? name : NULL };

	if (remote_transfer_open(&transfer, folder, from, name, err) < 0)
		return -1;
	return pass(&transfer, false, url, err);
}
