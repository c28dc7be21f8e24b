// What `plumb view` needs of the HTTP library: a module of its own (view_module.cc), loaded by this
// command alone.

#ifndef PLUMBLINE_CLI_VIEW_FUNCTIONS_H_
#define PLUMBLINE_CLI_VIEW_FUNCTIONS_H_

#include "view/serve/http_server.h"

namespace plumbline::cli {

// The functions of these names. Only the module links them: elsewhere they are called through here.
struct ViewFunctions {
  decltype(&view::StartHttpServer) start_http_server;
};

// Name of the variable, a ViewFunctions, that the module exports.
inline constexpr const char* kViewSymbol = "plumb_view_functions";

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_VIEW_FUNCTIONS_H_
