#include "server/ring/turn.hpp"

#include "server/ring/empty.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/record.hpp"
#include "server/table/gate.hpp"
#include "server/table/generation.hpp"
#include "server/table/registry.hpp"

namespace idem {
namespace {

void WarnFull(const Pass &pass, const DedupTable &table, const char *detail) {
    if (RecordFull(table.relation, true) || pass.asked)
        ereport(WARNING,
                (errmsg("ring of dedup table \"%s\" could not turn", table.name), errdetail("%s", detail),
                 errhint("New events go on into the current generation; nothing is lost, but the table grows. The view "
                         "idem_purge_status tells what is in the way.")));
}

}  // namespace

void TurnRing(const Pass &pass) {
    std::optional<int64_t> before;
    bool lives = false;
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        int64_t current = table.current_generation;
        if (current + 1 - table.oldest_generation >= table.slot_count) {
            WarnFull(pass, table,
                     "All its slots hold generations with live events, or with events of open transactions.");
            return false;
        }
        switch (EmptySlot(table, current + 1, Proof::Needed)) {
            case Emptied::Yes:
                before = current;
                break;
            case Emptied::Doubted:
                return false;
            case Emptied::InUse:
                WarnFull(pass, table, "Somebody is reading or locking the next slot.");
                break;
            case Emptied::Lives:
                WarnFull(pass, table, "Somebody else has written live events to the next slot.");
                lives = true;
                break;
        }
        return true;
    });
    if (lives) AdoptStrays(pass);
    if (!before) return;

    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        // Someone may have opened it meanwhile.
        if (table.current_generation != *before) return false;
        ReportProgress(table.relation, Phase::Turn, 0, 0);
        LimitLockWaits();
        RecordSealed(table.relation, table.current_generation);
        RecordOpened(table.relation, table.current_generation + 1);
        WriteRingPosition(table.relation, {table.slot_count, table.oldest_generation, table.current_generation + 1});
        RecordPurge(table.relation, PurgeDone{.turned = 1});
        RecordFull(table.relation, false);
        CloseGate(pass.gate_timeout_ms);
        return true;
    });
}

}  // namespace idem
