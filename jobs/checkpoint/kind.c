/* The table of kinds: see kind.h. */
#include "jobs/checkpoint/kind.h"

#include <string.h>

static const struct ckpt_kind kind_auto = { .name = "auto", .named = checkpoint_name_any };

/* Order in which `auto` asks: markers that belong to one writer alone come first; `files` takes
 * the rest. */
static const struct ckpt_kind *const kinds[] = {
	&kind_orbax, &kind_megatron, &kind_deepspeed, &kind_nxd,
	&kind_hf,    &kind_dcp,      &kind_files,     &kind_auto,
};

const struct ckpt_kind *checkpoint_kind_find(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

const char *checkpoint_kind_name(const struct ckpt_kind *kind)
{
	return kind->name;
}

const struct ckpt_kind *kind_of(const struct ckpt_kind *kind, const struct checkpoint_check *check)
{
	if (kind->looks)
		return kind;
	for (size_t i = 0; i < STK_LENGTH(kinds) && !check->tree->single; i++)
		if (kinds[i]->looks && kinds[i]->looks(check))
			return kinds[i];
	return &kind_files;
}
