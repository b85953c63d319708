# Run at every build: writes the build's provenance, and changes the file only if the provenance changed.
# Needs SOURCE, OUTPUT, VERSION, COMPILER, FLAGS.
find_package(Git QUIET)
set(commit "unknown")
set(dirty "unknown")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit "${head}")
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} status --porcelain --untracked-files=normal
      OUTPUT_VARIABLE changes ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      set(dirty "unknown")
    elseif(changes STREQUAL "")
      set(dirty "false")
    else()
      set(dirty "true")
    endif()
  endif()
endif()
string(REGEX REPLACE " +" " " FLAGS "${FLAGS}")
string(STRIP "${FLAGS}" FLAGS)
set(text "// Generated at build time.
#pragma once
#define HARDGRAD_GIT_COMMIT R\"-(${commit})-\"
#define HARDGRAD_GIT_DIRTY R\"-(${dirty})-\"
#define HARDGRAD_VERSION R\"-(${VERSION})-\"
#define HARDGRAD_COMPILER R\"-(${COMPILER})-\"
#define HARDGRAD_FLAGS R\"-(${FLAGS})-\"
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
