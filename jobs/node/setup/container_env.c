/* Inherits the container's environment: see container_env.h. */
#include "jobs/node/setup/container_env.h"

#include <string.h>
#include <unistd.h>

#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/cache/kinds/compile_kind.h"

enum fate {
	KEPT,
	OURS,
	WITHHELD, /* steers; neither the spec nor the image is known to set it */
	SET_BACK, /* steers; has another value than the image's */
};

static bool is_ours(const char *name)
{
	const struct variable_row *row = variable_find(name);

	return (row && row->uses & VAR_OURS) || text_starts(name, "STOKER_");
}

/* Decides what becomes of a variable. `ret_image`: the image's own value, with SET_BACK. */
static enum fate fate_of(const struct agent_config *config, const char *name, const char *value,
			 const char **ret_image)
{
	const struct compile_kind *kind = agent_config_compile_kind(config);
	const char *image;

	if (is_ours(name))
		return OURS;
	/* The spec's value comes on top. */
	if (!kind || !compile_kind_steers(kind, name) || json_object_get(config->order->env, name))
		return KEPT;
	image = js_str(config->order->image_env, name);
	if (!image)
		return WITHHELD;
	*ret_image = image;
	return strcmp(image, value) == 0 ? KEPT : SET_BACK;
}

/* Returns the name in a row of environ, and the start of its value; NULL if it has no name. The
 * caller frees the name. */
static char *name_in(const char *row, const char **ret_value)
{
	const char *equals = strchr(row, '=');

	if (!equals || equals == row)
		return NULL;
	*ret_value = equals + 1;
	return mem_copy_n(row, (size_t)(equals - row));
}

void container_env_put(struct command_env *env, const struct agent_config *config)
{
	const char *region;

	for (char **row = environ; *row; row++) {
		const char *value, *image = NULL;
		AUTO(auto_free) char *name = name_in(*row, &value);

		if (!name)
			continue;
		switch (fate_of(config, name, value, &image)) {
		case KEPT:
			command_env_put(env, name, value);
			break;
		case SET_BACK:
			command_env_put(env, name, image);
			break;
		case OURS:
		case WITHHELD:
			break;
		}
	}
	region = command_env_get(env, variable_rows[VAR_AWS_REGION].name);
	if (region && !command_env_get(env, variable_rows[VAR_AWS_DEFAULT_REGION].name))
		command_env_put(env, variable_rows[VAR_AWS_DEFAULT_REGION].name, region);
}

void container_env_report(const struct agent_config *config, struct node_report *said)
{
	json_auto_t *withheld = json_array(), *set_back = json_array();
	struct node_report_environment *report = &said->environment;

	for (char **row = environ; config->platform.container && *row; row++) {
		const char *value, *image = NULL;
		AUTO(auto_free) char *name = name_in(*row, &value);
		enum fate fate = name ? fate_of(config, name, value, &image) : KEPT;

		if (fate == WITHHELD || fate == SET_BACK)
			json_array_append_new(fate == WITHHELD ? withheld : set_back,
					      js_text(name, strlen(name)));
	}
	if (json_array_size(withheld) + json_array_size(set_back) == 0)
		return;
	MESSAGE_MARK(said, environment);
	if (json_array_size(withheld) > 0)
		MESSAGE_SET_JSON(report, withheld, TAKE(withheld));
	if (json_array_size(set_back) > 0)
		MESSAGE_SET_JSON(report, set_back, TAKE(set_back));
	MESSAGE_SET(report, image_known, config->order->image_env != NULL);
}
