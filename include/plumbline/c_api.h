/* Version of plumbline: the one place it is written. CMake and pyproject.toml read it from here. */

#ifndef PLUMBLINE_C_API_H_
#define PLUMBLINE_C_API_H_

#define PLUMBLINE_VERSION_MAJOR 0
#define PLUMBLINE_VERSION_MINOR 1
#define PLUMBLINE_VERSION_PATCH 0
#define PLUMBLINE_VERSION "0.1.0"

#endif /* PLUMBLINE_C_API_H_ */
