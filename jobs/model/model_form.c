/* The form of what is stored: sealed lines, and entries; see model.h and model_internal.h. */
#include <stdio.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/model/model_internal.h"
#include "jobs/model/model_version.h"

#define SUM_BEGIN ",\"sum\":\""
#define SUM_END   "\"}"
#define SUM_BYTES (sizeof SUM_BEGIN - 1 + SHA256_HEX - 1 + sizeof SUM_END - 1)

/* The digest of the first `len` bytes and the closing brace. */
static void sum_of(const char *bytes, size_t len, char ret[SHA256_HEX])
{
	struct sha256 *sha = hash_sha256_new();

	hash_sha256_add(sha, bytes, len);
	hash_sha256_add(sha, "}", 1);
	hash_sha256_end(sha, ret);
}

char *model_seal(json_t *body)
{
	AUTO(auto_free) char *line = js_line_exact(body);
	size_t len = strlen(line) - 1;
	struct sb sealed = SB_INIT_MAX(SIZE_MAX / 2);
	char sum[SHA256_HEX];

	sum_of(line, len, sum);
	sb_add(&sealed, line, len);
	sb_addf(&sealed, SUM_BEGIN "%s" SUM_END "\n", sum);
	json_decref(body);
	return sb_take(&sealed);
}

static int damaged(const char *what, const char *why, struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%s' is not what was written: %s", what, why);
	err_hint(err, "restore it from a copy; 'stoker lineage --verify' names all that differs");
	return err_damage(err);
}

/* Parses sealed bytes. */
static int unseal(const char *bytes, size_t len, const char *what, json_t **ret, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *body = NULL;
	char sum[SHA256_HEX];

	if (js_parse(bytes, len, "it", &body, &why) < 0)
		return damaged(what, why->message, err);
	if (!json_is_object(body) || js_int(body, "v", 0) < 1)
		return damaged(what, "it has no format", err);
	if (js_int(body, "v", 0) > MODEL_FORMAT) {
		err_set(err, EXIT_REFUSED, "'%s' has format %lld, and this stoker knows format %d",
			what, (long long)js_int(body, "v", 0), MODEL_FORMAT);
		return err_hint(err, "use the newer stoker that wrote it");
	}
	if (len > 0 && bytes[len - 1] == '\n')
		len--;
	if (len <= SUM_BYTES || !model_is_digest(js_str(body, "sum")))
		return damaged(what, "it has no sum", err);
	sum_of(bytes, len - SUM_BYTES, sum);
	if (memcmp(bytes + len - SUM_BYTES, SUM_BEGIN, sizeof SUM_BEGIN - 1) != 0 ||
	    !js_is(body, "sum", sum))
		return damaged(what, "its sum does not fit, so a byte of it was changed", err);
	*ret = TAKE(body);
	return 0;
}

/* ---- entries ---- */

static const char *head_invalid(const json_t *body, int64_t generation)
{
	const char *run = js_str(body, "run");

	if (js_int(body, "generation", 0) != generation)
		return "it is of another generation";
	if (!js_str(body, "name") || !js_str(body, "name")[0])
		return "it has no name";
	if (generation > 1 ? !model_is_digest(js_str(body, "before"))
			   : json_object_get(body, "before") != NULL)
		return "it does not name the entry before";
	if (!js_is(body, "action", "promote") && !js_is(body, "action", "rollback"))
		return "it has no known action";
	if (!js_str(body, "nonce") || !js_str(body, "at"))
		return "it has no nonce or no time";
	if (!run || !text_run_id_valid(run))
		return "it names no run";
	return NULL;
}

static const char *removed_invalid(const json_t *body)
{
	const json_t *removed = json_object_get(body, "removed"), *run;
	size_t i;

	if (removed && !json_is_array(removed))
		return "'removed' is not a list";
	json_array_foreach (removed, i, run)
		if (!json_is_string(run) || !text_run_id_valid(json_string_value(run)))
			return "'removed' names what is not a run";
	return NULL;
}

static int other_name(const char *what, const char *has, const char *want, struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%s' is of the model '%s', not of '%s'", what, has, want);
	return err_hint(err, "give each spec a promote.url of its own, or the spec the old name");
}

int model_entry_parse(const char *bytes, size_t len, const char *what, int64_t generation,
		      const char *name, struct model_entry *ret, struct err **err)
{
	AUTO(auto_free) char *invalid = NULL;
	json_auto_t *body = NULL;
	const char *why;

	if (unseal(bytes, len, what, &body, err) < 0)
		return -1;
	why = head_invalid(body, generation);
	if (!why)
		why = removed_invalid(body);
	if (!why)
		why = invalid = model_version_invalid(json_object_get(body, "version"),
						      js_str(body, "run"));
	if (why)
		return damaged(what, why, err);
	if (name && !js_is(body, "name", name))
		return other_name(what, js_str(body, "name"), name, err);
	ret->generation = generation;
	hash_sha256_hex(bytes, len, ret->digest);
	ret->body = TAKE(body);
	return 0;
}

/* ---- pointers ---- */

/* Nothing is lost with a pointer: the entries tell where it stood. */
static int pointer_hint(struct err **err)
{
	if (!(*err)->damage)
		return -1;
	return err_hint(err, "remove it: the next promotion or rollback writes it again from the "
			     "entries");
}

int model_pointer_parse(const char *bytes, size_t len, const char *what, const char *name,
			struct model_pointer *ret, struct err **err)
{
	json_auto_t *body = NULL;
	const char *run, *seen;

	if (unseal(bytes, len, what, &body, err) < 0)
		return pointer_hint(err);
	run = js_str(body, "run");
	seen = js_str(body, "seen");
	if (js_int(body, "generation", 0) < 1 || !model_is_digest(js_str(body, "digest")) ||
	    !js_str(body, "name") ||
	    (seen && (!model_is_digest(seen) || !run || !text_run_id_valid(run)))) {
		damaged(what, "it names no entry", err);
		return pointer_hint(err);
	}
	if (name && !js_is(body, "name", name))
		return other_name(what, js_str(body, "name"), name, err);
	ret->generation = js_int(body, "generation", 0);
	memcpy(ret->digest, js_str(body, "digest"), SHA256_HEX);
	snprintf(ret->run, sizeof ret->run, "%s", seen ? run : "");
	snprintf(ret->seen, sizeof ret->seen, "%s", seen ? seen : "");
	return 0;
}
