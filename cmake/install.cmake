# What `make install` puts where, but for tracectl and the agent, whose folders say so themselves.

install(TARGETS tracecollectd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tracebase tracewire traceonline traceanalysis ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Users write their own analyses on these; what is not listed is private to its folder.
install(DIRECTORY lib/base DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES lib/wire/batch.h lib/wire/events.def lib/wire/raw.h lib/wire/sections.h lib/wire/spec.h lib/wire/split.h
  lib/wire/text.h lib/wire/varint.h lib/wire/write.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/wire)
install(FILES lib/online/analyses.def lib/online/analysis.h lib/online/event.h lib/online/generation.h lib/online/model.h
  lib/online/ranges.def lib/online/reader.h lib/online/reasons.def lib/online/view.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online)

# pkg-config, as the agent has it: installed, and from the build folder.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR}/tracecollect)
set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
configure_file(cmake/traceonline.pc.in traceonline.pc @ONLY)
set(pc_prefix ${PROJECT_SOURCE_DIR})
set(pc_includedir ${PROJECT_SOURCE_DIR}/lib)
set(pc_libdir ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY})
configure_file(cmake/traceonline.pc.in pkgconfig/traceonline.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/traceonline.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(BINDIR ${CMAKE_INSTALL_FULL_BINDIR})
configure_file(deploy/systemd/tracecollectd.service.in deploy/tracecollectd.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/deploy/tracecollectd.service DESTINATION lib/systemd/system)
