// A mapped file that another program cuts off, or whose disk fails, while it is read: the process
// gets SIGBUS where it touches what is gone.

#ifndef PLUMBLINE_BASE_LOST_MAPPING_H_
#define PLUMBLINE_BASE_LOST_MAPPING_H_

namespace plumbline {

// From now on the whole process ends with `exit_status` and one line on stderr that names the file,
// instead of being killed. What it was writing stays under temporary names, as after a kill. For
// programs: a library leaves signals alone. Call once, before threads are started.
void EndWithLineOnLostMapping(int exit_status);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_LOST_MAPPING_H_
