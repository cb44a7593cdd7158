/* completion, complete: the scripts for shells, and the command they call. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/completion/complete.h"
#include "cmd/completion/script.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/js.h"

int cmd_completion(const struct args *args, struct err **err)
{
	for (size_t i = 0; i < script_file_count; i++) {
		if (strcmp(args->operands[0], script_files[i].name) != 0)
			continue;
		if (out_is_json()) {
			json_auto_t *object = json_pack("{s:s, s:s}", "shell", script_files[i].name,
							"script", script_files[i].text);

			out_json(object);
		} else {
			out_bulk(true);
			for (const char *at = script_files[i].text; *at;) {
				size_t len = strcspn(at, "\n");

				out_text(at, len);
				at += len + (at[len] == '\n');
			}
		}
		return EXIT_DONE;
	}
	err_set(err, EXIT_USAGE, "no completion for the shell '%s'", args->operands[0]);
	return err_hint(err, "choose bash, zsh or fish");
}

/* Prints a candidate on a line of its own, followed by a tab and its meaning. */
static void print_candidate(void *arg, const char *candidate, const char *help)
{
	(void)arg;
	if (help && *help)
		out_line("%s\t%s", candidate, help);
	else
		out_line("%s", candidate);
}

int cmd_complete(const struct args *args, struct err **err)
{
	(void)err;
	complete_line(args->table, args->operands, args->operand_count, print_candidate, NULL);
	return EXIT_DONE;
}
