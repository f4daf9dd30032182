# What `make install` puts where, but for tracectl and the agent, whose folders say so themselves.

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME agent-dev)
install(TARGETS tracecollectd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT collector)
install(TARGETS tracebase tracewire traceonline ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Users write their own analyses on these; what is not listed is private to its folder.
install(FILES lib/base/buf.h lib/base/map.h lib/base/mem.h lib/base/result.def lib/base/result.h lib/base/seed.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/base)
install(FILES lib/wire/batch.h lib/wire/events.def lib/wire/experiments.h lib/wire/raw.h lib/wire/sections.h lib/wire/spec.h lib/wire/split.h
  lib/wire/substream.h lib/wire/varint.h lib/wire/write.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/wire)
install(FILES lib/online/event/allocfree.h lib/online/event/event.h lib/online/event/generation.h lib/online/event/locks.h lib/online/event/ranges.def lib/online/event/reasons.def lib/online/event/reasons.h lib/online/event/view.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/event)
install(FILES lib/online/words/words.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/words)
install(FILES lib/online/order/handler.h lib/online/order/limits.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/order)
install(FILES lib/online/trace/active.h lib/online/trace/prepare.h lib/online/trace/pull.h lib/online/trace/reader.h lib/online/trace/substreams.h
  lib/online/trace/survey.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/trace)
install(FILES lib/online/window/distribution.h lib/online/window/histogram.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/window)
install(FILES lib/online/spans/lock_table.h lib/online/spans/pull.h lib/online/spans/spans.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/spans)
install(FILES lib/online/spans/stacks/callstack.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/spans/stacks)
install(FILES lib/online/analysis/analyses.def lib/online/analysis/analysis.h lib/online/analysis/report.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect/online/analysis)

# pkg-config, as the agent has it: installed, and from the build folder.
set(pc_prefix ${TC_PC_PREFIX})
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}/tracecollect")
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
configure_file(cmake/traceonline.pc.in traceonline.pc @ONLY)
set(pc_prefix ${PROJECT_SOURCE_DIR})
set(pc_includedir ${PROJECT_SOURCE_DIR}/lib)
set(pc_libdir ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY})
configure_file(cmake/traceonline.pc.in pkgconfig/traceonline.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/traceonline.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Where help texts say that they are.
set(documents ANALYSES CONVERT DIFF GLOSSARY HTTP OPERATIONS PROTOCOL QUERY REPORTS TRIGGERS)
list(TRANSFORM documents REPLACE "(.+)" "docs/\\1.md")
install(FILES ${documents} docs/openapi.json DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tracecollect-tools COMPONENT tools)
install(DIRECTORY docs/guide DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tracecollect-tools COMPONENT tools)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME collector)

# The service: units, the group, and a configuration that is copied to /etc once. Paths are filled in when
# installing, since `cmake --install --prefix` may name another folder than the build did. Nothing
# is written into the build: two installations may run at once.
install(FILES deploy/systemd/tracecollectd-agents.socket deploy/systemd/tracecollectd-http.socket
  DESTINATION lib/systemd/system)
install(FILES deploy/systemd/tracecollect.sysusers DESTINATION lib/sysusers.d RENAME tracecollect.conf)
install(FILES deploy/tracecollectd.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/tracecollect)
install(FILES deploy/grafana/tracecollect-fleet.json deploy/grafana/tracecollect-service.json deploy/prometheus/tracecollect.rules.yaml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/tracecollect COMPONENT collector)
foreach(line collector:tracecollectd.service:lib/systemd/system/tracecollectd.service
    collector:tracecollect.tmpfiles:lib/tmpfiles.d/tracecollect.conf
    actions:tracecollect-actions.service:lib/systemd/system/tracecollect-actions.service)
  string(REPLACE ":" ";" line ${line})
  list(GET line 0 component)
  list(GET line 1 name)
  list(GET line 2 path)
  install(CODE "
    set(BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(DATADIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    configure_file(\"${PROJECT_SOURCE_DIR}/deploy/systemd/${name}.in\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${path}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${path}\")" COMPONENT ${component})
endforeach()
