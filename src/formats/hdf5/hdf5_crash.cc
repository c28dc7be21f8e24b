#include "formats/hdf5/hdf5_crash.h"

#include <fmt/format.h>

namespace plumbline::hdf5 {

Error CrashOn(std::string_view paths, Error end) {
  if (end.code() != ErrorCode::kCorrupt) return end;
  return {ErrorCode::kCorrupt,
          fmt::format("{}: damaged: the work of the HDF5 library on it {}. Record it again", paths,
                      end.message())};
}

}  // namespace plumbline::hdf5
