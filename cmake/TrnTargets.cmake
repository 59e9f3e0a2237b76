# trn_add_library(NAME base SOURCES a.cc b.cc LINK fmt::fmt)
# Makes the static library trn_base, known as trn::base. Includes name the path from the root.
function(trn_add_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LINK")
  trn_keep_existing(sources ${arg_SOURCES})
  if(sources)
    add_library(trn_${arg_NAME} STATIC ${sources})
    target_link_libraries(trn_${arg_NAME} PRIVATE trn_options PUBLIC ${arg_LINK})
    target_include_directories(trn_${arg_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
  else()
    add_library(trn_${arg_NAME} INTERFACE)
    target_link_libraries(trn_${arg_NAME} INTERFACE ${arg_LINK})
    target_include_directories(trn_${arg_NAME} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
  add_library(trn::${arg_NAME} ALIAS trn_${arg_NAME})
endfunction()

# The sources of a list; one that is not there is an error that names it.
function(trn_keep_existing out)
  set(kept "")
  foreach(source IN LISTS ARGN)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      list(APPEND kept ${source})
    else()
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${source} is listed but missing")
    endif()
  endforeach()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# trn_add_test(NAME isa SOURCES codec_test.cc LINK trn::isa LABELS unit MINIMUM 12 [TIMEOUT 120]
#              [SYSTEMC])
# Makes one GoogleTest binary, trn_isa_tests, with a ctest entry for each TEST (isa.Codec.Undoes),
# and an entry that fails when the binary holds fewer than MINIMUM tests. SystemC's library brings
# a main of its own; were it to win, no test would run and all would seem well. With SYSTEMC, its
# warnings fail the test that causes them.
function(trn_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SYSTEMC" "NAME;MINIMUM;TIMEOUT" "SOURCES;LINK;LABELS")
  trn_keep_existing(sources ${arg_SOURCES})
  if(NOT sources)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(target trn_${arg_NAME}_tests)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE trn_options trn_test_main ${arg_LINK})
  if(arg_SYSTEMC)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/systemc_reports.cc)
    target_link_libraries(${target} PRIVATE SystemC::systemc)
  endif()
  gtest_discover_tests(${target}
    TEST_PREFIX ${arg_NAME}.
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  add_test(NAME ${arg_NAME}.test_count
    COMMAND ${CMAKE_COMMAND} -DBINARY=$<TARGET_FILE:${target}> -DMINIMUM=${arg_MINIMUM}
            -P ${PROJECT_SOURCE_DIR}/cmake/check_test_count.cmake)
  set_tests_properties(${arg_NAME}.test_count PROPERTIES LABELS "${arg_LABELS}")
endfunction()

# trn_add_fuzzer(NAME fuzz_trace SOURCES fuzz_trace.cc LINK trn::isa
#                COVERS isa/codec.cc isa/trace.cc FLOOR 70)
# In a TRN_FUZZING build, makes a libFuzzer binary and enters it in the list that scripts/fuzz.sh
# reads; after a run, at least FLOOR % of the lines of COVERS must have been reached. In other
# builds, makes a binary that runs the corpus once, as a test.
function(trn_add_fuzzer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;FLOOR" "SOURCES;LINK;COVERS")
  trn_keep_existing(sources ${arg_SOURCES})
  if(NOT sources)
    return()
  endif()
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${arg_NAME})
  add_executable(${arg_NAME} ${sources})
  target_link_libraries(${arg_NAME} PRIVATE trn_options ${arg_LINK})
  if(TRN_FUZZING)
    target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
    list(JOIN arg_COVERS "," covers)
    set_property(GLOBAL APPEND PROPERTY TRN_FUZZ_TARGETS "${arg_NAME} ${arg_FLOOR} ${covers}")
    add_test(NAME fuzz.${arg_NAME} COMMAND ${arg_NAME} -runs=0 ${corpus})
  else()
    target_sources(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus_main.cc)
    add_test(NAME fuzz.${arg_NAME} COMMAND ${arg_NAME} ${corpus})
  endif()
  set_tests_properties(fuzz.${arg_NAME} PROPERTIES LABELS "unit;fuzz" TIMEOUT 300)
endfunction()

# trn_add_python_test(NAME test_cli MINIMUM 16 [TIMEOUT 300])
# Makes a ctest entry, python.test_cli, that runs a file of the current folder with the packages of
# the build tree, and fails when fewer than MINIMUM of its tests ran.
function(trn_add_python_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;MINIMUM;TIMEOUT" "")
  trn_keep_existing(source ${arg_NAME}.py)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME python.${arg_NAME}
    COMMAND ${CMAKE_COMMAND} -DPYTHON=${PYTHON_EXECUTABLE} -DMODULE=${arg_NAME}
            -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}
            -DPACKAGES=${PROJECT_BINARY_DIR}/share/trn-sim/python -DMINIMUM=${arg_MINIMUM}
            -P ${PROJECT_SOURCE_DIR}/cmake/run_python_tests.cmake)
  set_tests_properties(python.${arg_NAME} PROPERTIES LABELS unit TIMEOUT ${arg_TIMEOUT})
endfunction()
