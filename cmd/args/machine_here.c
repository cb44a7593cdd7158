/* What this machine is and shows: see machine_here.h. */
#include "cmd/args/machine_here.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/credentials/metadata.h"
#include "aws/http/patience.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"

#define METADATA   "metadata" /* source of the type: the service, else the spec */
#define NEURON_SYS "/sys/devices/virtual/neuron_device"
#define MIB        INT64_C(1048576)
/* Firmware and kernel keep some of the memory that EC2 counts. */
#define RAM_LEAST 0.85
#define RAM_MOST  1.02

/* ---- devices of this machine ---- */

/* The root is a variable of the Neuron tools. */
static int neuron_devices(void)
{
	const char *root = getenv("NEURON_SYSFS_ROOT");
	int count = fs_count_numbered(root && *root ? root : NEURON_SYS, "neuron");

	return count > 0 ? count : 0;
}

static json_t *shown_here(const char *by)
{
	int gpus = fs_count_numbered("/dev", "nvidia");
	int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	json_t *shown = json_object();

	js_put_str(shown, "by", by);
	js_put(shown, "devices", json_integer(neuron_devices()));
	js_put(shown, "gpus", json_integer(gpus > 0 ? gpus : 0));
	js_put(shown, "vcpus", json_integer(sysconf(_SC_NPROCESSORS_CONF)));
	if (pages > 0 && size > 0)
		js_put(shown, "ram_bytes", json_integer(pages * size));
	return shown;
}

static void differ_in_count(const json_t *row, const json_t *shown, const char *key,
			    const char *what, json_t *ret)
{
	int64_t has = js_int(row, key, 0), shows = js_int(shown, key, 0);
	AUTO(auto_free) char *words = NULL;

	if (!json_object_get(row, key) || has == shows)
		return;
	words = mem_format("%s of %s: %lld, of this machine: %lld", what, js_str(row, "type"),
			   (long long)has, (long long)shows);
	json_array_append_new(ret, json_string(words));
}

static void differ_in_memory(const json_t *row, const json_t *shown, json_t *ret)
{
	double has = (double)js_int(row, "ram_mib", 0) * (double)MIB;
	double shows = (double)js_int(shown, "ram_bytes", 0);
	AUTO(auto_free) char *of_type = text_format_bytes((uint64_t)has);
	AUTO(auto_free) char *here = text_format_bytes((uint64_t)shows);
	AUTO(auto_free) char *words = NULL;

	if (has <= 0 || shows <= 0 || (shows >= has * RAM_LEAST && shows <= has * RAM_MOST))
		return;
	words = mem_format("memory of %s: %s, of this machine: %s", js_str(row, "type"), of_type,
			   here);
	json_array_append_new(ret, json_string(words));
}

/* Returns the differences between a type's row and this machine, in sentences. */
static json_t *differences(const json_t *row, const json_t *shown)
{
	json_t *ret = json_array();

	differ_in_count(row, shown, "devices", "Neuron devices", ret);
	differ_in_count(row, shown, "gpus", "GPUs", ret);
	differ_in_count(row, shown, "vcpus", "vCPUs", ret);
	differ_in_memory(row, shown, ret);
	return ret;
}

/* ---- type of this machine ---- */

/* Goes on without a type: it would have been for the price, and for the cores. */
static int left_open(struct spec *spec, const char *why, struct err **err)
{
	/* A limit of the user's configuration does not count without a price. Who does not ask
	 * refuses nothing for want of the answer. */
	if (!patience_is_offline() && json_is_real(spec_get(spec, SPEC_LIMITS_COST)) &&
	    spec_price(spec) <= 0 && !spec_is_configured(spec, SPEC_LIMITS_COST)) {
		err_set(err, EXIT_REFUSED,
			"'limits.cost' needs a price, and 'resources.instance: auto' found no type "
			"of EC2: %s",
			why);
		return err_hint(err, "name the type, or set the price of a node and hour in USD: "
				     "resources: {price: 21.50}");
	}
	spec_put_here(spec, json_pack("{s:s}", "unknown", why));
	return 0;
}

