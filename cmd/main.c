/* stoker: argv → command row → exit code. Prints the final error. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "jobs/base/process/program.h"
#include "jobs/spec/spec.h"

/* The output options are found before the command line is parsed, because its errors depend on
 * them. */
static void peek(int argc, char **argv, struct out_options *ret)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--json") == 0)
			ret->json = true;
		else if (strncmp(argv[i], "--color=", 8) == 0)
			ret->color = argv[i] + 8;
		else if (strcmp(argv[i], "--color") == 0 && i + 1 < argc)
			ret->color = argv[i + 1];
	}
}

static int finish(int code, struct err *err)
{
	AUTO(err_freep) struct err *last = NULL;

	if (code < 0) {
		out_error(err);
		out_error_json(err);
		code = (int)err->code;
	}
	if (out_finish(&last) < 0) {
		out_error(last);
		if (code == 0)
			code = (int)last->code;
	}
	return code;
}

static const char *process_getenv(const char *name)
{
	return getenv(name);
}

/* Takes from the user's configuration what neither the command line nor the environment gives. */
static int configure(struct args *args, char **ret_state, struct err **err)
{
	const char *state = getenv("STOKER_STATE");
	AUTO(auto_free) char *region = NULL;

	if (args->cmd->is_bare || args->given[OPT_HELP])
		return 0;
	if (spec_configuration(process_getenv, ret_state, &region, err) < 0)
		return -1;
	if (!args->value[OPT_STATE] && !state)
		args->value[OPT_STATE] = *ret_state;
	if (region)
		aws_settings_spec(region);
	return 0;
}

int main(int argc, char **argv)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(args_release) struct args args = { 0 };
	struct out_options options = { 0 };
	AUTO(auto_free) char *state = NULL;
	int code;

	/* A reader that closes its pipe must not kill a driver. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* reaching a file size limit is an error of the write */
	program_begin();
	peek(argc, argv, &options);
	out_init(&options);
	if (args_parse(cmd_table, argc, argv, &args, &err) < 0)
		return finish(-1, err);
	options.json = args.given[OPT_JSON] || args_is(&args, OPT_FORMAT, "json");
	options.quiet = args.given[OPT_QUIET];
	options.verbose = args.given[OPT_VERBOSE];
	options.color = args.value[OPT_COLOR];
	out_init(&options);
	aws_settings_option(args.value[OPT_PROFILE], args.value[OPT_REGION]);
	if (configure(&args, &state, &err) < 0)
		return finish(-1, err);
	code = args.given[OPT_HELP] ? cmd_help(&args, &err) : args.cmd->run(&args, &err);
	return finish(code, err);
}
