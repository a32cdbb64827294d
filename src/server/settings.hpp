// The extension's settings (GUCs).
#pragma once

namespace idem {

// idem.max_result_size, in kB: the largest result that idem_commit and idem_accept store.
extern int max_result_size_kb;

// idem.filter_memory, in kB: shared memory for the filters of sealed generations. Without preloading there is none.
extern int filter_memory_kb;

// To be called once, when the library is loaded.
void DefineSettings();

}  // namespace idem
