/*
 * Words of a shell in a command that none runs: the program gets "&&" as an argument. See lint.h.
 */
#include <string.h>

#include "jobs/spec/lint/lint.h"

static bool is_shell_word(const char *text)
{
	static const char words[] = "&& || | |& & ; > >> < << 2> 2>> &> 1> 2>&1 >&2";
	size_t len = strlen(text);

	if (field_word_in(words, text) || strstr(text, "$(") || strstr(text, " && "))
		return true;
	/* "a;" and ">log" are written without blanks too. */
	return len > 1 && (text[len - 1] == ';' || (text[0] == '>' && text[1] != '='));
}

/* Warns of the first one: the cure is the same for all. */
static void check_command(struct binder *binder, enum spec_field command)
{
	const struct node *list = access_node_of_field(binder->spec, command);

	for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const struct node *item = list->entries[i].value;
		AUTO(auto_free) char *field = NULL;

		/* find(1) has its own ';' behind -exec. */
		if (item->kind != NODE_SCALAR || launch_is_shell(item->text) ||
		    field_word_in("-exec -execdir -ok -c", item->text))
			return;
		if (!is_shell_word(item->text))
			continue;
		field = mem_format("%s[%zu]", field_table[command].path, i);
		problem_hint(problem_lint(&binder->reporter, item->at, field,
					  "no shell interprets this '%.80s'", item->text),
			     "write the line for a shell: [sh, -c, \"…\"]");
		return;
	}
}

void lint_command(struct binder *binder)
{
	static const enum spec_field commands[] = { SPEC_COMMAND, SPEC_EVALUATE_COMMAND,
						    SPEC_INFER_COMMAND };

	for (size_t i = 0; i < STK_LENGTH(commands); i++)
		check_command(binder, commands[i]);
}
