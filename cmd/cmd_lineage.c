/* lineage: the chain of promoted versions of a model, and its verification. */
#include <inttypes.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/lineage/model_of.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"

/* The chain, as it is printed. */
struct lineage {
	struct model *model;
	const struct model_entry *head;
	const char *head_digest; /* --head; NULL: none */
	bool head_found;
};

static int print_entry(void *arg, const struct model_entry *entry, struct err **err)
{
	struct lineage *lineage = arg;
	const char *run = js_str(entry->body, "run");
	json_auto_t *line =
		model_of_line(lineage->model, entry, entry->generation == lineage->head->generation,
			      model_entry_removes(lineage->head, run));

	(void)err;
	if (lineage->head_digest && strcmp(lineage->head_digest, entry->digest) == 0)
		lineage->head_found = true;
	if (out_is_json())
		out_json_exact(line);
	else
		model_of_print(line);
	return 0;
}

static int print_chain(struct model *model, const char *head_digest, struct err **err)
{
	AUTO(model_entry_release) struct model_entry head = { 0 };
	struct lineage lineage = { .model = model, .head = &head, .head_digest = head_digest };
	int there = model_head(model, false, &head, err);

	if (there < 0)
		return -1;
	if (there == 0)
		out_note("nothing was promoted to '%s' yet", model_url(model));
	else if (model_each(model, &head, print_entry, &lineage, err) < 0)
		return -1;
	if (!head_digest || lineage.head_found)
		return EXIT_DONE;
	err_set(err, EXIT_GATE, "no entry of '%s' has the digest %s", model_url(model),
		head_digest);
	return err_hint(err, "the chain was cut or written again: compare it with a copy");
}

/* ---- --verify ---- */

static void print_difference(void *arg, const char *object, const char *why)
{
	(void)arg;
	if (out_is_json()) {
		json_auto_t *line = json_object();

		js_put_str(line, "object", object);
		js_put_str(line, "why", why);
		out_json(line);
	}
	out_line("%s: %s", object, why);
}

static void print_unchecked(void *arg, const char *object, const char *why)
{
	(void)arg;
	out_note("%s: %s", object, why);
}

static int verify(struct model *model, const char *head_digest, struct err **err)
{
	const struct model_verification how = { .on_difference = print_difference,
						.on_unchecked = print_unchecked,
						.head = head_digest };
	AUTO(auto_free) char *size = NULL;
	struct model_verified sum;

	if (model_verify(model, &how, &sum, err) < 0)
		return -1;
	size = text_format_bytes(sum.bytes);
	if (out_is_json()) {
		json_auto_t *line = json_pack(
			"{s:b, s:I, s:I, s:I, s:I, s:I}", "verified", sum.differences == 0,
			"entries", (json_int_t)sum.entries, "objects", (json_int_t)sum.objects,
			"size_bytes", (json_int_t)sum.bytes, "differences",
			(json_int_t)sum.differences, "unchecked", (json_int_t)sum.unchecked);

		js_put_str(line, "head", sum.head[0] ? sum.head : NULL);
		out_json(line);
	}
	out_line("%" PRId64 " entr%s, %" PRId64 " object%s, %s: %s", sum.entries,
		 sum.entries == 1 ? "y" : "ies", sum.objects, sum.objects == 1 ? "" : "s", size,
		 sum.differences == 0 ? "unchanged" : "changed");
	if (sum.head[0])
		out_line("digest of the newest entry: %s", sum.head);
	if (sum.differences > 0)
		out_hint("restore what differs from a copy of '%s'", model_url(model));
	return sum.differences == 0 ? EXIT_DONE : EXIT_GATE;
}

int cmd_lineage(const struct args *args, struct err **err)
{
	AUTO(model_freep) struct model *model = NULL;
	const char *head = args->value[OPT_HEAD];
	char run[JOURNAL_RUN_MAX];

	if (head && (strlen(head) != SHA256_HEX - 1 ||
		     strspn(head, "0123456789abcdef") != SHA256_HEX - 1)) {
		err_set(err, EXIT_USAGE, "--head needs the digest of an entry, not '%s'", head);
		return err_hint(err, "promote, notify and 'stoker lineage' tell it: 64 digits");
	}
	if (model_of_find(args, args->operands[0], &model, run, err) < 0)
		return -1;
	return args->given[OPT_VERIFY] ? verify(model, head, err) : print_chain(model, head, err);
}
