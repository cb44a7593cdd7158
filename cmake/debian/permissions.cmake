# Run by cpack before it packs: folders are open to all, whatever the umask of
# whoever builds the package.
execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -type d -exec chmod 0755 {} +
	COMMAND_ERROR_IS_FATAL ANY)
