// How many kernels of an earlier dump each entry of a dump configuration selects.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_KERNEL_SELECTION_H_
#define PLUMBLINE_PIPELINE_GRAPHS_KERNEL_SELECTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct EntrySelection {
  std::string text;     // the entry
  size_t kernels = 0;   // that it matches, also where an earlier entry does
  std::string first;    // the first of them
  std::string nearest;  // where it matches none: a kernel of the same scope and type, whose number
                        // alone differs; empty: none
};

struct KernelSelection {
  size_t graphs = 0, kernels = 0;  // of the dump; names that occur in several graphs count once
  size_t selected = 0;             // by any entry
  std::vector<EntrySelection> entries;
};

// `kernels` as in a dump configuration. Names come from the tables of execution order below `tree`.
// kNotFound without any; errors of KernelEntries::Parse() and ReadExecutionOrders().
Result<KernelSelection> SelectKernels(const std::vector<std::string>& kernels,
                                      const std::string& tree);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_KERNEL_SELECTION_H_
