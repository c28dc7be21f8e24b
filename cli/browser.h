// The browser of the user's desktop, and the way to it from another machine.

#ifndef PLUMBLINE_CLI_BROWSER_H_
#define PLUMBLINE_CLI_BROWSER_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline::cli {

// Shows `address` with $BROWSER or xdg-open, which goes on when this program ends. kNotFound: there
// is neither.
Status OpenBrowser(const std::string& address);

// The command that brings `port` of this machine to the one that the user sits at; empty where this
// is no session over ssh.
std::string SshLine(int port);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_BROWSER_H_
