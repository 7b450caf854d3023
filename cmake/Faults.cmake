# SPDX-License-Identifier: Apache-2.0
# Builds that are made to fail: FAILPOINTS=ON (common/base/failpoint.h) and MUTANT=n
# (common/base/mutant.h). Only the files concerned are compiled otherwise than in a release, so that
# such a build takes seconds beside an existing one.
option(FAILPOINTS "places where tests can kill or hold a process" OFF)
set(MUTANT 0 CACHE STRING "a planted fault of tests/mutants/table.txt, 0 for none")

set(TIDEGATE_MUTANT_FILES 0)

# Sets the definitions of one source file, in the folder of the CMake script that is running.
function(tidegate_faults source)
  set(definitions "")
  if(FAILPOINTS)
    file(STRINGS "${source}" lines REGEX "^#include \"common/base/failpoint\\.h\"")
    if(lines)
      list(APPEND definitions TG_FAILPOINTS=1)
    endif()
  endif()
  if(NOT MUTANT EQUAL 0)
    file(STRINGS "${source}" lines REGEX "MUTANT\\(${MUTANT}\\)")
    if(lines)
      list(APPEND definitions TG_MUTANT=${MUTANT})
      math(EXPR count "${TIDEGATE_MUTANT_FILES} + 1")
      set(TIDEGATE_MUTANT_FILES ${count} PARENT_SCOPE)
    endif()
  endif()
  if(definitions)
    set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS "${definitions}")
  endif()
endfunction()

if(FAILPOINTS OR NOT MUTANT EQUAL 0)
  file(GLOB_RECURSE sources "${CMAKE_SOURCE_DIR}/common/*.c" "${CMAKE_SOURCE_DIR}/coordinator/*.c"
       "${CMAKE_SOURCE_DIR}/participant/*.c" "${CMAKE_SOURCE_DIR}/client/*.c")
  foreach(source IN LISTS sources)
    tidegate_faults("${source}")
  endforeach()
  if(NOT MUTANT EQUAL 0 AND TIDEGATE_MUTANT_FILES EQUAL 0)
    message(FATAL_ERROR "no file of the product has MUTANT(${MUTANT})")
  endif()
endif()
