#include "server/base/settings.hpp"

namespace idem {
namespace {

char *databases = nullptr;

// Splits a list of names as search_path is split; false if it is none. The names point into a copy of the text.
bool SplitNames(const char *text, List **names) { return SplitIdentifierString(pstrdup(text), ',', names); }

bool CheckDatabases(char **value, void **, GucSource) {
    List *names = nullptr;
    if (SplitNames(*value, &names)) return true;
    GUC_check_errdetail("List syntax is invalid.");
    return false;
}

}  // namespace

double backoff_jitter = -1;
int clock_patience_s = 3600;
int filter_memory_kb = 64 * 1024;
int ghost_memory_kb = 16 * 1024;
int max_result_size_kb = 1024;
bool purge_enabled = true;
int purge_lock_timeout_ms = 500;
int purge_naptime_s = 60;
int purge_table_timeout_s = 3600;
int stat_handlers = 100;
bool verify_purge = true;

List *DatabaseNames() {
    List *names = nullptr;
    (void)SplitNames(databases, &names);
    return names;
}

bool IsListed(const char *database) {
    List *names = DatabaseNames();
    if (names == nullptr) return true;
    for (int i = 0; i < list_length(names); i++)
        if (strcmp(static_cast<const char *>(list_nth(names, i)), database) == 0) return true;
    return false;
}

void DefineSettings() {
    DefineCustomRealVariable(
        /* name= */ "idem.backoff_jitter",
        /* short_desc= */ "Sets which part of its longest backoff a failed event waits for its next try.",
        /* long_desc= */
        "Below zero, it is chosen by chance for each failure, so that events which failed together are not tried again "
        "together. Tests set it, to know when the next try is due.",
        /* valueAddr= */ &backoff_jitter,
        /* bootValue= */ -1,
        /* minValue= */ -1,
        /* maxValue= */ 1,
        /* context= */ PGC_USERSET,
        /* flags= */ GUC_NOT_IN_SAMPLE,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomIntVariable(
        /* name= */ "idem.clock_patience",
        /* short_desc= */ "Sets for how long the clock must hold steady after a jump before anything is purged.",
        /* long_desc= */
        "The clock has jumped if its progress differs from that of the machine's steady clock, or over a restart from "
        "that of the last pass, by more than a minute and one per cent. If set to zero, it is always believed.",
        /* valueAddr= */ &clock_patience_s,
        /* bootValue= */ 3600,
        /* minValue= */ 0,
        /* maxValue= */ 30 * 24 * 60 * 60,
        // Without the worker, whoever purges says so in his session.
        /* context= */ PGC_USERSET,
        /* flags= */ GUC_UNIT_S,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomStringVariable(
        /* name= */ "idem.databases",
        /* short_desc= */ "Lists the databases in which dedup tables are purged.",
        /* long_desc= */ "If it is empty, they are purged in every database that is no template.",
        /* valueAddr= */ &databases,
        /* bootValue= */ "",
        /* context= */ PGC_SIGHUP,
        /* flags= */ GUC_LIST_INPUT,
        /* check_hook= */ CheckDatabases,
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
    DefineCustomIntVariable(
        /* name= */ "idem.ghost_memory",
        /* short_desc= */
        "Sets the shared memory for filters of emptied generations, by which late duplicates are counted.",
        /* long_desc= */
        "A ghost takes 15 bytes for each event of a generation, and remembers the eight that were emptied last. If set "
        "to zero, or if the library is not in shared_preload_libraries, no event is counted as late.",
        /* valueAddr= */ &ghost_memory_kb,
        /* bootValue= */ 16 * 1024,
        /* minValue= */ 0,
        /* maxValue= */ MAX_KILOBYTES,
        /* context= */ process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
        /* flags= */ GUC_UNIT_KB,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
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
    DefineCustomBoolVariable(
        /* name= */ "idem.purge",
        /* short_desc= */ "Purges dedup tables in the background.",
        /* long_desc= */ "It needs idem in shared_preload_libraries. If it is off, CALL idem_purge() does the same.",
        /* valueAddr= */ &purge_enabled,
        /* bootValue= */ true,
        /* context= */ PGC_SIGHUP,
        /* flags= */ 0,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomIntVariable(
        /* name= */ "idem.purge_lock_timeout",
        /* short_desc= */ "Sets how long purging waits for a lock.",
        /* long_desc= */ "A table whose lock can't be had in time is left to the next pass.",
        /* valueAddr= */ &purge_lock_timeout_ms,
        /* bootValue= */ 500,
        /* minValue= */ 1,
        /* maxValue= */ INT_MAX,
        /* context= */ PGC_SIGHUP,
        /* flags= */ GUC_UNIT_MS,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomIntVariable(
        /* name= */ "idem.purge_naptime",
        /* short_desc= */ "Sets how long the background worker rests between two passes over the databases.",
        /* long_desc= */ nullptr,
        /* valueAddr= */ &purge_naptime_s,
        /* bootValue= */ 60,
        /* minValue= */ 1,
        /* maxValue= */ 24 * 60 * 60,
        /* context= */ PGC_SIGHUP,
        /* flags= */ GUC_UNIT_S,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomIntVariable(
        /* name= */ "idem.purge_table_timeout",
        /* short_desc= */ "Sets how long a pass over all dedup tables stays with one of them.",
        /* long_desc= */ "What is left to do there is tried again by the next pass. Zero turns the limit off.",
        /* valueAddr= */ &purge_table_timeout_s,
        /* bootValue= */ 3600,
        /* minValue= */ 0,
        /* maxValue= */ 7 * 24 * 60 * 60,
        /* context= */ PGC_SIGHUP,
        /* flags= */ GUC_UNIT_S,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomIntVariable(
        /* name= */ "idem.stat_handlers",
        /* short_desc= */ "Sets of how many handlers of dedup tables statistics are kept.",
        /* long_desc= */
        "What those beyond are answered is counted together. It takes 60 kB of shared memory for each. If set to zero, "
        "or if the library is not in shared_preload_libraries, nothing is counted.",
        /* valueAddr= */ &stat_handlers,
        /* bootValue= */ 100,
        /* minValue= */ 0,
        /* maxValue= */ 100000,
        /* context= */ process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
        /* flags= */ 0,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    DefineCustomBoolVariable(
        /* name= */ "idem.verify_purge",
        /* short_desc= */ "Scans a generation for live events before it is emptied.",
        /* long_desc= */ "If it is off, the newest expiry that was noted when the generation was sealed is trusted.",
        /* valueAddr= */ &verify_purge,
        /* bootValue= */ true,
        /* context= */ PGC_SIGHUP,
        /* flags= */ 0,
        /* check_hook= */ nullptr,
        /* assign_hook= */ nullptr,
        /* show_hook= */ nullptr);
    MarkGUCPrefixReserved("idem");
}

}  // namespace idem
