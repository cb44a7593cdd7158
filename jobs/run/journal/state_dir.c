/* Local or shared, by the type of the file system: see state_dir.h. */
#include "jobs/run/journal/state_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/plan/own_places.h"

/* Sources: statfs(2) and linux/magic.h; for Lustre, GPFS, BeeGFS, PanFS and OrangeFS their own
 * sources. sshfs, s3fs, mountpoint-s3, gcsfuse and virtiofs run on FUSE. */
static const unsigned long network_types[] = {
	0x6969,     /* NFS */
	0x517B,     /* SMB */
	0xFF534D42, /* CIFS */
	0xFE534D42, /* SMB 2 and later */
	0x0BD00BD0, /* Lustre */
	0x47504653, /* GPFS (Spectrum Scale) */
	0x19830326, /* BeeGFS */
	0x00C36400, /* Ceph */
	0x01021997, /* 9p */
	0x65735546, /* FUSE */
	0x5346414F, /* AFS */
	0x6B414653, /* AFS of the kernel */
	0x73757245, /* Coda */
	0xAAD7AAEA, /* PanFS */
	0x20030528, /* OrangeFS */
	0xBACBACBC, /* shared folders of VMware */
	0x786F4256, /* shared folders of VirtualBox */
	0x01161970, /* GFS2 */
	0x7461636F, /* OCFS2 */
};

bool state_dir_type_is_network(unsigned long type)
{
	for (size_t i = 0; i < STK_LENGTH(network_types); i++)
		if ((type & 0xFFFFFFFF) == network_types[i])
			return true;
	return false;
}

bool state_dir_on_network(const char *path)
{
	AUTO(auto_free) char *at = fs_absolute(path);
	struct statfs fs;

	while (statfs(at, &fs) < 0) {
		char *parent = fs_dirname(at);

		if (strcmp(parent, at) == 0) {
			free(parent);
			return false;
		}
		free(at);
		at = parent;
	}
	return state_dir_type_is_network((unsigned long)fs.f_type);
}

static bool is_ours(const char *name)
{
	static const char *const names[] = { ".",
					     "..",
					     JOURNAL_SQLITE_FILE,
					     JOURNAL_SQLITE_FILE "-wal",
					     JOURNAL_SQLITE_FILE "-shm",
					     "runs",
					     "workspace",
					     "digests",
					     OWN_PLACES_FILE };

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, FS_TEMP_PREFIX, strlen(FS_TEMP_PREFIX)) == 0;
}

/* Does not open the file, for closing it would drop SQLite's locks of this process. A failure is
 * ignored. */
static void tighten_one(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode) &&
	    st.st_uid == geteuid() && (st.st_mode & 077) &&
	    fchmodat(dir_fd, name, st.st_mode & 0700, 0) < 0)
		return;
}

void state_dir_tighten(const char *dir)
{
	DIR *stream = opendir(dir);
	bool all_ours = true;

	if (!stream)
		return;
	for (struct dirent *entry; (entry = readdir(stream));) {
		if (!is_ours(entry->d_name))
			all_ours = false;
		else if (entry->d_name[0] != '.')
			tighten_one(dirfd(stream), entry->d_name);
	}
	if (all_ours)
		tighten_one(dirfd(stream), ".");
	closedir(stream);
}
