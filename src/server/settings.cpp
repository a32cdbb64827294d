#include "server/settings.hpp"

#include "server/postgres.hpp"

namespace idem {

int max_result_size_kb = 1024;
int filter_memory_kb = 64 * 1024;

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
    DefineCustomIntVariable(
        /* name= */ "idem.filter_memory",
        /* short_desc= */ "Sets the shared memory for filters over the sealed generations of all dedup tables.",
        /* long_desc= */
        "A filter spares a new event most look-ups in sealed generations. It takes 15 bits for each event of a "
        "generation, times the number of generations rounded up to a multiple of eight. Where memory is short, filters "
        "spare fewer look-ups. If set to zero, or if the library is not in shared_preload_libraries, there are none.",
        /* valueAddr= */ &filter_memory_kb,
        /* bootValue= */ 64 * 1024,
        /* minValue= */ 0,
        /* maxValue= */ MAX_KILOBYTES,
        // The memory is reserved when the server starts. A library that is loaded later reserves none, and the server
        // would not let it define such a setting; but it must know it, as the prefix is reserved.
        /* context= */ process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
        /* flags= */ GUC_UNIT_KB,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    MarkGUCPrefixReserved("idem");
}

}  // namespace idem