/* Gives the problems of the type that was found the place of `auto`, for nobody typed `set`. */
static void take_place(const struct spec *spec, const char *set, struct problems *problems)
{
	AUTO(auto_free) char *before = mem_format("%s: ", set);
	const char *file;
	int line, column;

	if (!spec_position(spec, "resources.instance", &file, &line, &column))
		return;
	for (size_t i = 0; i < problems->count; i++) {
		struct problem *problem = &problems->list[i];
		char *plain;

		if (!text_starts(problem->message, before))
			continue;
		plain = mem_copy(problem->message + strlen(before));
		free(problem->message);
		free(problem->file);
		problem->message = plain;
		problem->file = mem_copy(file);
		problem->line = line;
		problem->column = column;
	}
}

static int ask(struct spec **spec, struct problems *problems, struct err **err)
{
	AUTO(auto_free) char *type = NULL;
	AUTO(auto_free) char *why = NULL;
	AUTO(auto_free) char *set = NULL;
	AUTO(err_freep) struct err *unanswered = NULL;
	AUTO(spec_freep) struct spec *named = NULL;
	json_auto_t *origins = spec_origins(*spec);
	json_t *here;
	int found = metadata_instance_type(&type, &why, &unanswered), result;

	if (found <= 0)
		return left_open(*spec, found < 0 ? patience_reason(unanswered) : why, err);
	set = mem_format("resources.instance=%s", type);
	problems_release(problems);
	*problems = (struct problems){ 0 };
	result = spec_with(*spec, (char *[]){ set, NULL }, &named, problems);
	take_place(*spec, set, problems);
	if (result < 0)
		return -1;
	spec_freep(spec);
	*spec = TAKE(named);
	here = shown_here(METADATA);
	js_put(here, "written", json_incref(json_object_get(origins, "resources.instance")));
	spec_put_here(*spec, here);
	return 0;
}

int machine_here_find(struct spec **spec, struct problems *problems, struct err **err)
{
	if (!spec_says(*spec, SPEC_ENGINE, "local"))
		return 0;
	if (spec_says(*spec, SPEC_RESOURCES_INSTANCE, "auto"))
		return ask(spec, problems, err);
	if (spec_instance(*spec))
		spec_put_here(*spec, shown_here("spec"));
	return 0;
}

/* ---- view for readers ---- */

json_t *machine_here_view(const json_t *plan)
{
	const json_t *row = json_object_get(plan, "instance");
	const json_t *shown = json_object_get(plan, "here");
	json_t *view;

	if (!row || !shown)
		return NULL;
	view = json_object();
	js_put_str(view, "type", js_str(row, "type"));
	json_object_update(view, (json_t *)(uintptr_t)shown);
	json_object_del(view, "written");
	js_put(view, "differs", differences(row, shown));
	return view;
}

const char *machine_here_unknown(const json_t *plan)
{
	return js_str(json_object_get(plan, "here"), "unknown");
}

void machine_here_warn(const json_t *plan)
{
	json_auto_t *view = machine_here_view(plan);
	const json_t *one;
	size_t i;

	if (machine_here_unknown(plan))
		out_note("resources.instance: auto is no type of EC2 here, so price and cores are "
			 "not "
			 "known: %s",
			 machine_here_unknown(plan));
	json_array_foreach (json_object_get(view, "differs"), i, one)
		out_note("warning: resources.instance: %s", json_string_value(one));
}

void machine_here_print(const json_t *plan)
{
	json_auto_t *view = machine_here_view(plan);
	const json_t *one;
	size_t i;

	if (!view)
		return;
	out_line("machine: %s%s", js_str(view, "type"),
		 js_is(view, "by", METADATA) ? ", as the instance metadata service says"
					     : ", as the spec says");
	json_array_foreach (json_object_get(view, "differs"), i, one)
		out_line("         %s", json_string_value(one));
}
