/*
 * Versions of drivers and system: see versions_machine.h. Sources of outside facts: os-release(5);
 * the kernel's documentation of /sys/module/<name>/version (MODULE_VERSION, which the drivers of
 * Neuron, NVIDIA, AMD and EFA set); /proc/driver/nvidia/version, in which the number follows the
 * word "Module", or in the open driver "Module for <architecture>".
 */
#include "jobs/node/setup/versions_machine.h"

#include <ctype.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"

#define FILE_BYTES   4096
#define VERSION_MAX  100
#define NVIDIA_PROC  "/proc/driver/nvidia/version"
#define VERSIONS_MAX 200 /* members of the object: a node's report stays small */

/* Foreign files hold anything. */
void versions_machine_put(json_t *versions, const char *name, const char *text, size_t len)
{
	AUTO(sb_release) struct sb plain = SB_INIT;

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0 || json_object_size(versions) >= VERSIONS_MAX)
		return;
	text_escape(&plain, text, len < VERSION_MAX ? len : VERSION_MAX, false);
	js_put_str(versions, name, plain.text);
}

/* Reads a small file; false if it is not there, or larger. */
static bool read_small(const char *root, const char *path, struct sb *ret)
{
	AUTO(auto_free) char *file = mem_format("%s%s", root, path);
	AUTO(err_freep) struct err *ignored = NULL;

	return fs_exists(file) && fs_read(file, FILE_BYTES, ret, &ignored) == 0 && ret->len > 0;
}

static void add_os(json_t *versions, const char *root)
{
	static const char name[] = "PRETTY_NAME=";
	AUTO(sb_release) struct sb text = SB_INIT;
	const char *at;

	if (!read_small(root, "/etc/os-release", &text))
		return;
	at = text_starts(text.text, name) ? text.text : strstr(text.text, "\nPRETTY_NAME=");
	if (!at)
		return;
	at = strchr(at, '=') + 1;
	at += strspn(at, "\"'");
	versions_machine_put(versions, "os", at, strcspn(at, "\"'\r\n"));
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …": the first word behind
 * "Module" that begins with a digit and holds a dot. */
static bool add_nvidia(json_t *versions, const char *root)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const char *at = read_small(root, NVIDIA_PROC, &text) ? strstr(text.text, " Module") : NULL;

	while (at && *at && *at != '\n') {
		size_t len;

		at += strspn(at, " \t");
		len = strcspn(at, " \t\r\n");
		if (isdigit((unsigned char)*at) && memchr(at, '.', len)) {
			versions_machine_put(versions, "nvidia-driver", at, len);
			return true;
		}
		at += len;
	}
	return false;
}

void versions_machine_add(json_t *versions, const char *root)
{
	static const struct {
		const char *name, *path;
	} drivers[] = {
		{ "neuron-driver", "/sys/module/neuron/version" },
		{ "nvidia-driver", "/sys/module/nvidia/version" },
		{ "amdgpu-driver", "/sys/module/amdgpu/version" },
		{ "efa-driver", "/sys/module/efa/version" },
	};

	add_os(versions, root);
	add_nvidia(versions, root);
	for (size_t i = 0; i < STK_LENGTH(drivers); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		if (!json_object_get(versions, drivers[i].name) &&
		    read_small(root, drivers[i].path, &text))
			versions_machine_put(versions, drivers[i].name, text.text,
					     strcspn(text.text, "\r\n"));
	}
}
