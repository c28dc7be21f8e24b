// How the program's allocator (jemalloc) is set up; read by it when it starts.

extern "C" {
[[gnu::visibility("default")]] extern const char* malloc_conf;
// The program ends soon: memory that is free is kept for what comes next instead of given back.
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
