/* Checks of this machine: programs, the state, and room on its disks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "aws/http/curl_library.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/run/doctor/doctor_internal.h"
#include "jobs/run/journal/state_dir.h"
#include "jobs/run/plan/agent.h"
#include "jobs/run/plan/plan.h"

/* A journal grows by some MB a run; caches and checkpoints need more. */
#define ROOM_LEAST  ((uint64_t)64 << 20)
#define ROOM_LITTLE ((uint64_t)1 << 30)

/* libcurl is loaded when it is needed: who uses no AWS needs none. */
void doctor_here_version(struct doctor_talk *talk)
{
	AUTO(err_freep) struct err *why = NULL;

	if (talk->needs_aws && curl_library_load(&why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "%s", talk->versions);
}

void doctor_here_agent(struct doctor_talk *talk)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *folder = NULL;
	size_t files = 0;

	if (agent_find(&folder, &files, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the agent is in '%s': %zu files", folder,
			       files);
}

/* ---- tools ---- */

/* True if the command's program is a Python that does not have the compiler. */
static bool lacks_compiler(const json_t *plan, const char **ret_package)
{
	const json_t *compile = json_object_get(plan, "compile");
	const json_t *has = json_object_get(compile, "compiler");
	const struct compile_kind *kind =
		compile ? compile_kind_find(js_str(compile, "kind")) : NULL;

	*ret_package = kind ? kind->package : NULL;
	return *ret_package && js_str(has, "python") && !js_str(has, *ret_package);
}

/* Engine local starts the command here, from the folder of the source. */
void doctor_here_tools(struct doctor_talk *talk)
{
	const json_t *phase = plan_phase(talk->plan, flow_phase_names[PHASE_TRAIN]);
	const char *program =
		json_string_value(json_array_get(json_object_get(phase, "command"), 0));
	const char *root = js_str(json_object_get(talk->plan, "source"), "root");
	AUTO(auto_free)
	char *found =
		program ? proc_find_program(program, root ? root : ".", getenv("PATH")) : NULL;
	const char *package;
	json_t *finding;

	if (program && !found) {
		finding = doctor_finding(talk, DOCTOR_FAIL,
					 "install it, correct 'command', or add its folder to PATH",
					 "the command's program '%s' is not found", program);
		js_put_str(finding, "field", "command");
	} else if (program) {
		doctor_finding(talk, DOCTOR_OK, NULL, "the command's program is '%s'", found);
	}
	if (!lacks_compiler(talk->plan, &package))
		return;
	finding = doctor_finding(talk, DOCTOR_WARN,
				 "install it there, or choose another kind in 'compile.kind'",
				 "the Python of '%s' has no '%s'", program, package);
	js_put_str(finding, "field", "compile.kind");
}

/* ---- state and disks ---- */

/* Kinds that people know by name; statfs(2). */
static const struct {
	unsigned long type;
	const char *name;
} file_systems[] = {
	{ 0xEF53, "ext4" },       { 0x58465342, "xfs" },   { 0x9123683E, "btrfs" },
	{ 0x2FC12FC1, "zfs" },    { 0x01021994, "tmpfs" }, { 0x794C7630, "overlay" },
	{ 0x6969, "nfs" },        { 0xFF534D42, "cifs" },  { 0xFE534D42, "smb" },
	{ 0x0BD00BD0, "lustre" }, { 0x65735546, "fuse" },
};

#define TMPFS 0x01021994

static const char *file_system_name(unsigned long type)
{
	for (size_t i = 0; i < STK_LENGTH(file_systems); i++)
		if (file_systems[i].type == (type & 0xFFFFFFFF))
			return file_systems[i].name;
	return "file system of another kind";
}

/* Returns the nearest folder that exists. The caller frees it. */
static char *nearest(const char *path)
{
	char *at = fs_absolute(path);

	while (!fs_exists(at) && strcmp(at, "/") != 0) {
		char *parent = fs_dirname(at);

		free(at);
		at = parent;
	}
	return at;
}

static void tell_errno(struct doctor_talk *talk, int os_errno, const char *doing, const char *path)
{
	AUTO(err_freep) struct err *why = NULL;

	fs_error(&why, os_errno, "cannot %s '%s'", doing, path);
	doctor_finding_of(talk, why, NULL);
}

void doctor_here_state(struct doctor_talk *talk)
{
	AUTO(auto_free) char *at = nearest(talk->state_dir);
	struct statfs fs;
	const char *name;

	if (talk->state_why)
		doctor_finding_of(talk, talk->state_why, NULL);
	else if (!fs_is_dir(at))
		tell_errno(talk, ENOTDIR, "use the state", talk->state_dir);
	else if (access(at, W_OK | X_OK) < 0)
		tell_errno(talk, errno, "write to the state", talk->state_dir);
	else if (statfs(at, &fs) < 0)
		tell_errno(talk, errno, "look at the state", talk->state_dir);
	else {
		name = file_system_name((unsigned long)fs.f_type);
		if ((unsigned long)fs.f_type == TMPFS)
			doctor_finding(
				talk, DOCTOR_WARN,
				"name a folder on a disk with --state or STOKER_STATE",
				"'%s' is in memory (%s): it is gone once the machine restarts",
				talk->state_dir, name);
		else
			doctor_finding(talk, DOCTOR_OK, NULL, "'%s' may be written: %s, %s",
				       talk->state_dir, name,
				       state_dir_on_network(at) ? "on a network"
								: "of this machine");
	}
}

static void tell_room(struct doctor_talk *talk, const char *path)
{
	AUTO(auto_free) char *at = nearest(path);
	AUTO(sb_release) struct sb words = SB_INIT;
	struct statvfs fs;
	json_t *finding;
	uint64_t room;

	if (statvfs(at, &fs) < 0) {
		tell_errno(talk, errno, "look at", at);
		return;
	}
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	sb_addf(&words, "%.1f GiB free", (double)room / ((double)((uint64_t)1 << 30)));
	finding = doctor_finding(talk,
				 room < ROOM_LEAST    ? DOCTOR_FAIL
				 : room < ROOM_LITTLE ? DOCTOR_WARN
						      : DOCTOR_OK,
				 room < ROOM_LITTLE ? "make room, or name another folder" : NULL,
				 "%s", words.text);
	js_put_str(finding, "on", path);
}

/* Of the folders that a run writes here. */
void doctor_here_disk(struct doctor_talk *talk)
{
	const char *places[] = {
		talk->state_dir,
		js_str(talk->plan, "workspace"),
		js_str(json_object_get(talk->plan, "compile"), "cache"),
		js_str(json_object_get(talk->plan, "checkpoint"), "url"),
	};

	for (size_t i = 0; i < STK_LENGTH(places); i++)
		if (places[i] && places[i][0] == '/')
			tell_room(talk, places[i]);
}
