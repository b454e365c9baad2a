# Run at every build: writes build_info.cpp, only when something changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
set(content "#include \"base/build_info.h\"\n\nnamespace sol {\n\nstd::string build_version() { return \"${VERSION}\"; }\nstd::string build_commit() { return \"${commit}\"; }\n\n}  // namespace sol\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
