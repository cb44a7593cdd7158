/* Folders that stoker writes: see own_places.h. */
#include "jobs/run/plan/own_places.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

#define PLACES_BYTES_MAX ((size_t)1 << 20)

char **own_places_former(const char *state_dir)
{
	AUTO(auto_free) char *file = fs_join(state_dir, OWN_PLACES_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(PLACES_BYTES_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	char **places = mem_zero(1, sizeof *places);
	size_t count = 0;

	if (fs_read(file, PLACES_BYTES_MAX, &text, &ignored) < 0)
		return places;
	/* A last line without a newline was cut off: a shorter path would name another folder. */
	for (char *line = text.text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (*line == '/')
			auto_strv_add(&places, &count, line);
	}
	return places;
}

static bool is_among(char *const *places, const char *path)
{
	for (; *places; places++)
		if (strcmp(*places, path) == 0)
			return true;
	return false;
}

void own_places_remember(const char *state_dir, const json_t *plan)
{
	const char *const now[] = {
		js_str(plan, "workspace"),
		js_str(json_object_get(plan, "compile"), "cache"),
		js_str(json_object_get(plan, "checkpoint"), "url"),
	};
	AUTO(auto_strv) char **known = own_places_former(state_dir);
	AUTO(auto_free) char *file = fs_join(state_dir, OWN_PLACES_FILE);
	AUTO(sb_release) struct sb lines = SB_INIT;
	AUTO(auto_close) int fd = -1;

	for (size_t i = 0; i < STK_LENGTH(now); i++)
		if (now[i] && now[i][0] == '/' && !strchr(now[i], '\n') && !is_among(known, now[i]))
			sb_addf(&lines, "%s\n", now[i]);
	if (lines.len == 0)
		return;
	fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)!write(fd, lines.text, lines.len);
}
