// Packs of config_check from Python.

#ifndef PLUMBLINE_PYTHON_BIND_CONFIG_H_
#define PLUMBLINE_PYTHON_BIND_CONFIG_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds write_config_pack and compare_config_packs.
void BindConfigPacks(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_CONFIG_H_
