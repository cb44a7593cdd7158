/* Signs and colours: see text_style.h. */
#include "jobs/report/text_style.h"

#include <stddef.h>
#include <string.h>

#include "jobs/base/auto.h"

static const struct {
	const char *utf8, *ascii, *color;
} marks[MARK_COUNT] = {
	[MARK_NONE] = { " ", " ", "" },         [MARK_GOOD] = { "✓", "+", "\x1b[32m" },
	[MARK_BAD] = { "✗", "x", "\x1b[31m" },  [MARK_WARN] = { "!", "!", "\x1b[33m" },
	[MARK_WAIT] = { "·", ".", "\x1b[36m" }, [MARK_RUN] = { "▸", ">", "\x1b[36m" },
	[MARK_FAINT] = { " ", " ", "\x1b[2m" },
};

const char *text_style_icon_text(const struct text_style *style, enum status_icon mark)
{
	return style->utf8 ? marks[mark].utf8 : marks[mark].ascii;
}

const char *text_style_arrow(const struct text_style *style)
{
	return style->utf8 ? "→" : "->";
}

const char *text_style_on(const struct text_style *style, enum status_icon mark)
{
	return style->color ? marks[mark].color : "";
}

const char *text_style_off(const struct text_style *style)
{
	return style->color ? "\x1b[0m" : "";
}

enum status_icon text_style_icon_of_state(const char *state, const char *class)
{
	static const struct {
		const char *state;
		enum status_icon mark;
	} rows[] = {
		{ "running", MARK_RUN },    { "stopping", MARK_RUN }, { "waiting", MARK_WAIT },
		{ "intended", MARK_WAIT },  { "queued", MARK_WAIT },  { "starting", MARK_WAIT },
		{ "succeeded", MARK_GOOD }, { "failed", MARK_BAD },   { "refused", MARK_BAD },
		{ "stopped", MARK_WARN },   { "lost", MARK_WARN },
	};

	if (!state)
		return MARK_NONE;
	if (strcmp(state, "ended") == 0 && class) {
		if (strcmp(class, "none") == 0)
			return MARK_GOOD;
		return strcmp(class, "stopped") == 0 ? MARK_WARN : MARK_BAD;
	}
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (strcmp(rows[i].state, state) == 0)
			return rows[i].mark;
	return MARK_NONE;
}
