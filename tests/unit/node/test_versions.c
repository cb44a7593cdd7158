/* What a node tells of its versions: drivers and system from files, packages from their metadata.
 */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/setup/versions.h"
#include "jobs/node/setup/versions_machine.h"

/* ---- drivers and system ---- */

static void put(struct place *place, const char *path, const char *text)
{
	AUTO(auto_free) char *file = place_path(place, path);

	write_file(file, text, 0600);
}

static void a_driver_tells_its_version_by_its_files(void **state)
{
	static const struct {
		const char *path, *text, *name, *want;
	} rows[] = {
		{ "sys/module/neuron/version", "2.19.64.0\n", "neuron-driver", "2.19.64.0" },
		{ "sys/module/efa/version", "2.10.0g\n", "efa-driver", "2.10.0g" },
		{ "sys/module/amdgpu/version", "6.7.0\n", "amdgpu-driver", "6.7.0" },
		{ "sys/module/nvidia/version", "550.90.07\n", "nvidia-driver", "550.90.07" },
		{ "proc/driver/nvidia/version",
		  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 "
		  "UTC 2023\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
		  "nvidia-driver", "535.129.03" },
		{ "proc/driver/nvidia/version",
		  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release "
		  "Build "
		  " (dvs-builder@U16-I3)  Fri Aug 16 21:22:33 UTC 2024\n",
		  "nvidia-driver", "560.35.03" },
		/* Nothing of the second line, whatever it says. */
		{ "proc/driver/nvidia/version", "NVRM: a Module of no number\nGCC Module 12.2\n",
		  "nvidia-driver", NULL },
		{ "sys/module/neuron/version", "\n", "neuron-driver", NULL },
		{ "sys/module/neuron/version", "2.1\x1b[2J\n", "neuron-driver", "2.1\\x1b[2J" },
		{ "etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		  "os", "Debian GNU/Linux 12 (bookworm)" },
		{ "etc/os-release", "PRETTY_NAME=Alpine\n", "os", "Alpine" },
		{ "etc/os-release", "NAME=PRETTY_NAME\n", "os", NULL },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *root = mem_format("%s/%zu", ((struct place *)*state)->root, i);
		AUTO(auto_free) char *path = mem_format("%zu/%s", i, rows[i].path);
		json_auto_t *versions = json_object();

		put(*state, path, rows[i].text);
		versions_machine_add(versions, root);
		if (rows[i].want)
			assert_string_equal(js_str(versions, rows[i].name), rows[i].want);
		assert_int_equal(json_object_size(versions), rows[i].want ? 1 : 0);
	}
}

static void the_driver_in_use_goes_before_the_module_on_disk(void **state)
{
	json_auto_t *versions = json_object();

	put(*state, "proc/driver/nvidia/version", "NVRM version: X Kernel Module  535.1.1  y\n");
	put(*state, "sys/module/nvidia/version", "550.2\n");
	versions_machine_add(versions, ((struct place *)*state)->root);
	assert_string_equal(js_str(versions, "nvidia-driver"), "535.1.1");
}

/* ---- Python ---- */

/* A virtual environment in `folder`, with these distributions. */
static void make_venv(struct place *place, const char *folder, const char *const *distributions)
{
	AUTO(auto_free) char *python = mem_format("%s/bin/python3", folder);
	AUTO(auto_free) char *config = mem_format("%s/pyvenv.cfg", folder);
	AUTO(auto_free) char *program = NULL;

	put(place, config, "home = /usr/bin\nversion = 3.12.4\n");
	put(place, python,
	    "\x7f"
	    "ELF");
	program = place_path(place, python);
	assert_int_equal(chmod(program, 0700), 0);
	for (; *distributions; distributions++) {
		AUTO(auto_free)
		char *file = mem_format("%s/lib/python3.12/site-packages/%s.dist-info/METADATA",
					folder, *distributions);

		put(place, file, "");
	}
}

/* Returns what a node tells of this command with this PATH. */
static json_t *inspect(struct place *place, json_t *command, const char *path)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(node_report_release) struct node_report said = { 0 };
	AUTO(command_env_release) struct command_env env = { 0 };
	json_t *order = order_for(place, "true");

	js_put(order, "command", command);
	load(&config, place, order, "0");
	command_env_put(&env, "PATH", path);
	versions_inspect(&config, &env, &said);
	assert_non_null(js_str(said.versions, "kernel"));
	return json_incref(said.versions);
}

static void assert_version(const json_t *versions, const char *name, const char *want)
{
	const char *value = js_str(versions, name);

	if (!want ? value != NULL : !value || strcmp(value, want) != 0)
		fail_msg("%s is %s", name, value ? value : "not told");
}

static void packages_are_those_of_the_commands_own_python(void **state)
{
	static const char *const mine[] = { "torch-2.5.1+cu124",     "torch_xla-2.5.0",
					    "neuronx_cc-2.16.345.0", "requests-2.1",
					    "tokenizers-0.20.3",     NULL };
	static const char *const other[] = { "torch-1.0", NULL };
	AUTO(auto_free) char *own = place_path(*state, "own/bin");
	AUTO(auto_free) char *far = place_path(*state, "far/bin/python3");
	json_auto_t *by_path = NULL, *by_place = NULL, *by_shell = NULL, *by_none = NULL;

	make_venv(*state, "own", mine);
	make_venv(*state, "far", other);
	by_path = inspect(*state, json_pack("[s, s]", "python3", "train.py"), own);
	assert_version(by_path, "python", "3.12");
	assert_version(by_path, "torch", "2.5.1+cu124");
	assert_version(by_path, "torch-xla", "2.5.0");
	assert_version(by_path, "neuronx-cc", "2.16.345.0");
	assert_version(by_path, "tokenizers", "0.20.3");
	assert_version(by_path, "requests", NULL);
	/* A program by its path, whatever PATH holds. */
	by_place = inspect(*state, json_pack("[s, s]", far, "train.py"), own);
	assert_version(by_place, "torch", "1.0");
	assert_version(by_place, "neuronx-cc", NULL);
	/* A shell's command finds Python in PATH. */
	by_shell = inspect(*state, json_pack("[s, s, s]", "/bin/sh", "-c", "python3 x"), own);
	assert_version(by_shell, "torch", "2.5.1+cu124");
	by_none = inspect(*state, json_pack("[s]", "/bin/true"), "/nowhere");
	assert_version(by_none, "python", NULL);
}

/* A path that cannot be expanded or found leaves the versions short, and is no failure. */
static void a_program_that_is_not_there_leaves_what_else_is_known(void **state)
{
	static const char *const mine[] = { "jax-0.7.2", NULL };
	AUTO(auto_free) char *own = place_path(*state, "own/bin");
	json_auto_t *absent = NULL, *unset = NULL;

	make_venv(*state, "own", mine);
	absent = inspect(*state, json_pack("[s]", "no-such-program"), own);
	assert_version(absent, "jax", "0.7.2");
	unset = inspect(*state, json_pack("[s]", "${STOKER_NOWHERE}/python"), own);
	assert_version(unset, "jax", "0.7.2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_driver_tells_its_version_by_its_files),
		TEST(the_driver_in_use_goes_before_the_module_on_disk),
		TEST(packages_are_those_of_the_commands_own_python),
		TEST(a_program_that_is_not_there_leaves_what_else_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
