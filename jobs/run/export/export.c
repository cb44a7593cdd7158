/* What all kinds of exports have in common: phases, the command of a step, the begin of ids. */
#include "jobs/run/export/export.h"

#include <ctype.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/flow/flow.h"

/* True if the resolved spec has a section, list or text there that says anything. */
static bool has(const struct spec *spec, const char *path)
{
	const json_t *value = js_path(spec_root(spec), path);

	return value && !json_is_null(value) &&
	       !(json_is_array(value) && json_array_size(value) == 0) &&
	       !(json_is_string(value) && strcmp(json_string_value(value), "none") == 0);
}

static void add_phase(json_t *phases, const char *name)
{
	json_array_append_new(phases, json_string(name));
}

static bool compiles_ahead(const struct spec *spec)
{
	return !spec_says(spec, SPEC_COMPILE_KIND, "none") &&
	       !spec_says(spec, SPEC_COMPILE_MODE, "jit");
}

json_t *export_phases(const struct spec *spec)
{
	json_t *phases = json_array();

	if (compiles_ahead(spec)) {
		add_phase(phases, flow_phase_names[PHASE_PRECOMPILE]);
		add_phase(phases, "verify");
	}
	add_phase(phases, flow_phase_names[PHASE_TRAIN]);
	if (has(spec, "evaluate"))
		add_phase(phases, flow_phase_names[PHASE_EVALUATE]);
	if (has(spec, "gate") || has(spec, "evaluate.metric"))
		add_phase(phases, "gate");
	if (has(spec, "infer"))
		add_phase(phases, flow_phase_names[PHASE_INFER]);
	add_phase(phases, "promote");
	return phases;
}

static void add_option(json_t *words, const char *option, const char *value)
{
	if (!value)
		return;
	json_array_append_new(words, json_string(option));
	json_array_append_new(words, json_string(value));
}

json_t *export_command(const struct export_job *job, const char *id, const char *phase,
		       const char *outcome)
{
	json_t *words = json_pack("[s]", "stoker");

	add_option(words, "--state", job->state);
	add_option(words, "--region", job->region);
	add_option(words, "retrain", job->path);
	for (char *const *use = job->uses; use && *use; use++)
		add_option(words, "--use", *use);
	for (char *const *set = job->sets; set && *set; set++)
		add_option(words, "--set", *set);
	add_option(words, "--id", id);
	add_option(words, "--until", phase);
	add_option(words, "--outcome", outcome);
	return words;
}

char *export_id_prefix(const struct spec *spec, size_t max)
{
	const char *name = spec_str(spec, SPEC_NAME);
	AUTO(sb_release) struct sb text = SB_INIT;

	for (; *name && text.len < max; name++)
		if (isalnum((unsigned char)*name))
			sb_addc(&text, (char)tolower((unsigned char)*name));
		else if (text.len > 0 && text.text[text.len - 1] != '-')
			sb_addc(&text, '-');
	while (text.len > 0 && text.text[text.len - 1] == '-')
		text.text[--text.len] = '\0';
	return text.len > 0 ? sb_take(&text) : mem_copy("turn");
}
