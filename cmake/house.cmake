# Flags every target of the house is built with, and how a test is declared.

add_compile_options(
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual
  -Wwrite-strings -Wvla -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion -Wundef
  -Werror=alloca -fno-common -fstack-protector-strong -fstack-clash-protection
  -fno-strict-overflow -fcf-protection)
include(CheckCCompilerFlag)
check_c_compiler_flag(-ftrivial-auto-var-init=zero TC_HAS_VAR_INIT) # clang before 16 wants to be asked twice
if(TC_HAS_VAR_INIT)
  add_compile_options(-ftrivial-auto-var-init=zero)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-w) # it fuzzes and counts coverage; the warnings that count are gcc's
elseif(TC_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # assert() stays on: it is for our own bugs
  add_compile_definitions(_FORTIFY_SOURCE=3)
endif()
add_compile_definitions(_GNU_SOURCE)
add_link_options(-Wl,-z,relro,-z,now -Wl,--as-needed)

# Test programs are linked by mold where it is installed: two hundred links a suite.
find_program(TC_MOLD mold)
if(TC_MOLD)
  set(TC_TEST_LINKER -fuse-ld=mold)
endif()

if(TC_SANITIZE)
  set(CMAKE_C_FLAGS_DEBUG "-O0 -g1") # line numbers for reports; -O1 would double the time of the build
  add_link_options(${TC_TEST_LINKER})
  set(sanitize -fsanitize=${TC_SANITIZE} -fno-omit-frame-pointer)
  add_compile_definitions(TC_SANITIZED)
  if(TC_SANITIZE MATCHES "undefined")
    list(APPEND sanitize -fsanitize=float-cast-overflow -fno-sanitize-recover=all)
  endif()
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
endif()
# What every test runs with; a semicolon separates two variables. A stack frame on the heap for each call, so that its use after the
# return is seen, costs a seventh of the time: unit tests alone have that.
set(TC_SANITIZER_ENVIRONMENT
  "ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1:intercept_tls_get_addr=0"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.suppressions")
# For tests that dial over nng: see there.
set(TC_NNG_LEAKS "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.suppressions:print_suppressions=0")
if(TC_FUZZ AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-fsanitize=fuzzer-no-link) # libFuzzer watches which edges an input takes
endif()
if(TC_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

# Seconds after which an entry of ctest is ended. Only one that hangs takes so long.
set(TC_ENTRY_TIMEOUT 1200)
if(TC_FULL)
  set(TC_ENTRY_TIMEOUT 14400)
endif()

# tc_tests_lib(TEST OUT libs ...): a test linked against a library of lib/ gets the label `lib`, too, and is built
# by the target lib_tests: what tests/coverage.sh runs.
add_custom_target(lib_tests)
function(tc_tests_lib test out)
  foreach(lib tracebase tracewire traceonline)
    if(lib IN_LIST ARGN)
      add_dependencies(lib_tests ${test})
      set(${out} ${${out}} lib PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# The flags of a test's sources.
function(tc_test_options target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE -Wno-missing-prototypes -Wno-conversion -Wno-shadow -Wno-undef -O0 -g1 -U_FORTIFY_SOURCE)
  if(TC_SANITIZE)
    target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/standin)
  endif()
endfunction()

# tc_add_test_part(NAME SOURCES a.c ... [LIBS target ...]): what several tests are made of, compiled once; a test names it
# among its LIBS.
function(tc_add_test_part name)
  cmake_parse_arguments(T "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} OBJECT ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBS})
  tc_test_options(${name})
endfunction()

# Where each test writes how its cases ended: NAME.tap.
set(TC_RESULTS ${PROJECT_BINARY_DIR}/results)
file(MAKE_DIRECTORY ${TC_RESULTS})

# tc_add_test(NAME test_x SOURCES a.c ... LIBS target ... [LABELS l ...] [COST n] [JOBS n])
# One Criterion binary is one ctest entry; the costliest begin first. JOBS: cases that run at once, where most of them wait; otherwise one a core. Under TSAN Criterion cannot run (it fails with "Could not initialize
# inheritable arena"), and under ASAN its own thread may hold the allocator's lock while a test forks, which gcc 12's
# libasan leaves locked in the child. So with a sanitizer the same sources are built against tests/support/standin.
function(tc_add_test)
  cmake_parse_arguments(T "" "NAME;COST;JOBS" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  tc_tests_lib(${T_NAME} T_LABELS ${T_LIBS})
  add_executable(${T_NAME} ${T_SOURCES})
  tc_test_options(${T_NAME})
  set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(TC_SANITIZE)
    target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} tc_standin_main Threads::Threads)
  else()
    # Criterion's own control channel must bind to libnanomsg, not to nng's functions of the same names.
    target_link_options(${T_NAME} PRIVATE ${TC_TEST_LINKER})
    target_link_libraries(${T_NAME} PRIVATE -Wl,--no-as-needed PkgConfig::CRITERION -lnanomsg ${T_LIBS})
  endif()
  add_test(NAME ${T_NAME} COMMAND ${T_NAME})
  if(T_COST)
    set_tests_properties(${T_NAME} PROPERTIES COST ${T_COST})
  endif()
  string(REPLACE "after_return=0" "after_return=1" environment "${TC_SANITIZER_ENVIRONMENT}")
  if(T_JOBS)
    list(APPEND environment "CRITERION_JOBS=${T_JOBS}")
  endif()
  # CRITERION_OUTPUTS: one line a case, which tests/requirements/check.py reads.
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${TC_ENTRY_TIMEOUT} LABELS "${T_LABELS}"
    ENVIRONMENT "TC_SOURCE_DIR=${PROJECT_SOURCE_DIR};TC_BINARY_DIR=${PROJECT_BINARY_DIR};CRITERION_OUTPUTS=tap:${TC_RESULTS}/${T_NAME}.tap;${environment}"
    FAIL_REGULAR_EXPRESSION "(Leak|Address|Thread)Sanitizer;runtime error:")
endfunction()

# The prefix of an installed .pc file, as seen from that file: right wherever `cmake --install --prefix` puts it.
file(RELATIVE_PATH tc_pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" tc_pc_up ${tc_pc_up})
set(TC_PC_PREFIX "\${pcfiledir}/${tc_pc_up}")
