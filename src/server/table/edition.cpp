#include "server/table/edition.hpp"

namespace idem {
namespace {

uint64_t Mix(uint64_t edition, uint32_t part) { return hash_bytes_uint32_extended(part, edition); }

// Adds who wrote the rows of a catalog that have the partition's OID in a column. Freezing leaves that as it is.
uint64_t MixWriters(uint64_t edition, Oid catalog_id, Oid index, AttrNumber column, Oid partition) {
    Relation catalog = table_open(catalog_id, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(partition));
    SysScanDesc scan = systable_beginscan(catalog, index, true, nullptr, 1, &key);
    while (HeapTuple tuple = systable_getnext(scan)) edition = Mix(edition, HeapTupleHeaderGetRawXmin(tuple->t_data));
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return edition;
}

}  // namespace

uint64_t EditionOf(Oid partition) {
    uint64_t edition = 0;
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
    if (HeapTupleIsValid(tuple)) {
        auto *form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
        edition = Mix(Mix(edition, form->relfilenode), form->reltablespace);
        ReleaseSysCache(tuple);
    }
    edition = MixWriters(edition, InheritsRelationId, InheritsRelidSeqnoIndexId, Anum_pg_inherits_inhrelid, partition);
    return MixWriters(edition, TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid, partition);
}

}  // namespace idem
