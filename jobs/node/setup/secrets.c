/* Reads secrets for the agent: see secrets.h. */
#include "jobs/node/setup/secrets.h"

#include <stdlib.h>

#include "aws/credentials/secret.h"
#include "aws/credentials/secrets.h"

#define SECRET_MAX ((size_t)64 << 10)

static int fetch_one(const char *name, const char *from, struct err **err)
{
	AUTO(auto_free) char *variable = mem_format(ORDER_SECRET "%s", name);
	AUTO(secret_freep) char *value = NULL;

	if (!aws_secret_is(from)) {
		err_set(err, EXIT_REFUSED, "secret '%s': no job on AWS can read it from '%s'", name,
			from);
		return err_hint(err,
				"keep the secret in Secrets Manager or in the Parameter Store");
	}
	if (aws_secret_read(from, SECRET_MAX, &value, err) < 0) {
		AUTO(auto_free) char *hint = mem_copy((*err)->hint ? (*err)->hint : "");

		if ((*err)->code == EXIT_REFUSED)
			err_hint(err, "allow the role of the job to read the secret%s%s",
				 *hint ? "; " : "", hint);
		return err_wrap(err, "secret '%s' ('%s')", name, from);
	}
	/* A secret that did not get there is missed when the command's environment is built. */
	(void)setenv(variable, value, 1);
	return 0;
}

int secrets_fetch(const struct agent_config *config, struct err **err)
{
	json_t *all = config->order->secret_from, *from;
	const char *name;

	json_object_foreach (all, name, from)
		if (fetch_one(name, json_string_value(from), err) < 0)
			return -1;
	return 0;
}
