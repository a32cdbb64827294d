#include "server/settings.hpp"

#include "server/postgres.hpp"

namespace idem {

int max_result_size_kb = 1024;

void DefineSettings() {
    DefineCustomIntVariable(
        /* name= */ "idem.max_result_size",
        /* short_desc= */ "Sets the largest result that idem_commit and idem_accept store.",
        /* long_desc= */ "A result is read by every duplicate; keep it small.",
        /* valueAddr= */ &max_result_size_kb,
        /* bootValue= */ 1024,
        /* minValue= */ 0,
        /* maxValue= */ 1024 * 1024,
        /* context= */ PGC_USERSET,
        /* flags= */ GUC_UNIT_KB,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    MarkGUCPrefixReserved("idem");
}

}  // namespace idem
