/* The build id of this program: see maker.h. */
#include "jobs/base/maker.h"

#include <link.h>
#include <string.h>

static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		const char *end = at + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			ElfW(Nhdr) note;
			const char *name = at + sizeof note, *text;

			memcpy(&note, at, sizeof note);
			text = name + ((note.n_namesz + 3) & ~3u);
			at = text + ((note.n_descsz + 3) & ~3u);
			if (at > end || note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp(name, ELF_NOTE_GNU, 4) != 0)
				continue;
			memcpy(arg, text, note.n_descsz < MAKER_MAX ? note.n_descsz : MAKER_MAX);
			return 1;
		}
	}
	return -1; /* the program is the first object; the others are not looked at */
}

bool maker_find(unsigned char ret[MAKER_MAX])
{
	memset(ret, 0, MAKER_MAX);
	return dl_iterate_phdr(find_build_id, ret) > 0;
}
