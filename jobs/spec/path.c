/* Paths on the stack, as text: see path.h. */
#include "jobs/spec/path.h"

#include "jobs/base/sb.h"

static void add(struct sb *text, const struct path *path)
{
	if (path->up)
		add(text, path->up);
	if (!path->name)
		sb_addf(text, "[%zu]", path->index);
	else
		sb_addf(text, "%s%s", text->len > 0 ? "." : "", path->name);
}

char *path_text(const struct path *path)
{
	struct sb text = SB_INIT_MAX(1024);

	if (!path)
		return NULL;
	add(&text, path);
	return sb_take(&text);
}
