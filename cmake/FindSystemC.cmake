# Makes SystemC::systemc from the packaged library's pkg-config file.
find_package(PkgConfig REQUIRED QUIET)
pkg_check_modules(PC_SYSTEMC QUIET systemc)
find_path(SystemC_INCLUDE_DIR systemc HINTS ${PC_SYSTEMC_INCLUDE_DIRS})
find_library(SystemC_LIBRARY systemc HINTS ${PC_SYSTEMC_LIBRARY_DIRS})
set(SystemC_VERSION ${PC_SYSTEMC_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC
  REQUIRED_VARS SystemC_LIBRARY SystemC_INCLUDE_DIR
  VERSION_VAR SystemC_VERSION)
mark_as_advanced(SystemC_INCLUDE_DIR SystemC_LIBRARY)

if(SystemC_FOUND AND NOT TARGET SystemC::systemc)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES
    IMPORTED_LOCATION ${SystemC_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${SystemC_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES Threads::Threads
    INTERFACE_COMPILE_DEFINITIONS "SC_CPLUSPLUS=201703L")  # else C++20 objects fail its link-time version check
endif()
