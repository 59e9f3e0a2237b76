# Headers that the build writes, without which a source does not preprocess.
add_custom_target(trn_generated_headers)
add_dependencies(trn_generated_headers trn_version_header)
if(TARGET trn_perfetto_header)
  add_dependencies(trn_generated_headers trn_perfetto_header)
endif()

# The target `tidy` runs clang-tidy over all of our sources.
add_custom_target(tidy
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/tidy.py --build-dir ${PROJECT_BINARY_DIR}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  USES_TERMINAL VERBATIM)
add_dependencies(tidy trn_generated_headers)

if(TRN_LINT_TESTS)
  add_test(NAME lint.format COMMAND scripts/lint.sh --format-only
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME lint.tidy COMMAND scripts/tidy.py --build-dir ${PROJECT_BINARY_DIR}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(lint.format lint.tidy PROPERTIES LABELS lint TIMEOUT 3600)
endif()
