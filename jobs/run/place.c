/* Local or shared, by the type of the file system: see place.h. */
#include "jobs/run/place.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "jobs/base/fs.h"

/* statfs(2) and linux/magic.h; Lustre, GPFS, BeeGFS, PanFS and OrangeFS from their
 * own sources. On FUSE run sshfs, s3fs, mountpoint-s3, gcsfuse and virtiofs. */
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

bool fs_type_is_network(unsigned long type)
{
	for (size_t i = 0; i < STK_LENGTH(network_types); i++)
		if ((type & 0xFFFFFFFF) == network_types[i])
			return true;
	return false;
}

bool place_on_network(const char *path)
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
	return fs_type_is_network((unsigned long)fs.f_type);
}
