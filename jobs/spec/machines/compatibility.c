/* Rules about what goes together, held against facts: see compatibility.h. */
#include "jobs/spec/machines/compatibility.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/machines/compatibility_rows.h"
#include "jobs/spec/machines/image_tag.h"

/* ---- facts --------------------------------------------------------------------------- */

json_t *compatibility_facts(const struct compatibility_job *job)
{
	json_t *facts = json_object();

	js_put_str(facts, "engine", job->engine);
	js_put_str(facts, "compiler", job->compiler);
	js_put_str(facts, "type", job->type);
	js_put_str(facts, "image", job->image);
	if (job->type) {
		const char *name = job->type + (text_starts(job->type, "ml.") ? 3 : 0);
		size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyz");
		AUTO(auto_free)
		char *machine = mem_copy_n(name, letters + strspn(name + letters, "0123456789"));

		js_put_str(facts, "machine", machine);
	}
	if (job->accelerator)
		js_put_str(facts, "accelerator",
			   strcmp(job->accelerator, "gpu") == 0 ? "nvidia" : job->accelerator);
	if (job->image)
		image_tag_read(job->image, facts);
	return facts;
}

json_t *compatibility_image(const char *image)
{
	static const char *const names[] = { "framework", "framework_version", "device", "python",
					     "sdk" };
	json_auto_t *facts = json_object();
	json_t *ret;

	image_tag_read(image, facts);
	if (!js_is(facts, "tag", "published"))
		return NULL;
	ret = json_object();
	for (size_t i = 0; i < STK_LENGTH(names); i++)
		js_put_str(ret, names[i], js_str(facts, names[i]));
	return ret;
}

/* ---- conditions ---------------------------------------------------------------------- */

/* Compares versions part by part; a part that is not there is 0. */
static int compare(const char *version, const char *other)
{
	while (*version || *other) {
		char *end, *other_end;
		long part = strtol(version, &end, 10), other_part = strtol(other, &other_end, 10);

		if (part != other_part)
			return part < other_part ? -1 : 1;
		if (end == version && other_end == other)
			return 0; /* no part is a number */
		version = end + (*end == '.');
		other = other_end + (*other_end == '.');
	}
	return 0;
}

bool compatibility_is_older(const char *version, const char *other)
{
	return compare(version, other) < 0;
}

/* True if a value is as a condition wants it, which is one of these: word, [word, word],
 * ">= 2.32.0". */
static bool meets(const char *value, struct row_text wanted)
{
	AUTO(auto_free) char *text = NULL;
	const char *version;
	size_t sign;
	int order;

	if (*wanted.text != '"')
		return compatibility_has_word(wanted, value, strlen(value));
	text = mem_copy_n(wanted.text + 1, wanted.len - 2);
	sign = strspn(text, "<>=");
	version = text + sign + strspn(text + sign, " ");
	order = compare(value, version);
	return (order < 0 && *text == '<') || (order > 0 && *text == '>') ||
	       (order == 0 && sign > 0 && text[sign - 1] == '=');
}

/* Splits the first condition off the text of a mapping, "{name: wanted, …}" or what is left of
 * it. Returns false at its end. */
static bool next_condition(struct row_text *mapping, struct row_text *ret_name,
			   struct row_text *ret_wanted)
{
	const char *at = mapping->text, *end, *colon;
	size_t len;

	if (!at) /* the row has none */
		return false;
	end = at + mapping->len;
	at += strspn(at, "{, ");
	if (at >= end || *at == '}')
		return false;
	colon = strchr(at, ':');
	*ret_name = (struct row_text){ at, (size_t)(colon - at) };
	at = colon + 2;
	len = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",}");
	*ret_wanted = (struct row_text){ at, len };
	*mapping = (struct row_text){ at + len, (size_t)(end - at) - len };
	return true;
}

/* True if all facts of the mapping are known and so (`all`), or any of them is. */
static bool hold(struct row_text mapping, const json_t *facts, bool all)
{
	struct row_text name, wanted;

	while (next_condition(&mapping, &name, &wanted)) {
		AUTO(auto_free) char *fact = mem_copy_n(name.text, name.len);
		const char *value = js_str(facts, fact);

		if ((value && meets(value, wanted)) != all)
			return !all;
	}
	return all;
}

static bool applies(struct row_text rule, const json_t *facts)
{
	return hold(compatibility_field(rule, "when"), facts, true) &&
	       !hold(compatibility_field(rule, "unless"), facts, false);
}

static bool same(struct row_text one, struct row_text other)
{
	return one.text && other.text && one.len == other.len &&
	       memcmp(one.text, other.text, one.len) == 0;
}

/* True if a later rule is about the same thing. */
static bool is_replaced(struct row_text rule)
{
	struct row_text about = compatibility_field(rule, "about");
	json_auto_t *dated = about.text ? compatibility_value(rule, "dated") : NULL;
	struct row_text other = { 0 };

	while (dated && compatibility_next("rules", &other)) {
		json_auto_t *then = same(compatibility_field(other, "about"), about)
					    ? compatibility_value(other, "dated")
					    : NULL;

		if (then && strcmp(json_string_value(then), json_string_value(dated)) > 0)
			return true;
	}
	return false;
}

/* ---- findings ------------------------------------------------------------------------ */

/* Returns the text of a field with {fact} replaced by its value. The caller frees it. */
static char *filled_in(struct row_text rule, const char *field, const json_t *facts)
{
	json_auto_t *value_of_field = compatibility_value(rule, field);
	const char *text = json_string_value(value_of_field);
	struct sb ret = SB_INIT;

	while (text && *text) {
		size_t len = *text == '{' ? strcspn(text, "}") : 0;
		AUTO(auto_free) char *name = len > 0 ? mem_copy_n(text + 1, len - 1) : NULL;
		const char *value = name ? js_str(facts, name) : NULL;

		if (value)
			sb_adds(&ret, value);
		else
			sb_addc(&ret, *text);
		text += value ? len + 1 : 1;
	}
	return sb_take(&ret);
}

static json_t *finding_of(struct row_text rule, const json_t *facts)
{
	static const char *const texts[] = { "id", "state", "says", "cure", "dated" };
	struct row_text when = compatibility_field(rule, "when"), fact, wanted;
	AUTO(auto_free) char *names = filled_in(rule, "source", facts);
	AUTO(auto_free) char *source = compatibility_sources(names);
	json_t *ret = json_object(), *of = json_array();

	for (size_t i = 0; i < STK_LENGTH(texts); i++) {
		AUTO(auto_free) char *text = filled_in(rule, texts[i], facts);

		js_put_str(ret, texts[i], text);
	}
	js_put_str(ret, "source", source);
	while (next_condition(&when, &fact, &wanted))
		json_array_append_new(of, json_stringn(fact.text, fact.len));
	js_put(ret, "of", of);
	return ret;
}

json_t *compatibility_check(const json_t *facts)
{
	json_t *ret = json_array();
	struct row_text rule = { 0 };

	while (compatibility_next("rules", &rule))
		if (applies(rule, facts) && !is_replaced(rule))
			json_array_append_new(ret, finding_of(rule, facts));
	return ret;
}
