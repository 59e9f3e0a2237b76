# Writes OUTPUT from TEMPLATE with the commit of SOURCE_DIR; a tree without git is "unknown".
set(COMMIT unknown)
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE head RESULT_VARIABLE result
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(result EQUAL 0)
    set(COMMIT ${head})
    execute_process(COMMAND git --no-optional-locks status --porcelain --untracked-files=no
      WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND COMMIT "-dirty")
    endif()
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
