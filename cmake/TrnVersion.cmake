# trn::version: a generated trn_version.h. It is looked at on each build and rewritten only when
# the commit changes, so only what includes it is built again.
set(trn_version_dir ${PROJECT_BINARY_DIR}/generated)
add_custom_target(trn_version_header
  COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/trn_version.h.in
    -DOUTPUT=${trn_version_dir}/trn_version.h
    -DVERSION=${PROJECT_VERSION}
    -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${trn_version_dir}/trn_version.h
  COMMENT "Looking at the commit" VERBATIM)
add_library(trn_version INTERFACE)
target_include_directories(trn_version INTERFACE ${trn_version_dir})
add_dependencies(trn_version trn_version_header)
add_library(trn::version ALIAS trn_version)
