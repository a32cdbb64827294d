#include "server/table/partitions.hpp"

#include "server/base/relation_file.hpp"

namespace idem {
namespace {

// Calls use(row, descriptor) on the rows of a catalog with this OID in a column.
template <class F>
void ForEachRow(Oid catalog_id, Oid index, AttrNumber column, Oid oid, F use) {
    Relation catalog = table_open(catalog_id, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
    SysScanDesc scan = systable_beginscan(catalog, index, true, nullptr, 1, &key);
    while (HeapTuple tuple = systable_getnext(scan)) use(tuple, RelationGetDescr(catalog));
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

template <class F>
void WithClass(Oid relation, F use) {
    ForEachRow(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, relation, [&](HeapTuple tuple, TupleDesc desc) {
        use(*reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple)), tuple, desc);
    });
}

int64_t IndexBytes(Oid relation) {
    int64_t bytes = 0;
    ForEachRow(IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid, relation,
               [&](HeapTuple tuple, TupleDesc) {
                   WithClass(reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple))->indexrelid,
                             [&](const FormData_pg_class &index, HeapTuple, TupleDesc) {
                                 bytes += FileBytes(index.reltablespace, index.relfilenode);
                             });
               });
    return bytes;
}

int64_t ToastBytes(Oid toast) {
    int64_t bytes = 0;
    WithClass(toast, [&](const FormData_pg_class &relation, HeapTuple, TupleDesc) {
        bytes = FileBytes(relation.reltablespace, relation.relfilenode) + IndexBytes(toast);
    });
    return bytes;
}

}  // namespace

int SlotNumberOf(HeapTuple row, TupleDesc pg_class) {
    bool null = false;
    Datum told = heap_getattr(row, Anum_pg_class_relpartbound, pg_class, &null);
    if (null) return -1;
    auto *bound = static_cast<PartitionBoundSpec *>(stringToNode(TextDatumGetCString(told)));
    if (bound->strategy != PARTITION_STRATEGY_LIST || list_length(bound->listdatums) != 1) return -1;
    auto *value = static_cast<Const *>(linitial(bound->listdatums));
    return value->consttype == INT2OID && !value->constisnull ? DatumGetInt16(value->constvalue) : -1;
}

void ReadPartitions(Oid dedup, void (*use)(const Partition &, void *), void *argument) {
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup))) return;
    List *partitions = find_inheritance_children(dedup, NoLock);
    for (int i = 0; i < list_length(partitions); i++) {
        Partition partition = {};
        partition.relation = list_nth_oid(partitions, i);
        partition.slot = -1;
        WithClass(partition.relation, [&](const FormData_pg_class &relation, HeapTuple tuple, TupleDesc desc) {
            partition.slot = SlotNumberOf(tuple, desc);
            partition.heap_bytes = FileBytes(relation.reltablespace, relation.relfilenode);
            partition.bytes = partition.heap_bytes + IndexBytes(relation.oid) + ToastBytes(relation.reltoastrelid);
            partition.events = static_cast<int64_t>(Max(relation.reltuples, 0.0F));
        });
        if (partition.slot >= 0) use(partition, argument);
    }
}

}  // namespace idem
