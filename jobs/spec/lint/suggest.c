/* Suggestions for a mistyped name: see suggest.h. */
#include "jobs/spec/lint/suggest.h"

#include <ctype.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/lint/habits.h"

/* Largest distance of a mistyped name from the one that was meant. */
static size_t tolerance(const char *name)
{
	size_t len = strlen(name);

	return len <= 3 ? 1 : len <= 7 ? 2 : 3;
}

/* Distance of two names; max-steps, maxSteps and MAX_STEPS are near max_steps. */
static size_t distance(const char *name, const char *other, size_t limit)
{
	AUTO(sb_release) struct sb plain = SB_INIT_MAX(128);
	size_t as_is = text_distance(name, other, limit), folded;

	for (const char *c = name; *c; c++) {
		if (isupper((unsigned char)*c) && c > name && islower((unsigned char)c[-1]))
			sb_addc(&plain, '_');
		sb_addc(&plain, *c == '-' ? '_' : (char)tolower((unsigned char)*c));
	}
	folded = text_distance(plain.text, other, limit);
	return folded < as_is ? folded : as_is;
}

#define ANYWHERE (FIELD_NONE - 1)

/* Returns the field with this name, or nearly this name, in one section or ANYWHERE. */
static field_id nearest_leaf(field_id section, const char *name, size_t limit)
{
	size_t best = limit + 1;
	field_id found = FIELD_NONE;

	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		size_t d;

		if (strchr("[*", field_leaf(id)[0]) ||
		    (section != ANYWHERE && field_parent(id) != section))
			continue;
		d = distance(name, field_leaf(id), best);
		if (d < best) {
			best = d;
			found = id;
		}
	}
	return found;
}

field_id suggest_member(field_id section, const char *name)
{
	return nearest_leaf(section, name, tolerance(name));
}

static char *member_list(field_id section)
{
	struct sb list = SB_INIT;

	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++)
		if (!strchr("[*", field_leaf(id)[0]) && field_parent(id) == section)
			sb_addf(&list, "%s%s", list.len > 0 ? ", " : "", field_leaf(id));
	return sb_take(&list);
}

/* Returns a path as seen from `section`: relative if it lies below. */
static const char *seen_from(field_id section, const char *path)
{
	size_t len = section == FIELD_NONE ? 0 : strlen(field_table[section].path);

	if (len > 0 && strncmp(path, field_table[section].path, len) == 0 && path[len] == '.')
		return path + len + 1;
	return path;
}

static char *all_members(field_id section)
{
	AUTO(auto_free) char *members = member_list(section);

	if (section == FIELD_NONE)
		return mem_format("top-level fields are: %s", members);
	return mem_format("fields of '%s' are: %s", field_table[section].path, members);
}

/* Returns the hint of a habit: what is meant, and how it is written. */
static char *habit_text(const struct habit *habit, field_id section)
{
	const char *meant = habit->meant ? seen_from(section, habit->meant) : NULL;

	if (!meant)
		return mem_copy(habit->how);
	if (!habit->how)
		return mem_format("did you mean '%s'?", meant);
	return mem_format("did you mean '%s', %s?", meant, habit->how);
}

/* True if one of the words is this name, or nearly this name. */
static bool is_near_one(const char *words, const char *name, size_t limit)
{
	while (*words) {
		size_t len = strcspn(words, " ");
		AUTO(auto_free) char *word = mem_copy_n(words, len);

		if (distance(name, word, limit) <= limit)
			return true;
		words += len + (words[len] == ' ');
	}
	return false;
}

static const struct habit *habit_find(const char *name, size_t limit)
{
	for (size_t i = 0; i < habit_count; i++)
		if (is_near_one(habits[i].names, name, limit))
			return &habits[i];
	return NULL;
}

char *suggest_field(field_id section, const char *name)
{
	const struct habit *habit = habit_find(name, 0);
	field_id found = nearest_leaf(section, name, 0);

	if (strstr(name, "${"))
		return mem_copy("variables expand in values only, never in names");
	if (found == FIELD_NONE && habit)
		return habit_text(habit, section);
	found = suggest_member(section, name);
	if (found != FIELD_NONE)
		return mem_format("did you mean '%s'?", field_leaf(found));
	found = nearest_leaf(ANYWHERE, name, 0);
	habit = strlen(name) > 5 ? habit_find(name, 1) : NULL;
	if (habit && (section == FIELD_NONE || found == FIELD_NONE))
		return habit_text(habit, section);
	if (found == FIELD_NONE)
		found = nearest_leaf(ANYWHERE, name, tolerance(name) - 1);
	if (found != FIELD_NONE)
		return mem_format("did you mean '%s'?", field_table[found].path);
	return all_members(section);
}

char *suggest_word(const char *words, const char *word)
{
	size_t best = tolerance(word) + 1;
	char *found = NULL;

	while (*words) {
		size_t n = strcspn(words, " "), d;
		AUTO(auto_free) char *candidate = mem_copy_n(words, n);

		d = distance(word, candidate, best);
		if (strcasecmp(word, candidate) == 0)
			d = 0;
		if (d < best) {
			auto_free(&found);
			found = TAKE(candidate);
			best = d;
		}
		words += n + (words[n] == ' ');
	}
	return found;
}

const char *spec_field_nearest(const char *dotted)
{
	const char *leaf = strrchr(dotted, '.');
	size_t best = tolerance(dotted) + 1;
	field_id found = FIELD_NONE;

	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		size_t d = distance(dotted, field_table[id].path, best);

		if (d < best) {
			best = d;
			found = id;
		}
	}
	if (found == FIELD_NONE)
		found = nearest_leaf(ANYWHERE, leaf ? leaf + 1 : dotted, 1);
	return found == FIELD_NONE ? NULL : field_table[found].path;
}
