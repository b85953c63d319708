# How a portable build is fast on every processor: the core, with all vector kernels, is a shared library that is built once for
# every level of x86-64 (System V psABI), in the folders where the dynamic loader of glibc 2.33 or later looks for the best one
# that the processor can run; elsewhere it takes the plain one.
#   lib/libhardgrad_core.so   lib/glibc-hwcaps/x86-64-v3/libhardgrad_core.so   lib/glibc-hwcaps/x86-64-v4/libhardgrad_core.so
#
# Whole libraries rather than tables of kernels within one: of an inline function a linker keeps a single copy, whatever it was
# compiled for, so that one file compiled for a newer level can break all others on an older processor. A process loads one level
# only, and -Bsymbolic-functions makes the library call its own copies of inline functions: those of the program and of plugins
# are for plain x86-64, slower, and have registers of another width. No header for plugins names a register (core/kernels is
# included by sources of the core only). All the rest of the program is plain: it is as fast as in a native build.
foreach(level x86-64 x86-64-v3 x86-64-v4)
  if(level STREQUAL "x86-64")
    set(name hardgrad_core)
    set(folder "")
  else()
    set(name hardgrad_core_${level})
    set(folder /glibc-hwcaps/${level})
  endif()
  add_core(${name} SHARED)
  target_compile_options(${name} PRIVATE -march=${level} -fno-semantic-interposition)
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME hardgrad_core SOVERSION ${PROJECT_VERSION}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib${folder})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}${folder} COMPONENT hardgrad NAMELINK_SKIP)
endforeach()
add_dependencies(hardgrad_core hardgrad_core_x86-64-v3 hardgrad_core_x86-64-v4)  # what links to the one is to find the others
