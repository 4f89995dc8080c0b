# find_package(nearfield) gives the targets nearfield::nearfield, the shared library, and
# nearfield::static, with the headers of both; C++ programs need C++17 for nearfield.hpp.
get_filename_component(_nearfield_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET nearfield::nearfield)
  add_library(nearfield::nearfield SHARED IMPORTED)
  set_target_properties(nearfield::nearfield PROPERTIES
    IMPORTED_LOCATION "${_nearfield_prefix}/lib/libnearfield${CMAKE_SHARED_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_nearfield_prefix}/include")
endif()

if(NOT TARGET nearfield::static)
  find_package(Threads REQUIRED)
  add_library(nearfield::static STATIC IMPORTED)
  set_target_properties(nearfield::static PROPERTIES
    IMPORTED_LOCATION "${_nearfield_prefix}/lib/libnearfield.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_nearfield_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

unset(_nearfield_prefix)
