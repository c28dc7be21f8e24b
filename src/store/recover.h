// Final files from the journals of killed processes: `plumb recover DIR`.

#ifndef PLUMBLINE_STORE_RECOVER_H_
#define PLUMBLINE_STORE_RECOVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "store/journal.h"

namespace plumbline {

// What became of one journal.
struct Recovery {
  std::string directory;         // the rank directory
  uint64_t calls = 0;            // in the dump.json written
  uint64_t bytes_dropped = 0;    // cut or damaged tail of the journal
  uint64_t tensors_missing = 0;  // recorded tensors whose file does not exist; no longer named
  uint64_t entries_damaged = 0;  // records that are intact but hold no entry
  std::vector<Loss> losses;      // what the recorder itself had counted; see CutOf()
  bool in_use = false;           // a process is writing there: nothing was done
  bool already_final = false;    // sealed: the final files were complete, the journal was removed
  bool files_are_newer = false;  // they hold what the journal could not: kept, the journal removed
  bool journal_damaged = false;  // not only cut at its end: kept as ".dump.journal.damaged"
  std::vector<std::string> stale_journals;  // names of journals of earlier runs; left alone
};

// Why the journal ends before the recording did, if a full disk or a fault of it cut it and not the
// death of the process: counter error_log::kRecordsDropped. Null otherwise.
const Loss* CutOf(const Recovery& recovery);

// Writes the final files of every rank directory at or below `path` that holds a journal (links
// are not followed), then removes the journal, or renames it when it was damaged. Running it again
// does nothing. kNotFound when there is no such directory; an empty list when there is no journal.
// Directories that fail do not stop the others: their errors are in `failures`.
struct RecoverReport {
  std::vector<Recovery> directories;
  std::vector<Error> failures;
};
Result<RecoverReport> RecoverAll(const std::string& path);

// One rank directory. kNotFound when it holds no journal.
Result<Recovery> RecoverDirectory(const std::string& directory);

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_RECOVER_H_
