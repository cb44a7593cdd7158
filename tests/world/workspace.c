/* The workspace as the world sees it: see workspace.h. */
#include "tests/world/workspace.h"

#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "tests/world/bucket.h"
#include "tests/world/play.h"
#include "tests/world/tree.h"

#define BUCKET "bucket"

static bool is_far(void)
{
	return playing->setting.far_workspace;
}

/* In the bucket, or on the first head, which sees a share as well. */
static char *path_of(const char *key)
{
	return mem_format("%s/%s",
			  is_far()                                ? "work"
			  : playing->setting.state == STATE_SHARE ? "/shared/work"
								  : "/srv/user/work",
			  key);
}

char *workspace_get(const char *key)
{
	AUTO(auto_free) char *path = path_of(key);
	const char *text;

	if (!is_far())
		return tree_get(playing->hosts[0], path, NULL);
	text = bucket_get(BUCKET, path, NULL);
	return text ? mem_copy(text) : NULL;
}

char *place_get(const char *place)
{
	const char *text;

	if (strncmp(place, "s3://" BUCKET "/", strlen("s3://" BUCKET "/")) != 0)
		return tree_get(playing->hosts[0], place, NULL);
	text = bucket_get(BUCKET, place + strlen("s3://" BUCKET "/"), NULL);
	return text ? mem_copy(text) : NULL;
}

bool workspace_has(const char *key)
{
	AUTO(auto_free) char *path = path_of(key);

	return is_far() ? bucket_get(BUCKET, path, NULL) != NULL
			: tree_exists(playing->hosts[0], path);
}

void workspace_put(const char *key, const char *text)
{
	AUTO(auto_free) char *path = path_of(key);

	if (is_far())
		bucket_put(BUCKET, path, text, strlen(text));
	else
		tree_put(playing->hosts[0], path, text, strlen(text), 0600);
}

bool workspace_remove(const char *key)
{
	AUTO(auto_free) char *path = path_of(key);

	if (!is_far())
		return tree_remove(playing->hosts[0], path);
	if (!bucket_get(BUCKET, path, NULL))
		return false;
	bucket_remove(BUCKET, path);
	return true;
}
