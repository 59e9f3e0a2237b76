# Runs one file of tests/python as `python3 -m unittest MODULE` and fails when it fails, or when fewer than MINIMUM tests
# ran: a file whose tests are all skipped, or that holds none, passes as far as unittest is concerned.
#   cmake -DPYTHON=/usr/bin/python3 -DMODULE=test_cli -DFOLDER=tests/python -DPACKAGES=... -DMINIMUM=16 -P this
set(ENV{PYTHONPATH} ${PACKAGES})
set(ENV{PYTHONDONTWRITEBYTECODE} 1)
execute_process(COMMAND ${PYTHON} -m unittest ${MODULE}
  WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
message("${out}${err}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${MODULE} failed: ${result}")
endif()
if(NOT err MATCHES "Ran ([0-9]+) tests? in")
  message(FATAL_ERROR "${MODULE} does not say how many tests it ran")
endif()
set(count ${CMAKE_MATCH_1})
if(err MATCHES "skipped=([0-9]+)")
  math(EXPR count "${count} - ${CMAKE_MATCH_1}")
endif()
if(count LESS MINIMUM)
  message(FATAL_ERROR "${MODULE} ran ${count} tests, expected at least ${MINIMUM}")
endif()
