// The hot path: a native callable that stands in for one wrapped API.

#ifndef PLUMBLINE_PYTHON_BINDINGS_CALL_PROBE_H_
#define PLUMBLINE_PYTHON_BINDINGS_CALL_PROBE_H_

#include "python_api.h"

#include <string_view>

#include "collective.h"

namespace plumbline::python {

class Recorder;

// A probe around `original`, recorded as `name` ("Functional.linear"). It looks like the original:
// attributes (__name__, __doc__, __module__, signature) are the original's, `probe == original` and
// their hashes agree, repr and pickling give the original. As an attribute of a class it binds
// exactly like the original (`is_method`: always, as a method of the tensor class does).
// Keeps references to `original` and the recorder. New reference, or null with an error.
PyObject* NewProbe(Recorder& recorder, PyObject* original, std::string_view name, bool is_method);

// The same for a communication function, recorded by `collectives`. `owner`, the Python object of
// `collectives`, is kept alive.
PyObject* NewCollectiveProbe(Collectives& collectives, PyObject* owner, PyObject* original,
                             std::string_view name, CollectiveRule rule);

// The wrapped callable of a probe (borrowed), or null if `object` is not a probe.
PyObject* OriginalOf(PyObject* object);

// Creates the probe types. False with a Python error set on failure.
bool InitProbeTypes();

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_CALL_PROBE_H_
