// TakeInventory() of dump files of devices.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_INVENTORY_DEVICE_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_INVENTORY_DEVICE_H_

#include <string>
#include <vector>

#include "pipeline/inventory.h"

namespace plumbline {

// The file at `path`, whose recorder called it `name`. One that cannot be read has a problem.
DeviceDumpFacts ReadDeviceDump(const std::string& path, const std::string& name);

// Those in and below `directory` that have names of dumps; none: there is no such file. kIo,
// kNotFound: of the directory itself.
Result<std::vector<DeviceDumpFacts>> ReadDeviceDumps(const std::string& directory);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_INVENTORY_DEVICE_H_
