# Files as C arrays, so that the daemon is one file.
#
# tc_embed(DIR HEADER FILE...)  HEADER, made anew when a FILE below DIR changes, holds one row a file:
#   TC_EMBEDDED("name", "MIME type", "sha256", 0x.., ...)
# As a script (-P) it writes that header: -DDIR= -DHEADER= -DFILES=a;b
if(CMAKE_SCRIPT_MODE_FILE)
  set(types html "text/html; charset=utf-8" css "text/css; charset=utf-8" js "text/javascript; charset=utf-8"
    svg "image/svg+xml" LICENSE "text/plain; charset=utf-8")
  foreach(file ${FILES})
    file(READ ${DIR}/${file} bytes HEX)
    file(SHA256 ${DIR}/${file} sum)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    get_filename_component(ending ${file} LAST_EXT)
    string(SUBSTRING ${ending} 1 -1 ending)
    list(FIND types ${ending} at)
    math(EXPR at "${at} + 1")
    list(GET types ${at} type)
    get_filename_component(name ${file} NAME)
    string(APPEND rows "TC_EMBEDDED(\"${name}\", \"${type}\", \"${sum}\", ${bytes})\n")
  endforeach()
  file(WRITE ${HEADER} "${rows}")
  return()
endif()

function(tc_embed dir header)
  set(depends ${ARGN})
  list(TRANSFORM depends PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_CURRENT_SOURCE_DIR}/${dir} -DHEADER=${header} "-DFILES=${ARGN}"
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${depends} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
endfunction()
