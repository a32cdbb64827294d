// What the catalogs and the file system tell of a dedup table's partitions, for who only wants to know and must not
// wait: no lock is taken on any of them.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Which slot the partition with this row in pg_class is for; -1 = it is no slot.
int SlotNumberOf(HeapTuple row, TupleDesc pg_class);

struct Partition {
    Oid relation;
    int slot;
    int64_t heap_bytes;
    int64_t bytes;   // with indexes and long values
    int64_t events;  // as VACUUM or ANALYZE last counted them; 0: not yet
};

// Calls use(Partition) on each partition that is a slot, as they come. What is dropped meanwhile is left out.
void ReadPartitions(Oid dedup, void (*use)(const Partition &, void *), void *argument);

}  // namespace idem
