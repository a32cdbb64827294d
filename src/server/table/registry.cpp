#include "server/table/registry.hpp"

#include "server/base/extension.hpp"
#include "server/base/own_table.hpp"
#include "server/table/filter_memory.hpp"

namespace idem {
namespace {

// Columns of idem_control, as sql/tables.sql makes them.
enum ControlColumn { kDedup = 1, kSlots, kOldest, kCurrent };

RingPosition FromRow(HeapTuple tuple, TupleDesc desc) {
    return {DatumGetInt16(ColumnOf(tuple, kSlots, desc)), DatumGetInt64(ColumnOf(tuple, kOldest, desc)),
            DatumGetInt64(ColumnOf(tuple, kCurrent, desc))};
}

}  // namespace

bool ReadRingPosition(Oid dedup, RingPosition *position) {
    return ReadOwnRows(InstalledExtension().control, KeyOf(dedup),
                       [&](HeapTuple tuple, TupleDesc desc) { *position = FromRow(tuple, desc); }) > 0;
}

void Register(Oid dedup, const Policy &policy, RingPosition position) {
    const Extension &extension = InstalledExtension();
    if (ReadPolicy(dedup))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("dedup table \"%s\" is registered already", get_rel_name(dedup))));

    for (Oid table :
         {extension.registry, extension.handler_policy, extension.control, extension.generation, extension.purge_state})
        ForgetDropped(table);
    // What was left of an earlier registration, or of another table which had this OID.
    for (Oid table : {extension.handler_policy, extension.generation, extension.purge_state})
        DeleteOwnRow(table, KeyOf(dedup));
    DropFilter(dedup);

    InsertPolicy(dedup, policy);
    OwnRow place = {};
    place.Set(kDedup, ObjectIdGetDatum(dedup));
    place.Set(kSlots, Int16GetDatum(static_cast<int16>(position.slots)));
    place.Set(kOldest, Int64GetDatum(position.oldest));
    place.Set(kCurrent, Int64GetDatum(position.current));
    InsertOwnRow(extension.control, place);
}

void WriteRingPosition(Oid dedup, RingPosition position) {
    OwnRow place = {};
    place.Set(kOldest, Int64GetDatum(position.oldest));
    place.Set(kCurrent, Int64GetDatum(position.current));
    if (UpdateOwnRow(InstalledExtension().control, KeyOf(dedup), place) == 0)
        elog(ERROR, "dedup table %u has no ring position", dedup);
    CacheInvalidateRelcacheByRelid(dedup);
}

List *RegisteredTables() {
    List *tables = NIL;
    auto add = [](Oid dedup, const RingPosition &, void *argument) {
        auto *tables = static_cast<List **>(argument);
        *tables = lappend_oid(*tables, dedup);
    };
    ReadRingPositions(add, &tables);
    return tables;
}

void ReadRingPositions(void (*use)(Oid dedup, const RingPosition &, void *), void *argument) {
    OwnKey all = {};
    ReadOwnRows(InstalledExtension().control, all, [&](HeapTuple tuple, TupleDesc desc) {
        use(DatumGetObjectId(ColumnOf(tuple, kDedup, desc)), FromRow(tuple, desc), argument);
    });
}

}  // namespace idem
