/*
 * libgit2, loaded when the first repository is opened. It depends on a dozen libraries for networks
 * and certificates that stoker never uses, and starting with them takes longer than most commands
 * do.
 *
 * The functions that git.c uses: lib.blob_free is git_blob_free, with its type.
 */
#ifndef STK_SOURCE_GIT_LIBRARY_H
#define STK_SOURCE_GIT_LIBRARY_H

#include <git2.h>

#include "jobs/base/err.h"

#define LIBGIT2_FUNCTIONS(FUNCTION)                                                                \
	FUNCTION(blob_free)                                                                        \
	FUNCTION(blob_lookup)                                                                      \
	FUNCTION(blob_rawcontent)                                                                  \
	FUNCTION(blob_rawsize)                                                                     \
	FUNCTION(buf_dispose)                                                                      \
	FUNCTION(config_free)                                                                      \
	FUNCTION(config_get_bool)                                                                  \
	FUNCTION(config_get_path)                                                                  \
	FUNCTION(diff_free)                                                                        \
	FUNCTION(diff_get_delta)                                                                   \
	FUNCTION(diff_num_deltas)                                                                  \
	FUNCTION(diff_options_init)                                                                \
	FUNCTION(diff_print)                                                                       \
	FUNCTION(diff_tree_to_index)                                                               \
	FUNCTION(diff_tree_to_workdir_with_index)                                                  \
	FUNCTION(error_last)                                                                       \
	FUNCTION(index_checksum)                                                                   \
	FUNCTION(index_entry_is_conflict)                                                          \
	FUNCTION(index_entrycount)                                                                 \
	FUNCTION(index_free)                                                                       \
	FUNCTION(index_get_byindex)                                                                \
	FUNCTION(index_path)                                                                       \
	FUNCTION(libgit2_init)                                                                     \
	FUNCTION(libgit2_opts)                                                                     \
	FUNCTION(libgit2_shutdown)                                                                 \
	FUNCTION(object_free)                                                                      \
	FUNCTION(object_id)                                                                        \
	FUNCTION(object_type)                                                                      \
	FUNCTION(odb_hash)                                                                         \
	FUNCTION(oid_tostr)                                                                        \
	FUNCTION(reference_name_to_id)                                                             \
	FUNCTION(repository_config_snapshot)                                                       \
	FUNCTION(repository_free)                                                                  \
	FUNCTION(repository_hashfile)                                                              \
	FUNCTION(repository_index)                                                                 \
	FUNCTION(repository_item_path)                                                             \
	FUNCTION(repository_open_ext)                                                              \
	FUNCTION(repository_workdir)                                                               \
	FUNCTION(revparse_single)                                                                  \
	FUNCTION(tree_entry_bypath)                                                                \
	FUNCTION(tree_entry_filemode)                                                              \
	FUNCTION(tree_entry_free)                                                                  \
	FUNCTION(tree_entry_id)                                                                    \
	FUNCTION(tree_entry_name)                                                                  \
	FUNCTION(tree_entry_type)                                                                  \
	FUNCTION(tree_id)                                                                          \
	FUNCTION(tree_free)                                                                        \
	FUNCTION(tree_walk)

struct git_library {
#define FUNCTION(name) __typeof__(&git_##name) name;
	LIBGIT2_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Empty until the library is loaded. */
extern struct git_library git_library;

/* Loads the library; once is enough. EXIT_REFUSED: not found on this machine. */
int git_library_load(struct err **err);

#endif
