#Installs this build into a scratch prefix, then configures, builds and runs a separate project against it.
set(scratch "${build}/${name}") file(REMOVE_RECURSE "${scratch}") function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY) endfunction()
        run($ { CMAKE_COMMAND } --install "${build}" --prefix "${scratch}/prefix")
            run(${CMAKE_COMMAND} - S "${consumer}" - B "${scratch}/build" -
                    G Ninja
                    "-DCMAKE_PREFIX_PATH=${scratch}/prefix"
                    "-DTorch_DIR=${torch}" -
                    DCMAKE_BUILD_TYPE = Release) run($ { CMAKE_COMMAND } --build "${scratch}/build")
                run("${scratch}/build/${program}")
