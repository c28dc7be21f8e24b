// Names in the shared directory of an online pre-check: <rank>/start-<session> while a training
// sends, <rank>/<step>/<session>-<sequence>.frame for each frame, <rank>/end-<session> for its last
// one.

#ifndef PLUMBLINE_ONLINE_SHARED_PLACE_H_
#define PLUMBLINE_ONLINE_SHARED_PLACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "online/frame.h"
#include "plumbline/result.h"

namespace plumbline::online::shared_place {

// The mark that a training of that rank is there, and its directory.
plumbline::Status Start(const std::string& directory, int32_t rank, uint64_t session);
// Where a frame stands; its directory is made.
Result<std::string> FramePath(const std::string& directory, const FrameHeader& header);

struct Training {
  int32_t rank = 0;
  uint64_t session = 0;
  std::string mark;  // the path of its start mark
};
// Those that have a start mark.
Result<std::vector<Training>> Trainings(const std::string& directory);
// Paths of the frames of a training, by sequence; its last frame included.
Result<std::vector<std::string>> FramesOf(const std::string& directory, const Training& training);

}  // namespace plumbline::online::shared_place

#endif  // PLUMBLINE_ONLINE_SHARED_PLACE_H_
