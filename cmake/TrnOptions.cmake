# Compiler flags of our own code: every target links trn_options, nothing is set globally.
add_library(trn_options INTERFACE)
target_compile_features(trn_options INTERFACE cxx_std_20)
target_include_directories(trn_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(trn_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual
  $<$<BOOL:${TRN_WARNINGS_AS_ERRORS}>:-Werror>)

set(trn_instrument "")
if(TRN_SANITIZE)
  list(APPEND trn_instrument -fsanitize=${TRN_SANITIZE} -fno-sanitize-recover=all)
  target_compile_options(trn_options INTERFACE -O1 -g1 -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # its checks see the sanitizers' own code
    target_compile_options(trn_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(TRN_FUZZING OR TRN_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TRN_FUZZING and TRN_COVERAGE need clang, not ${CMAKE_CXX_COMPILER_ID}: use the presets")
  endif()
  list(APPEND trn_instrument -fprofile-instr-generate -fcoverage-mapping)
endif()
if(TRN_FUZZING)
  list(APPEND trn_instrument -fsanitize=fuzzer-no-link)
  target_compile_definitions(trn_options INTERFACE TRN_FUZZING)
endif()
target_compile_options(trn_options INTERFACE ${trn_instrument})
target_link_options(trn_options INTERFACE ${trn_instrument})
