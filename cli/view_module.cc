// The module plumb_view-<version>.so: all of `plumb` that needs the HTTP library.

#include "view_functions.h"

// kViewSymbol. Declared first, as a constant is otherwise seen by this file alone.
extern "C" [[gnu::visibility("default")]] const plumbline::cli::ViewFunctions plumb_view_functions;

const plumbline::cli::ViewFunctions plumb_view_functions = {
    .start_http_server = plumbline::view::StartHttpServer,
};
