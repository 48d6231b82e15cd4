# Defines attn_add_library. find_package(attn) includes this file; an application that builds runtime/ as a part of
# itself includes it from the source tree.

# The compiler that runs on this machine: the one that ATTN_ATTNC names, or the one on PATH.
find_program(ATTN_ATTNC attnc NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
if(ATTN_ATTNC AND NOT TARGET attn::attnc)
  add_executable(attn::attnc IMPORTED)
  set_target_properties(attn::attnc PROPERTIES IMPORTED_LOCATION "${ATTN_ATTNC}")
endif()

# attn_add_library(name model [TARGETS level...] [EMIT kind...] [OPTIONS option...])
#
# Compiles a model (.pt2, .mlir) when the project is built, and again when the model or attnc has changed. The target
# `name` has the code of the library `name` and the include folder of its header, <name.h>. Link it together with
# attn::runtime or attn::runtime_static.
#
#   TARGETS  ISA levels such as x86-64-v3; default: all levels of the processor that the project is built for
#   EMIT     the kind of file that `name` links: o (default), a or so; and s, ll or mlir, for files to read
#   OPTIONS  more options of attnc, such as --require-fused
#
# $<TARGET_FILE:name> is the compiled file. Properties of `name` hold the paths of the files beside it: ATTN_HEADER,
# ATTN_MANIFEST (.json), and ATTN_WEIGHTS (.safetensors), which is an empty file if the model has no weights.
function(attn_add_library name model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "TARGETS;EMIT;OPTIONS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attn_add_library(${name}): expected TARGETS, EMIT or OPTIONS, got '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT TARGET attn::attnc)
    message(FATAL_ERROR "attn_add_library(${name}): expected attnc on PATH or in ATTN_ATTNC, got none")
  endif()

  if(NOT arg_TARGETS)
    set(arg_TARGETS all:${CMAKE_SYSTEM_PROCESSOR})
  endif()
  list(JOIN arg_TARGETS "," targets)
  set(unknown ${arg_EMIT})
  list(FILTER unknown EXCLUDE REGEX "^(o|a|so|s|ll|mlir)$")
  if(unknown)
    message(FATAL_ERROR "attn_add_library(${name}): expected o, a, so, s, ll or mlir in EMIT, got '${unknown}'")
  endif()
  set(linked ${arg_EMIT})
  list(FILTER linked INCLUDE REGEX "^(o|a|so)$")
  if(NOT linked)
    set(linked o)
    list(APPEND arg_EMIT o)
  endif()
  list(LENGTH linked count)
  if(count GREATER 1)
    message(FATAL_ERROR "attn_add_library(${name}): expected one of o, a and so in EMIT, got '${linked}'")
  endif()

  get_filename_component(model "${model}" ABSOLUTE)
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/attn/${name}")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/attn")
  set(outputs)
  foreach(kind IN LISTS arg_EMIT)
    set(beside)
    set(remove)
    set(touch)
    if(kind STREQUAL linked)
      # If the model has no weights, attnc writes no file of weights, and Ninja would run the command in every build.
      set(beside "${stem}.h" "${stem}.json" "${stem}.safetensors")
      set(remove COMMAND "${CMAKE_COMMAND}" -E rm -f "${stem}.safetensors")
      set(touch COMMAND "${CMAKE_COMMAND}" -E touch "${stem}.safetensors")
    endif()
    add_custom_command(
      OUTPUT "${stem}.${kind}" ${beside}
      ${remove}
      COMMAND "$<TARGET_FILE:attn::attnc>" "${model}" -o "${stem}.${kind}" --target=${targets} ${arg_OPTIONS}
      ${touch}
      DEPENDS "${model}" "$<TARGET_FILE:attn::attnc>"
      COMMENT "Compiling ${name}.${kind}"
      VERBATIM)
    list(APPEND outputs "${stem}.${kind}")
  endforeach()
  add_custom_target(${name}-attnc ALL DEPENDS ${outputs})

  # With the type UNKNOWN, CMake links any kind of file, and adds the folder of a shared library to the run path.
  add_library(${name} UNKNOWN IMPORTED GLOBAL)
  add_dependencies(${name} ${name}-attnc)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${stem}.${linked}"
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_BINARY_DIR}/attn"
    ATTN_HEADER "${stem}.h"
    ATTN_MANIFEST "${stem}.json"
    ATTN_WEIGHTS "${stem}.safetensors")
endfunction()
