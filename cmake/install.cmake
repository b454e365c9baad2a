# `cmake --install build --prefix DIR`: the programs, and what they look for beside themselves (apps/sol/common.cpp).
include(GNUInstallDirs)
install(TARGETS sol RUNTIME)
if(SOL_TRAINING)
  install(TARGETS sol-train RUNTIME)
endif()
install(DIRECTORY models configs DESTINATION ${CMAKE_INSTALL_DATADIR}/sol)
install(FILES README.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
