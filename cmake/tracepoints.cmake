# traceagent_tracepoints(TARGET [MODULE name] [IMPORTS target...] [FOLDERS dir...])
#
# Makes the events that the sources of TARGET declare with //trace: lines: MODULE.trace.h, which they may include, and
# MODULE.trace.c, which is compiled into TARGET. MODULE.trace.spec, beside them, is for `tracectl tracepoints experiment`,
# which makes readers of what ta_record_event_attach() records. TARGET links traceagent::traceagent itself.
#
#   MODULE   whose events these are; default: TARGET
#   IMPORTS  targets of this build that a //trace:import names the modules of
#   FOLDERS  where else NAME.trace.h of an imported module may lie
#
# Call it behind everything that adds sources to TARGET. tracectl is the target of that name, or what
# TRACEAGENT_TRACECTL names.
function(traceagent_tracepoints target)
  cmake_parse_arguments(PARSE_ARGV 1 T "" "MODULE" "IMPORTS;FOLDERS")
  if(NOT T_MODULE)
    set(T_MODULE ${target})
  endif()
  if(TARGET tracectl)
    set(tracectl tracectl)
  else()
    set(tracectl ${TRACEAGENT_TRACECTL})
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/tracepoints)
  get_target_property(from ${target} SOURCE_DIR)
  get_target_property(all ${target} SOURCES)
  set(sources ${all})
  list(FILTER sources INCLUDE REGEX "\\.(c|cc|cpp|cxx|h|hh|hpp)$")
  set(options "")
  set(headers "")
  foreach(import ${T_IMPORTS})
    get_target_property(header ${import} TRACEPOINTS_HEADER)
    cmake_path(GET header PARENT_PATH where)
    list(APPEND headers ${header})
    list(APPEND options -I ${where})
  endforeach()
  foreach(where ${T_FOLDERS})
    list(APPEND options -I ${where})
  endforeach()
  set(made ${folder}/${T_MODULE}.trace.h ${folder}/${T_MODULE}.trace.c)
  set(depends ${sources})
  list(TRANSFORM depends PREPEND ${from}/ REGEX "^[^/]")
  add_custom_command(OUTPUT ${made} BYPRODUCTS ${folder}/${T_MODULE}.trace.spec
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${tracectl} tracepoints gen --module ${T_MODULE} -o ${folder} ${options} ${sources}
    WORKING_DIRECTORY ${from}
    DEPENDS ${depends} ${headers} ${tracectl}
    COMMENT "Tracepoints of ${T_MODULE}"
    VERBATIM)
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} PRIVATE ${folder})
  set_target_properties(${target} PROPERTIES TRACEPOINTS_HEADER ${folder}/${T_MODULE}.trace.h)
endfunction()
