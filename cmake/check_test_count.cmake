# Fails when BINARY lists fewer than MINIMUM GoogleTest cases.
execute_process(COMMAND ${BINARY} --gtest_list_tests
  OUTPUT_VARIABLE listing RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${BINARY} cannot list its tests: ${result}")
endif()
string(REGEX MATCHALL "\n  [^\n]+" cases "\n${listing}")
list(LENGTH cases count)
if(count LESS MINIMUM)
  message(FATAL_ERROR "${BINARY} has ${count} tests, expected at least ${MINIMUM}")
endif()
message(STATUS "${count} tests, at least ${MINIMUM} expected")
