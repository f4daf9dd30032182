# A room is a folder whose sources see the headers of the rooms that they name, and of no others.
#
# tc_room(FOLDER ABOUT text [ARCHIVE lib] [SOURCES a.c ...] [ROOMS folder ...] [INSIDE folder ...] [LIBS target ...])
#   ABOUT    what is in it, for the table in docs/DESIGN.md
#   ROOMS    rooms that FOLDER's headers include; the rooms which include FOLDER see them, too
#   INSIDE   rooms that its sources alone include
#   ARCHIVE  the static library of its objects; several rooms may share one
#   LIBS     other libraries that it needs
#
# It makes room_ID, the objects, and see_ID, what others link to see the headers: a folder of links, in which
# an include has the same name as in the repository (without lib/). ID is FOLDER with _ for /. All rooms together are
# written to rooms.txt in the build folder: a table in docs/DESIGN.md is made from it (tools/rooms.py), and a test compares them.
# It is written at the end, and only if it changes: a test may read it while `make demo` configures anew.
function(tc_write_rooms)
  get_property(rooms GLOBAL PROPERTY TC_ROOMS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/rooms.txt CONTENT "${rooms}" @ONLY)
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL tc_write_rooms)

function(tc_room_headers folder id)
  string(REGEX REPLACE "^lib/" "" shown ${folder})
  set(links ${PROJECT_BINARY_DIR}/rooms/${id})
  file(REMOVE_RECURSE ${links})
  file(MAKE_DIRECTORY ${links}/${shown})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h ${PROJECT_SOURCE_DIR}/${folder}/*.def)
  foreach(header ${headers})
    get_filename_component(name ${header} NAME)
    file(CREATE_LINK ${header} ${links}/${shown}/${name} SYMBOLIC)
  endforeach()
  add_library(see_${id} INTERFACE)
  target_include_directories(see_${id} INTERFACE ${links})
endfunction()

function(tc_room folder)
  cmake_parse_arguments(R "" "ABOUT;ARCHIVE" "SOURCES;ROOMS;INSIDE;LIBS" ${ARGN})
  string(REPLACE "/" "_" id ${folder})
  tc_room_headers(${folder} ${id})
  list(JOIN R_ROOMS " " rooms)
  list(JOIN R_INSIDE " " inside)
  set_property(GLOBAL APPEND_STRING PROPERTY TC_ROOMS "${folder}|${R_ABOUT}|${rooms}|${inside}\n")
  set(archives "")
  foreach(other ${R_ROOMS} ${R_INSIDE})
    string(REPLACE "/" "_" other_id ${other})
    get_property(archive GLOBAL PROPERTY TC_ARCHIVE_OF_${other_id})
    list(APPEND archives ${archive})
  endforeach()
  foreach(other ${R_ROOMS})
    string(REPLACE "/" "_" other_id ${other})
    target_link_libraries(see_${id} INTERFACE see_${other_id})
  endforeach()
  if(NOT R_SOURCES)
    return()
  endif()
  list(TRANSFORM R_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ REGEX "^[^/]")
  add_library(room_${id} OBJECT ${R_SOURCES})
  target_link_libraries(room_${id} PRIVATE see_${id} ${R_LIBS})
  if(TC_SANITIZE AND folder MATCHES "^lib/(base|wire|online)(/|$)")
    target_compile_options(room_${id} PRIVATE -O1) # the loops of the engine: half the time of the tests is theirs
  endif()
  foreach(other ${R_INSIDE})
    string(REPLACE "/" "_" other_id ${other})
    target_link_libraries(room_${id} PRIVATE see_${other_id})
  endforeach()
  if(NOT R_ARCHIVE)
    return()
  endif()
  set_property(GLOBAL PROPERTY TC_ARCHIVE_OF_${id} ${R_ARCHIVE})
  if(NOT TARGET ${R_ARCHIVE})
    add_library(${R_ARCHIVE} STATIC)
  endif()
  list(REMOVE_ITEM archives ${R_ARCHIVE})
  list(REMOVE_DUPLICATES archives)
  target_sources(${R_ARCHIVE} PRIVATE $<TARGET_OBJECTS:room_${id}>)
  target_link_libraries(${R_ARCHIVE} PUBLIC ${archives} ${R_LIBS})
endfunction()
