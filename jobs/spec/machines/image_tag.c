/* Tags of container images: see image_tag.h. */
#include "jobs/spec/machines/image_tag.h"

#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/regex.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/compatibility_rows.h"

#define ECR ".dkr.ecr."

static bool is_of_aws(const char *image)
{
	size_t digits = strspn(image, "0123456789"), host = strcspn(image, "/");
	size_t first = image[host] ? host + 1 + strcspn(image + host + 1, "/") : host;
	bool ecr = text_starts(image + digits, ECR);
	struct row_text row = { 0 };

	while (compatibility_next("registries", &row))
		if (ecr ? compatibility_has_word(compatibility_field(row, "accounts"), image,
						 digits)
			: compatibility_has_word(compatibility_field(row, "hosts"), image, first))
			return true;
	return false;
}

/* Returns "3.12" of "312". The caller frees it. */
static char *dotted(const char *digits, size_t len)
{
	return mem_format("%.1s.%.*s", digits, (int)len - 1, digits + 1);
}

/* Puts what the groups of a form hold into the facts. */
static void put_groups(struct row_text row, const char *tag, const struct regex_span *spans,
		       json_t *facts)
{
	json_auto_t *reads = compatibility_value(row, "reads");
	const json_t *item;
	size_t i;

	json_array_foreach (reads, i, item) {
		const struct regex_span *span = &spans[i + 1];
		const char *name = json_string_value(item), *from = tag + span->from;
		size_t len = span->to - span->from;
		AUTO(auto_free) char *value = NULL;

		if (i >= REGEX_GROUPS_MAX || !span->set || !name)
			continue;
		value = strcmp(name, "python") == 0 ? dotted(from, len) : mem_copy_n(from, len);
		js_put_str(facts, name, value);
	}
}

/* True if the tag holds what every tag of the row's form does. */
static bool may_be(struct row_text row, const char *tag)
{
	struct row_text part = compatibility_field(row, "part");

	return part.text && memmem(tag, strlen(tag), part.text, part.len);
}

/* Reads the tag by the form of a row. Returns false if it has another one. */
static bool read_by(struct row_text row, const char *tag, json_t *facts)
{
	struct regex_span spans[REGEX_GROUPS_MAX + 1] = { 0 };
	AUTO(regex_freep) struct regex *form = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *pattern = may_be(row, tag) ? compatibility_value(row, "form") : NULL;

	if (!pattern || regex_compile(json_string_value(pattern), &form, &err) < 0 ||
	    !regex_find(form, tag, strlen(tag), 0, spans))
		return false;
	put_groups(row, tag, spans, facts);
	js_put_str(facts, "tag", "published");
	return true;
}

static void put_field(struct row_text row, const char *name, json_t *facts)
{
	json_t *value = compatibility_value(row, name);

	if (value)
		js_put(facts, name, value);
}

/* An image of this name: its framework is known, and in AWS's repository a tag of another form is
 * none that was published. */
static void read_known(struct row_text row, const char *tag, json_t *facts)
{
	put_field(row, "framework", facts);
	if (read_by(row, tag, facts) || !json_object_get(facts, "registry"))
		return;
	js_put_str(facts, "tag", "other");
	put_field(row, "example", facts);
}

static void read_tag(const char *name, const char *tag, json_t *facts)
{
	struct row_text row = { 0 };

	while (compatibility_next("tags", &row)) {
		if (compatibility_has_word(compatibility_field(row, "repositories"), name,
					   strlen(name))) {
			read_known(row, tag, facts);
			return;
		}
	}
	/* An image of the user's own with a tag of that form says the same by it. */
	row = (struct row_text){ 0 };
	while (compatibility_next("tags", &row))
		if (read_by(row, tag, facts))
			return;
}

void image_tag_read(const char *image, json_t *facts)
{
	const char *last = strrchr(image, '/'), *tag;
	AUTO(auto_free) char *name = NULL;

	last = last ? last + 1 : image;
	tag = strchr(last, ':');
	name = mem_copy_n(last, strcspn(last, ":@"));
	js_put_str(facts, "repository", name);
	if (is_of_aws(image))
		js_put_str(facts, "registry", "aws");
	if (!strchr(last, '@'))
		read_tag(name, tag ? tag + 1 : "latest", facts);
}
