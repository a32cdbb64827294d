#include "server/ring/move.hpp"

#include "server/base/statement.hpp"
#include "server/claim/perform.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/record.hpp"

namespace idem {
namespace {

// A claim's holder that comes to settle waits for the step that moves it, so a step must not take long.
constexpr int kEventsPerStep = 100;

// Looks for the events by the index on what is due, which settled events are not in.
int MoveSome(DedupTable &table, int64_t generation) {
    ReportProgress(table.relation, Phase::Move, 0, 0);
    const Slot &sealed = table.SlotOf(generation);
    const char *query = psprintf(
        "SELECT key, handler, event_id FROM ONLY %s WHERE claimable_at IS NOT NULL "
        "AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()",
        QualifiedNameOf(sealed.relation));
    int result = SPI_execute(query, true, kEventsPerStep);
    if (result != SPI_OK_SELECT) elog(ERROR, "could not look for unsettled events: %s", SPI_result_code_string(result));

    SPITupleTable *found = SPI_tuptable;
    int moved = 0;
    for (uint64 i = 0; i < found->numvals; i++) {
        auto value = [&](int column) {
            bool null = false;
            return SPI_getbinval(found->vals[i], found->tupdesc, column, &null);
        };
        EventCall call = {};
        call.dedup = table.relation;
        call.action = Action::Move;
        call.event.key = *reinterpret_cast<const Key *>(DatumGetUUIDP(value(1)));
        call.event.handler = DatumGetTextPP(value(2));
        call.event.event_id = DatumGetTextPP(value(3));
        if (Perform(call).decision.effect == Effect::Update) moved++;
    }
    SPI_freetuptable(found);
    return moved;
}

}  // namespace

void MoveUnsettled(const Pass &pass, int64_t generation) {
    auto move_some = [&](DedupTable &table) {
        bool sealed = generation >= table.oldest_generation && generation < table.current_generation;
        if (!sealed) return false;
        Oid dedup = table.relation;
        int moved = MoveSome(table, generation);
        if (moved > 0) LimitLockWaits();
        if (moved > 0) RecordPurge(dedup, PurgeDone{.events_moved = moved});
        return moved > 0;
    };
    while (InStep(pass.dedup, pass.patience, move_some)) {
    }
}

}  // namespace idem
