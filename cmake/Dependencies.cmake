# SPDX-License-Identifier: Apache-2.0
# Foreign libraries as dep_* targets: from the system by pkg-config, or from TIDEGATE_DEPS where
# scripts/setup built them from a newer source package.
find_package(PkgConfig REQUIRED)
set(ASK_SETUP "run scripts/setup (it installs what is missing)")

# dep_<name> from the first of the pkg-config modules given that exists.
function(tidegate_pkg name)
  foreach(module IN LISTS ARGN)
    pkg_check_modules(pc_${name} QUIET IMPORTED_TARGET GLOBAL "${module}")
    if(pc_${name}_FOUND)
      add_library(dep_${name} INTERFACE)
      target_link_libraries(dep_${name} INTERFACE PkgConfig::pc_${name})
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "library not found (pkg-config: ${ARGN}); ${ASK_SETUP}")
endfunction()

# dep_<name> from a static library and headers below TIDEGATE_DEPS.
function(tidegate_built name)
  add_library(dep_${name} INTERFACE)
  target_include_directories(dep_${name} SYSTEM INTERFACE "${TIDEGATE_DEPS}/include")
  target_link_libraries(dep_${name} INTERFACE "${TIDEGATE_DEPS}/lib/lib${name}.a" ${ARGN})
endfunction()

# dep_<name> by header and library names, where a package's .pc file is missing or cannot be used.
function(tidegate_found name header)
  find_path(FOUND_${name}_INCLUDE ${header})
  find_library(FOUND_${name}_LIBRARY NAMES ${ARGN})
  if(NOT FOUND_${name}_INCLUDE OR NOT FOUND_${name}_LIBRARY)
    message(FATAL_ERROR "library not found: ${name} (${header}); ${ASK_SETUP}")
  endif()
  add_library(dep_${name} INTERFACE)
  target_include_directories(dep_${name} SYSTEM INTERFACE "${FOUND_${name}_INCLUDE}")
  target_link_libraries(dep_${name} INTERFACE "${FOUND_${name}_LIBRARY}")
endfunction()

tidegate_pkg(uv libuv)
tidegate_pkg(lmdb lmdb)
# Debian 13's msgpack-c.pc names a relative include folder, which CMake refuses.
tidegate_found(msgpack msgpack.h msgpack-c msgpackc)
tidegate_pkg(lz4 liblz4)
tidegate_pkg(zlib zlib)
tidegate_pkg(xxhash libxxhash)
tidegate_pkg(inih inih)
tidegate_pkg(crypto libcrypto)
tidegate_pkg(sodium libsodium)
tidegate_pkg(archive libarchive)

# raft: 0.15 can acknowledge a write that one node of three holds, and lose it. Nothing older than
# 0.22 is accepted, wherever it comes from.
set(RAFT_MINIMUM 0.22)
if(EXISTS "${TIDEGATE_DEPS}/lib/libraft.a")
  file(STRINGS "${TIDEGATE_DEPS}/lib/pkgconfig/raft.pc" raft_version REGEX "^Version:")
  string(REGEX REPLACE "^Version:[ \t]*" "" raft_version "${raft_version}")
  set(raft_from "${TIDEGATE_DEPS}")
  tidegate_built(raft dep_uv dep_lz4)
else()
  pkg_check_modules(pc_raft QUIET IMPORTED_TARGET GLOBAL raft)
  if(NOT pc_raft_FOUND)
    message(FATAL_ERROR "raft ${RAFT_MINIMUM} or newer not found in ${TIDEGATE_DEPS} or the "
                        "system; ${ASK_SETUP}")
  endif()
  set(raft_version "${pc_raft_VERSION}")
  set(raft_from "the system")
  # The static library where there is one: the shared one hides raft_version_number().
  tidegate_found(raft raft.h libraft.a raft)
  target_link_libraries(dep_raft INTERFACE dep_uv dep_lz4)
endif()
if(raft_version VERSION_LESS RAFT_MINIMUM)
  message(FATAL_ERROR
    "raft ${raft_version} (from ${raft_from}) is too old: versions before ${RAFT_MINIMUM} can "
    "acknowledge a write held by a single node of three and lose it; ${ASK_SETUP}")
endif()
message(STATUS "raft ${raft_version} from ${raft_from}")

if(EXISTS "${TIDEGATE_DEPS}/lib/libyyjson.a")
  tidegate_built(yyjson)
else()
  tidegate_found(yyjson yyjson.h yyjson)
endif()

# llhttp: a library where the distribution has one; elsewhere the generated C files that node-llhttp
# installs, compiled here without our warnings.
find_library(LLHTTP_LIBRARY llhttp)
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp)
find_path(LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)
add_library(dep_llhttp INTERFACE)
if(LLHTTP_LIBRARY AND LLHTTP_INCLUDE)
  target_include_directories(dep_llhttp SYSTEM INTERFACE "${LLHTTP_INCLUDE}")
  target_link_libraries(dep_llhttp INTERFACE "${LLHTTP_LIBRARY}")
elseif(LLHTTP_SOURCES AND LLHTTP_INCLUDE)
  add_library(llhttp_from_source STATIC "${LLHTTP_SOURCES}/api.c" "${LLHTTP_SOURCES}/http.c"
                                        "${LLHTTP_SOURCES}/llhttp.c")
  target_include_directories(llhttp_from_source SYSTEM PUBLIC "${LLHTTP_INCLUDE}")
  target_compile_options(llhttp_from_source PRIVATE -w)
  target_link_libraries(dep_llhttp INTERFACE llhttp_from_source)
else()
  message(FATAL_ERROR "llhttp not found (libllhttp-dev or node-llhttp); ${ASK_SETUP}")
endif()
