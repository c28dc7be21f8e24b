// How likely an API is to be the cause of a numerical difference (`risk_level`).

#ifndef PLUMBLINE_CONFIG_RISK_LEVELS_H_
#define PLUMBLINE_CONFIG_RISK_LEVELS_H_

#include <string_view>

#include "config/config.h"

namespace plumbline {

// Whether `level` keeps the API entry `name` ("Torch.matmul.0.forward"). kCore keeps matrix
// products, convolutions, normalisation, attention and communication; kFocus drops APIs that only
// create, reshape, copy or index; kAll keeps every entry.
bool IsAtRisk(RiskLevel level, std::string_view name);

}  // namespace plumbline

#endif  // PLUMBLINE_CONFIG_RISK_LEVELS_H_
