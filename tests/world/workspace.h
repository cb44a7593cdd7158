/*
 * The world's own hand in the workspace of the run that plays, be it a folder of the first head, a
 * share or a bucket. Nobody in the world sees it, and nothing of it fails. Keys are those of
 * jobs/store: "runs/RUN/…", "cache/…".
 */
#ifndef STK_TESTS_WORLD_WORKSPACE_H
#define STK_TESTS_WORLD_WORKSPACE_H

#include <stdbool.h>

/* The text of a file; NULL if it is not there. The caller frees it. */
char *workspace_get(const char *key);
/* The same of what lies elsewhere: "s3://BUCKET/KEY", or a path. */
char *place_get(const char *place);
bool workspace_has(const char *key);
void workspace_put(const char *key, const char *text);
/* False if it is not there. */
bool workspace_remove(const char *key);

#endif
