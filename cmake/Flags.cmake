# SPDX-License-Identifier: Apache-2.0
# Language level, warnings and sanitizers, for every target of this tree.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Checks stay on in a release: a database that goes on after a broken invariant loses data quietly.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")

add_library(tidegate_flags INTERFACE)
target_include_directories(tidegate_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_definitions(tidegate_flags INTERFACE _GNU_SOURCE
                           TIDEGATE_VERSION="${PROJECT_VERSION}")
target_compile_options(tidegate_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(TIDEGATE_WERROR)
  target_compile_options(tidegate_flags INTERFACE -Werror)
endif()
# For tests, linked after tidegate_flags: cmocka's macros convert signs; the rooms stay strict.
add_library(tidegate_test_flags INTERFACE)
target_compile_options(tidegate_test_flags INTERFACE -Wno-sign-conversion)
find_package(Threads REQUIRED)
target_link_libraries(tidegate_flags INTERFACE Threads::Threads m)

# Unused libraries must not end up in a program's list of needed ones.
add_link_options(-Wl,--as-needed)

if(FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FUZZ=ON needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(SANITIZE)
  add_compile_options(-fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANITIZE})
endif()

find_program(TIDEGATE_CCACHE ccache)
if(TIDEGATE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${TIDEGATE_CCACHE}")
endif()
