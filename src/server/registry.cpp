#include "server/registry.hpp"

#include "server/arguments.hpp"
#include "server/extension.hpp"
#include "server/filter_memory.hpp"
#include "server/own_table.hpp"

namespace idem {
namespace {

// Columns of idem_registry and idem_control, as sql/idem.sql makes them.
enum RegistryColumn {
    kRegistryDedup = 1,
    kRegistryMode,
    kRegistryHot,
    kRegistryCold,
    kRegistryUnresolved,
};
enum ControlColumn { kControlDedup = 1, kControlSlots, kControlOldest, kControlCurrent };

Micros WindowOf(HeapTuple tuple, int column, TupleDesc desc) {
    return WindowOfInterval(DatumGetIntervalP(ColumnOf(tuple, column, desc)),
                            NameStr(TupleDescAttr(desc, column - 1)->attname));
}

}  // namespace

bool ReadPolicy(Oid dedup, Policy *policy) {
    Relation table = table_open(InstalledExtension().registry, AccessShareLock);
    bool found = WithOwnRow(table, dedup, std::nullopt, [&](HeapTuple tuple, TupleDesc desc) {
        policy->transaction_mode = TransactionModeOf(ViewOf(DatumGetTextPP(ColumnOf(tuple, kRegistryMode, desc))));
        policy->windows.hot = WindowOf(tuple, kRegistryHot, desc);
        policy->windows.cold = WindowOf(tuple, kRegistryCold, desc);
        policy->windows.unresolved = WindowOf(tuple, kRegistryUnresolved, desc);
    });
    table_close(table, AccessShareLock);
    return found;
}

bool ReadRingPosition(Oid dedup, RingPosition *position) {
    Relation table = table_open(InstalledExtension().control, AccessShareLock);
    bool found = WithOwnRow(table, dedup, std::nullopt, [&](HeapTuple tuple, TupleDesc desc) {
        position->slots = DatumGetInt16(ColumnOf(tuple, kControlSlots, desc));
        position->oldest = DatumGetInt64(ColumnOf(tuple, kControlOldest, desc));
        position->current = DatumGetInt64(ColumnOf(tuple, kControlCurrent, desc));
    });
    table_close(table, AccessShareLock);
    return found;
}

void Register(Oid dedup, const Policy &policy, RingPosition position) {
    const Extension &extension = InstalledExtension();

    Policy registered;
    if (ReadPolicy(dedup, &registered))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("dedup table \"%s\" is registered already", get_rel_name(dedup))));

    OwnRow row = {};
    row.Set(kRegistryDedup, ObjectIdGetDatum(dedup));
    row.Set(kRegistryMode, CStringGetTextDatum(policy.transaction_mode ? "transaction" : "lease"));
    row.Set(kRegistryHot, IntervalPGetDatum(IntervalOfSpan(policy.windows.hot)));
    row.Set(kRegistryCold, IntervalPGetDatum(IntervalOfSpan(policy.windows.cold)));
    row.Set(kRegistryUnresolved, IntervalPGetDatum(IntervalOfSpan(policy.windows.unresolved)));
    for (Oid table : {extension.registry, extension.control, extension.generation, extension.purge_state})
        ForgetDropped(table);
    // What was left of an earlier registration, or of another table which had this OID.
    while (DeleteOwnRow(extension.generation, dedup, std::nullopt)) {
    }
    DeleteOwnRow(extension.purge_state, dedup, std::nullopt);
    DropFilter(dedup);
    InsertOwnRow(extension.registry, row);

    OwnRow place = {};
    place.Set(kControlDedup, ObjectIdGetDatum(dedup));
    place.Set(kControlSlots, Int16GetDatum(static_cast<int16>(position.slots)));
    place.Set(kControlOldest, Int64GetDatum(position.oldest));
    place.Set(kControlCurrent, Int64GetDatum(position.current));
    InsertOwnRow(extension.control, place);
}

void WriteRingPosition(Oid dedup, RingPosition position) {
    OwnRow place = {};
    place.Set(kControlOldest, Int64GetDatum(position.oldest));
    place.Set(kControlCurrent, Int64GetDatum(position.current));
    if (!UpdateOwnRow(InstalledExtension().control, dedup, std::nullopt, place))
        elog(ERROR, "dedup table %u has no ring position", dedup);
    CacheInvalidateRelcacheByRelid(dedup);
}

List *RegisteredTables() {
    List *tables = NIL;
    Relation control = table_open(InstalledExtension().control, AccessShareLock);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(control, PrimaryKeyIndex(control), true, snapshot, 0, nullptr);
    while (HeapTuple tuple = systable_getnext(scan))
        tables = lappend_oid(tables, DatumGetObjectId(ColumnOf(tuple, kControlDedup, RelationGetDescr(control))));
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(control, AccessShareLock);
    return tables;
}

}  // namespace idem
