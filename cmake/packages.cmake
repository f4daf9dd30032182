# Debian packages by CPack, one a component (tools/packages.sh). They lie in /usr/lib whatever the prefix of this
# build is: paths are filled in when installing.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tracecollect)
set(CPACK_PACKAGE_CONTACT "tracecollect maintainers <maintainers@tracecollect.invalid>")
set(CPACK_COMPONENTS_ALL actions collector tools agent agent-dev preload)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON) # so that install code sees the prefix that users will see
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages-tidy.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

# tc_package(COMPONENT NAME SECTION SUMMARY TEXT): what stands in the control file beside what shlibdeps finds. Each
# package carries its licence and its changes.
function(tc_package component name section summary text)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  configure_file(deploy/debian/changelog.in ${PROJECT_BINARY_DIR}/deploy/changelog.Debian @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/deploy/changelog.Debian DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

tc_package(collector tracecollectd net "collector for Go execution traces"
  "Takes the traces of running programs over mutual TLS, orders them online,\nkeeps rolling figures, and archives every generation for go tool trace.")
tc_package(actions tracecollect-actions net "commands and webhooks of triggers on execution traces"
  "Asks a collector for what its rules have fired, runs commands and posts to\nURLs, so that the collector itself does neither.")
tc_package(tools tracecollect-tools net "command line for execution traces and their collector"
  "Reports, lists, fetches, follows and sends traces, and makes certificates.")
tc_package(agent libtraceagent0 libs "sends a program's execution trace to a collector"
  "The shared library that traced C and C++ programs load.")
tc_package(agent-dev libtraceagent-dev libdevel "sends a program's execution trace: for developers"
  "Headers, static libraries, pkg-config and CMake files, the Go module,\nthe messages as .proto files, and the libraries for analyses of one's own.")
tc_package(preload tracecollect-preload utils "traces a C or C++ program without a change"
  "A library for LD_PRELOAD that sends the threads, waits and system calls\nof a program to a collector.")

set(CPACK_DEBIAN_AGENT_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_AGENT_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/triggers)
set(CPACK_DEBIAN_AGENT_PACKAGE_RECOMMENDS libdw1) # names of functions; loaded when it is asked for them
set(CPACK_DEBIAN_PRELOAD_PACKAGE_DEPENDS libssl3) # loaded when it is needed, so that shlibdeps does not see it
set(CPACK_DEBIAN_PRELOAD_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/triggers)
set(CPACK_DEBIAN_PRELOAD_PACKAGE_RECOMMENDS libdw1)
set(CPACK_DEBIAN_AGENT-DEV_PACKAGE_DEPENDS "libtraceagent0 (= ${version}), libssl-dev")
set(CPACK_DEBIAN_AGENT-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_AGENT-DEV_PACKAGE_RECOMMENDS "tracecollect-tools, pkg-config")
# tracectl makes the certificates of a first installation.
set(CPACK_DEBIAN_COLLECTOR_PACKAGE_DEPENDS "tracecollect-tools (>= ${version}), passwd, init-system-helpers (>= 1.54~)")
set(scripts ${PROJECT_SOURCE_DIR}/deploy/debian/collector)
set(CPACK_DEBIAN_COLLECTOR_PACKAGE_CONTROL_EXTRA ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_DEBIAN_ACTIONS_PACKAGE_DEPENDS "passwd, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_ACTIONS_PACKAGE_RECOMMENDS "tracecollectd (>= ${version}), ca-certificates")
set(scripts ${PROJECT_SOURCE_DIR}/deploy/debian/actions)
set(CPACK_DEBIAN_ACTIONS_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
install(FILES deploy/tracecollectd.yaml DESTINATION /etc/tracecollect COMPONENT collector EXCLUDE_FROM_ALL)
include(CPack)
