// The extension's settings (GUCs).
#pragma once

namespace idem {

// idem.max_result_size, in kB: the largest result that idem_commit and idem_accept store.
extern int max_result_size_kb;

// To be called once, when the library is loaded.
void DefineSettings();

}  // namespace idem
