# world_planted: world_fast, with the bugs of plants/ in it (plants.h). The sources that a patch changes
# are copied, patched and compiled anew; all else is that of world_fast.
file(GLOB world_patches CONFIGURE_DEPENDS ${world_dir}/plants/*.patch)
execute_process(COMMAND ${world_dir}/plants/apply.sh OUTPUT_VARIABLE planted_files
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" planted_files "${planted_files}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${world_patches})

set(planted_dir ${CMAKE_CURRENT_BINARY_DIR}/planted)
set(planted_sources ${planted_files})
list(TRANSFORM planted_sources PREPEND ${planted_dir}/)
set(planted_from ${planted_files})
list(TRANSFORM planted_from PREPEND ${PROJECT_SOURCE_DIR}/)
add_custom_command(OUTPUT ${planted_sources} ${planted_dir}/plants_list.c
	COMMAND ${world_dir}/plants/apply.sh ${planted_dir} ${planted_files}
	DEPENDS ${world_patches} ${planted_from} ${world_dir}/plants/apply.sh)
add_custom_target(planted_copies DEPENDS ${planted_sources} ${planted_dir}/plants_list.c)

set(planted_archives "")
foreach(box ${world_boxes})
	set(archive ${CMAKE_CURRENT_BINARY_DIR}/libworld_${box}_fast.a)
	set(sources ${planted_sources})
	list(FILTER sources INCLUDE REGEX "^${planted_dir}/(jobs/)?${box}/")
	if(sources)
		set(changed planted_box_${box})
		set(planted ${CMAKE_CURRENT_BINARY_DIR}/libplanted_${box}.a)
		add_library(${changed} OBJECT EXCLUDE_FROM_ALL ${sources})
		add_dependencies(${changed} planted_copies stoker_${box})
		target_link_libraries(${changed} PRIVATE world_flags_fast)
		target_include_directories(${changed} PRIVATE
			$<TARGET_PROPERTY:stoker_${box},INCLUDE_DIRECTORIES>)
		target_compile_definitions(${changed} PRIVATE
			$<TARGET_PROPERTY:stoker_${box},COMPILE_DEFINITIONS>)
		target_compile_options(${changed} PRIVATE -U_FORTIFY_SOURCE
			-include ${world_dir}/planted.h)
		# An object takes the place of the member of its name.
		add_custom_command(OUTPUT ${planted}
			COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:world_box_fast_${box}> ${planted}
			COMMAND ${CMAKE_AR} r ${planted} $<TARGET_OBJECTS:${changed}>
			COMMAND ${CMAKE_OBJCOPY} ${world_sections} ${planted}
			DEPENDS ${changed} $<TARGET_OBJECTS:${changed}> world_box_fast_${box}
			COMMAND_EXPAND_LISTS)
		set(archive ${planted})
	endif()
	list(APPEND planted_archives ${archive})
endforeach()
add_custom_target(planted_archives DEPENDS ${planted_archives})

add_executable(world_planted EXCLUDE_FROM_ALL main.c ${planted_dir}/plants_list.c $<TARGET_OBJECTS:world_kernel_fast>)
add_dependencies(world_planted planted_archives world_copies_fast)
target_link_libraries(world_planted PRIVATE world_flags_fast cmocka
	-Wl,--start-group ${planted_archives} -Wl,--end-group ${world_libraries})
target_link_options(world_planted PRIVATE ${world_wraps})
