# What is installed where, and the Debian package of it.
#
# Everything but the package's own papers is installed by 'cmake --install'; the
# program finds its agent from where it stands itself, so any prefix will do.
# The package is made by cpack, not by debhelper: what is installed is then
# written down once, and the top of the tree needs no folder debian/.

include(GNUInstallDirs)
set(private_dir lib/stoker) # of stoker alone: the same on every system
set(agent_dir ${private_dir}/agent)
set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# Everything that is made of one commit has the date of the commit.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
	set(epoch "")
	if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
		execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
			OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	endif()
	if(NOT epoch)
		file(TIMESTAMP ${PROJECT_SOURCE_DIR}/CMakeLists.txt epoch "%s" UTC)
	endif()
	set(ENV{SOURCE_DATE_EPOCH} ${epoch})
endif()

# The pages of man(1) are printed by the program whose tables they show.
string(TIMESTAMP manual_date "%Y-%m-%d" UTC) # or SOURCE_DATE_EPOCH
foreach(page stoker.1 stoker-spec.5 stoker-json.7 stoker-node.8)
	string(REGEX REPLACE "\\..*" "" name ${page})
	string(REGEX REPLACE ".*\\." "" section ${page})
	set(file ${PROJECT_BINARY_DIR}/man/${page})
	add_custom_command(OUTPUT ${file}.gz
		COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
		COMMAND stoker manual ${name} ${manual_date} > ${file}
		COMMAND gzip -9nf ${file}
		DEPENDS stoker)
	list(APPEND manual ${file}.gz)
	install(FILES ${file}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
add_custom_target(manual ALL DEPENDS ${manual})

# The schema of specs, for editors.
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/stoker.schema.json
	COMMAND stoker schema > ${PROJECT_BINARY_DIR}/stoker.schema.json
	DEPENDS stoker)
add_custom_target(schema ALL DEPENDS ${PROJECT_BINARY_DIR}/stoker.schema.json)
install(FILES ${PROJECT_BINARY_DIR}/stoker.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker)

install(TARGETS stoker DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS stoker-post stoker-derive DESTINATION ${private_dir})
install(TARGETS stoker-node DESTINATION ${agent_dir})
install(PROGRAMS ${PROJECT_BINARY_DIR}/agent/start DESTINATION ${agent_dir})
install(DIRECTORY ${PROJECT_BINARY_DIR}/agent/lib DESTINATION ${agent_dir}
	FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
	DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
		WORLD_READ WORLD_EXECUTE)

set(scripts ${PROJECT_SOURCE_DIR}/cmd/completion)
install(FILES ${scripts}/bash.completion RENAME stoker
	DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${scripts}/fish.completion RENAME stoker.fish
	DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${scripts}/zsh.completion RENAME _stoker DESTINATION ${zsh_dir} COMPONENT zsh)

set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/stoker)
set(quickstart ${PROJECT_SOURCE_DIR}/configs/quickstart)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${doc_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${doc_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/templates DESTINATION ${doc_dir}/examples)
install(FILES ${quickstart}/stoker.yaml ${quickstart}/train.py ${quickstart}/requirements.txt
	DESTINATION ${doc_dir}/examples/quickstart)

# Licences of what the agent and the programs bring along from other packages.
set(bring_along ${curl_runtime}
	/usr/share/doc/ca-certificates/copyright ${dygraphs_program})
if(static_archive)
	list(APPEND bring_along ${static_archive})
endif()
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/licences/common-licenses
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/licences.sh ${PROJECT_BINARY_DIR}/licences
		${PROJECT_BINARY_DIR}/agent/stoker-node -- ${bring_along}
	DEPENDS agent ${PROJECT_SOURCE_DIR}/cmake/licences.sh ${PROJECT_SOURCE_DIR}/cmake/libraries.sh)
add_custom_target(licences ALL DEPENDS ${PROJECT_BINARY_DIR}/licences/common-licenses)
install(DIRECTORY ${PROJECT_BINARY_DIR}/licences DESTINATION ${doc_dir})

# ---- for any Linux: an archive and a wheel ----

# bin/stoker, lib/stoker/stoker-post and stoker-derive become copies of stoker-launch, which start the programs
# in lib/stoker/programs through the agent's loader, with the agent's libraries and those that
# are added in lib/stoker/lib.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" git_version "${libgit2_VERSION}")
find_file(git_runtime libgit2.so.${git_version} PATHS ${libgit2_LIBDIR} REQUIRED)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${doc_dir} COMPONENT bundle EXCLUDE_FROM_ALL)
# The owner's word on stoker's own licence, once there is one.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${doc_dir} COMPONENT bundle OPTIONAL
	EXCLUDE_FROM_ALL)
add_custom_target(tarball
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/bundle.sh ${PROJECT_BINARY_DIR} ${PROJECT_VERSION}
		${CMAKE_SYSTEM_PROCESSOR} $ENV{SOURCE_DATE_EPOCH} ${CMAKE_COMMAND}
		$<TARGET_FILE:stoker-launch> ${git_runtime})
add_dependencies(tarball stoker stoker-post stoker-derive stoker-node stoker-launch agent manual schema licences)

# ---- the Debian package ----

# deb_text(FILE NAME): a compressed text among the package's papers.
function(deb_text file name)
	set(packed ${PROJECT_BINARY_DIR}/debian/${name}.gz)
	add_custom_command(OUTPUT ${packed}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/debian
		COMMAND gzip -9nc ${file} > ${packed}
		DEPENDS ${file})
	add_custom_target(deb_${name} ALL DEPENDS ${packed})
	install(FILES ${packed} DESTINATION ${doc_dir} COMPONENT debian EXCLUDE_FROM_ALL)
endfunction()
deb_text(${PROJECT_SOURCE_DIR}/cmake/debian/changelog changelog.Debian)
deb_text(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian/copyright DESTINATION ${doc_dir}
	COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian/lintian-overrides RENAME stoker
	DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT debian EXCLUDE_FROM_ALL)
# Where Debian's zsh looks for what packages bring.
install(FILES ${scripts}/zsh.completion RENAME _stoker
	DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS
	"${PROJECT_BINARY_DIR};stoker;Unspecified;/;${PROJECT_BINARY_DIR};stoker;debian;/")
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_SOURCE_DIR}/build)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "stoker maintainers <maintainers@stoker.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "carries training jobs through precompile, proof and training")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"stoker takes a YAML job spec and carries a training job through two phases
without wasting an accelerator-hour: a short run that fills the compile cache
with every graph that training needs, and the full run, started only when the
cache is proved complete. Runs are journalled, retried and resumed.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/debian/depends.cmake)
set(CPACK_STOKER_PROGRAMS -e${PROJECT_BINARY_DIR}/stoker -e${PROJECT_BINARY_DIR}/stoker-post
	-e${PROJECT_BINARY_DIR}/stoker-derive)
set(CPACK_STOKER_LIBGIT2 ${git_version})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/permissions.cmake)
include(CPack)
