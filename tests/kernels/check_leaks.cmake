# Fails when an object file of one instruction set defines a symbol that the linker may share with other
# files: inline functions and templates outside the set's own namespace. One such copy, compiled for a
# better processor, can become the whole program's.
execute_process(COMMAND ${NM} -C --defined-only ${OBJECTS} OUTPUT_VARIABLE symbols
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${NM} failed on ${OBJECTS}")
endif()
string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" shared "${symbols}")
list(FILTER shared EXCLUDE REGEX "[WVu] (.* )?sol::kernels::${ISA}::")
if(shared)
  list(JOIN shared "\n  " text)
  message(FATAL_ERROR "${ISA} kernels define symbols outside their namespace:\n  ${text}")
endif()
if(NOT symbols MATCHES "sol::kernels::${ISA}::(attend_causal|in_major)")
  message(FATAL_ERROR "no ${ISA} kernels in ${OBJECTS}")
endif()
