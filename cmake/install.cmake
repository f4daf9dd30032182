# What `make install` puts where. The agent's library, header and pkg-config file are installed by agent/.

install(TARGETS tracecollectd tracectl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tracebase tracewire traceonline ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder base wire online) # users write their own analyses on these
  install(DIRECTORY lib/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tracecollect
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endforeach()

set(BINDIR ${CMAKE_INSTALL_FULL_BINDIR})
configure_file(deploy/systemd/tracecollectd.service.in deploy/tracecollectd.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/deploy/tracecollectd.service DESTINATION lib/systemd/system)
