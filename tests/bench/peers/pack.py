"""What people do today to pack a source folder: tarfile. pack.py ROOT ARCHIVE"""

import sys
import tarfile

with tarfile.open(sys.argv[2], "w:gz") as archive:
    archive.add(sys.argv[1], arcname=".", filter=lambda member: None if member.name == "./.git" else member)
