# The shared and the static library, both made of ringccl_objects, and what `cmake --install` puts where.
include(CMakePackageConfigHelpers)

# What the objects call. The shared library keeps these to itself; who links the static one must have them too.
set(RINGCCL_STATIC_LINKS spdlog::spdlog fmt::fmt OpenSSL::Crypto PkgConfig::HWY Threads::Threads ${CMAKE_DL_LIBS})

add_library(ringccl SHARED)
target_link_libraries(ringccl PRIVATE ringccl_objects ringccl_flags)
target_link_options(ringccl PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/ringccl.map LINKER:--no-undefined)
set_target_properties(ringccl PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/ringccl.map)

add_library(ringccl_static STATIC $<TARGET_OBJECTS:ringccl_objects>)
target_link_libraries(ringccl_static PRIVATE ${RINGCCL_STATIC_LINKS})
set_target_properties(ringccl_static PROPERTIES OUTPUT_NAME ringccl EXPORT_NAME static LINKER_LANGUAGE CXX)

foreach(library ringccl ringccl_static)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
# The names that find_package gives, also for projects that take this one in by add_subdirectory.
add_library(ringccl::ringccl ALIAS ringccl)
add_library(ringccl::static ALIAS ringccl_static)

set(RINGCCL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ringccl)
install(TARGETS ringccl EXPORT ringcclTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringccl_static EXPORT ringcclStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ringccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ringcclTargets NAMESPACE ringccl:: DESTINATION ${RINGCCL_CMAKE_DIR})
install(EXPORT ringcclStaticTargets NAMESPACE ringccl:: DESTINATION ${RINGCCL_CMAKE_DIR})

configure_package_config_file(cmake/ringcclConfig.cmake.in ${PROJECT_BINARY_DIR}/ringcclConfig.cmake
  INSTALL_DESTINATION ${RINGCCL_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ringcclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ringcclConfig.cmake ${PROJECT_BINARY_DIR}/ringcclConfigVersion.cmake
  DESTINATION ${RINGCCL_CMAKE_DIR})

# The .pc file finds its prefix from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH RINGCCL_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" RINGCCL_PC_TO_PREFIX ${RINGCCL_PC_TO_PREFIX})
configure_file(cmake/ringccl.pc.in ${PROJECT_BINARY_DIR}/ringccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ringccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
