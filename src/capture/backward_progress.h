// How far the way back of one module call has come: which gradients of its results and of its
// inputs are still to arrive, and when its entry is complete.

#ifndef PLUMBLINE_CAPTURE_BACKWARD_PROGRESS_H_
#define PLUMBLINE_CAPTURE_BACKWARD_PROGRESS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace plumbline::capture {

// Knows results, arguments and nodes of the autograd graph by their numbers alone; whoever has the
// gradients tells when one arrives. Thread-compatible.
class BackwardProgress {
 public:
  // For a result that is an argument itself, or a gradient that a node sends: number -> arguments.
  using Sends = std::vector<std::pair<size_t, std::vector<size_t>>>;

  // Marks of the layout: '.' is a result, "(..)" a container of two inside the outermost.
  static constexpr char kResult = '.', kOpen = '(', kClose = ')';

  explicit BackwardProgress(size_t arguments) : arguments_(arguments) {}

  // After the call: what it returned, in order.
  void AddResult();
  void OpenContainer() { layout_ += kOpen; }
  void CloseContainer() { layout_ += kClose; }
  // A result that is these arguments. Their gradients have those of uses inside the call in them.
  void Pass(size_t result, std::vector<size_t> arguments);
  // A node inside the call will tell what it sends to the arguments.
  void ExpectNode() { ++nodes_; }
  // So many of the results will have a gradient, which arrive one by one or together.
  void set_watched(size_t results) { watched_ = results; }

  [[nodiscard]] size_t arguments() const { return arguments_; }
  [[nodiscard]] size_t results() const { return results_; }
  [[nodiscard]] const std::string& layout() const { return layout_; }

  // A pass through the call begins. It may be followed by another one.
  void Open();
  [[nodiscard]] bool is_open() const { return is_open_; }
  // The entry is made: whatever else arrives is too late. False: it was made before.
  bool Close() { return std::exchange(is_open_, false); }

  // The gradients of the results become a part of the entry. False: they did before.
  bool TakeResults() { return !std::exchange(results_taken_, true); }
  // One result has its gradient; nobody knows which others will get one. False: the results were
  // taken, this one is too late.
  [[nodiscard]] bool ResultArrived(size_t result, bool is_none);
  // The arguments that the gradient of a result belongs to, too.
  [[nodiscard]] std::vector<size_t> PassOn(size_t result);
  // Whether a result is this argument itself, so that what nodes send to it is in that.
  [[nodiscard]] bool IsPassed(size_t argument) const;
  // Whether the results are all there, where they arrive one by one. One that is used farther on
  // than another one gets its gradient later.
  [[nodiscard]] bool has_all_results() const { return results_arrived_ == watched_; }
  // A node has told what it sends.
  void NodeArrived() { ++nodes_arrived_; }
  // Whether nothing more will come.
  [[nodiscard]] bool is_complete() const { return nodes_arrived_ == nodes_ && !AwaitsPassed(); }
  [[nodiscard]] bool expects_nodes() const { return nodes_ > 0; }

 private:
  // Results arrive one by one, and one that is an input, which has its gradient last, has not.
  [[nodiscard]] bool AwaitsPassed() const {
    return results_arrived_ > 0 && passed_arrived_ < passed_.size();
  }

  size_t arguments_;
  size_t results_ = 0;
  std::string layout_;
  Sends passed_;
  size_t nodes_ = 0;
  size_t watched_ = 0;

  // The backward pass under way.
  bool is_open_ = false;
  bool results_taken_ = false;
  std::vector<bool> has_gradient_;  // by result
  size_t nodes_arrived_ = 0;
  size_t results_arrived_ = 0;  // where they arrive one by one
  size_t passed_arrived_ = 0;   // of passed_
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_BACKWARD_PROGRESS_H_
