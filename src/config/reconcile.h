// Settings that only make sense together.

#ifndef PLUMBLINE_CONFIG_RECONCILE_H_
#define PLUMBLINE_CONFIG_RECONCILE_H_

#include "config/config.h"

namespace plumbline::settings {

// Checks settings against each other after all of them are known, and settles what one of them
// leaves without effect, with a warning. The error names the field to change.
Status Reconcile(Config& config);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_RECONCILE_H_
