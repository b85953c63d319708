# CMake reads this after project() (wheel.sh: CMAKE_PROJECT_INCLUDE). Everything is linked against the stubs in HARDGRAD_OLD, and the
# libraries beside them replace those of Debian that need a newer system.
add_link_options(-L${HARDGRAD_OLD}/stubs -Wl,--as-needed,--exclude-libs,libstdc++.a:libold.a:libfmt.a)

set(OpenBLAS_LIBRARY ${HARDGRAD_OLD}/libopenblas.so.0 CACHE FILEPATH "" FORCE)
function(replace package target file)
  find_package(${package} REQUIRED GLOBAL)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${HARDGRAD_OLD}/${file})
  endforeach()
endfunction()
replace(TBB TBB::tbb libtbb.so.12)
replace(fmt fmt::fmt libfmt.a)
