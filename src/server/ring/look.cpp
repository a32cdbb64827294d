#include "server/ring/look.hpp"

#include "core/ring.hpp"
#include "server/base/extension.hpp"
#include "server/base/relation_file.hpp"
#include "server/ring/record.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/generation.hpp"
#include "server/table/partitions.hpp"
#include "server/table/registry.hpp"
#include "server/table/watch.hpp"

namespace idem {
namespace {

struct TableLook {
    RingPosition ring;
    int64_t counted;    // sealed generations that were
    bool time_to_turn;  // once its current generation holds anything
    bool seen;          // by a pass, within the hour
    bool holds_in[kMostSlots];
};

struct PartitionLook {
    Oid relation;
    int table;
    bool watched;
};

// All that is looked at; tables and partitions in the order of their OIDs.
struct Scene {
    Looks looks;
    TableLook *tables;
    PartitionLook *partitions;
    int partition_count;
    int room;
};

int CompareOids(Oid one, Oid other) { return one < other ? -1 : one > other; }

Look *FindTable(const Scene &scene, Oid dedup) {
    auto compare = [](const void *key, const void *look) {
        return CompareOids(*static_cast<const Oid *>(key), static_cast<const Look *>(look)->dedup);
    };
    return static_cast<Look *>(bsearch(&dedup, scene.looks.of, scene.looks.count, sizeof(Look), compare));
}

PartitionLook *FindPartition(const Scene &scene, Oid relation) {
    auto compare = [](const void *key, const void *partition) {
        return CompareOids(*static_cast<const Oid *>(key), static_cast<const PartitionLook *>(partition)->relation);
    };
    return static_cast<PartitionLook *>(
        bsearch(&relation, scene.partitions, scene.partition_count, sizeof(PartitionLook), compare));
}

// Calls use(row, descriptor) on the rows of a catalog with these OIDs in a column, and perhaps on others: goes through
// all of it where that is less than to look each up.
template <class F, class Oids>
void ReadCatalog(Oid catalog_id, Oid index, AttrNumber column, int count, Oids oid_of, F use) {
    Relation catalog = table_open(catalog_id, AccessShareLock);
    bool whole = RelationGetNumberOfBlocks(catalog) <= static_cast<BlockNumber>(count);
    for (int i = 0; i < (whole ? 1 : count); i++) {
        ScanKeyData key;
        ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(whole ? InvalidOid : oid_of(i)));
        SysScanDesc scan = systable_beginscan(catalog, index, !whole, nullptr, whole ? 0 : 1, &key);
        while (HeapTuple tuple = systable_getnext(scan)) use(tuple, RelationGetDescr(catalog));
        systable_endscan(scan);
    }
    table_close(catalog, AccessShareLock);
}

void FindTables(Scene *scene) {
    auto add = [](Oid dedup, const RingPosition &ring, void *argument) {
        auto *scene = static_cast<Scene *>(argument);
        int count = scene->looks.count;
        if (count == scene->room) {
            scene->room = count == 0 ? 64 : count * 2;
            scene->looks.of = static_cast<Look *>(count == 0 ? palloc(scene->room * sizeof(Look))
                                                             : repalloc(scene->looks.of, scene->room * sizeof(Look)));
            scene->tables =
                static_cast<TableLook *>(count == 0 ? palloc(scene->room * sizeof(TableLook))
                                                    : repalloc(scene->tables, scene->room * sizeof(TableLook)));
        }
        scene->looks.of[count] = {dedup, false, false};
        scene->tables[count] = {};
        scene->tables[count].ring = ring;
        scene->looks.count++;
    };
    ReadRingPositions(add, scene);
}

void LookAtGenerations(Scene *scene) {
    auto look = [](Oid dedup, int64_t generation, const Generation &read, void *argument) {
        auto *scene = static_cast<Scene *>(argument);
        Look *of = FindTable(*scene, dedup);
        if (of == nullptr) return;
        TableLook &table = scene->tables[of - scene->looks.of];
        Micros now = GetCurrentTimestamp();
        if (generation == table.ring.current) {
            std::optional<Policy> policy = ReadPolicy(dedup);
            if (!policy) return;
            // It may have to wait for longer, but never turns before that.
            Micros span = GenerationSpan(policy->windows.cold, Max(table.ring.slots, kFewestSlots));
            table.time_to_turn = IsTimeToTurn(read.opened_at, read.opened_at + span, now);
        } else if (generation >= table.ring.oldest && generation < table.ring.current && read.census) {
            table.counted++;
            bool expired = read.census->newest_expiry.value_or(now) <= now;
            bool holds = generation == table.ring.oldest || read.census->events > 0;
            if (expired && holds) of->due = true;
        }
    };
    ReadGenerations(look, scene);
}

void LookAtRecords(Scene *scene) {
    auto look = [](Oid dedup, const PurgeRecord &record, void *argument) {
        auto *scene = static_cast<Scene *>(argument);
        Look *of = FindTable(*scene, dedup);
        if (of == nullptr) return;
        of->failed_before = record.failed;
        scene->tables[of - scene->looks.of].seen = !IsPassNews(record.last_pass);
    };
    ReadPurgeRecords(look, scene);
}

void FindPartitions(Scene *scene) {
    int room = 64;
    scene->partitions = static_cast<PartitionLook *>(palloc(room * sizeof(PartitionLook)));
    auto table = [&](int i) { return scene->looks.of[i].dedup; };
    ReadCatalog(InheritsRelationId, InheritsParentIndexId, Anum_pg_inherits_inhparent, scene->looks.count, table,
                [&](HeapTuple tuple, TupleDesc) {
                    auto *row = reinterpret_cast<Form_pg_inherits>(GETSTRUCT(tuple));
                    Look *of = FindTable(*scene, row->inhparent);
                    if (of == nullptr) return;
                    if (scene->partition_count == room) {
                        room *= 2;
                        scene->partitions =
                            static_cast<PartitionLook *>(repalloc(scene->partitions, room * sizeof(PartitionLook)));
                    }
                    scene->partitions[scene->partition_count++] = {row->inhrelid,
                                                                   static_cast<int>(of - scene->looks.of), false};
                });
    qsort(scene->partitions, scene->partition_count, sizeof(PartitionLook), [](const void *one, const void *other) {
        return CompareOids(static_cast<const PartitionLook *>(one)->relation,
                           static_cast<const PartitionLook *>(other)->relation);
    });
}

void LookIntoPartitions(Scene *scene) {
    auto partition = [&](int i) { return scene->partitions[i].relation; };
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "idem look", ALLOCSET_DEFAULT_SIZES);
    ReadCatalog(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, scene->partition_count, partition,
                [&](HeapTuple tuple, TupleDesc desc) {
                    auto *row = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
                    const PartitionLook *part = FindPartition(*scene, row->oid);
                    if (part == nullptr) return;
                    // Not in order: a pass says so.
                    if (row->relrowsecurity || row->relhasrules) scene->looks.of[part->table].due = true;
                    if (FileBytes(row->reltablespace, row->relfilenode) == 0) return;
                    MemoryContext caller = MemoryContextSwitchTo(context);
                    TableLook &table = scene->tables[part->table];
                    int slot = SlotNumberOf(tuple, desc);
                    if (slot < 0 || slot >= kMostSlots)
                        scene->looks.of[part->table].due = true;
                    else
                        table.holds_in[slot] = true;
                    MemoryContextSwitchTo(caller);
                    MemoryContextReset(context);
                });
    MemoryContextDelete(context);
}

void LookAtTriggers(Scene *scene) {
    auto partition = [&](int i) { return scene->partitions[i].relation; };
    Oid touch = InstalledExtension().touch;
    ReadCatalog(TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid, scene->partition_count, partition,
                [&](HeapTuple tuple, TupleDesc) {
                    auto *row = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(tuple));
                    PartitionLook *part = FindPartition(*scene, row->tgrelid);
                    if (part == nullptr) return;
                    if (row->tgfoid != touch)
                        scene->looks.of[part->table].due = true;  // not in order, too
                    else if (row->tgenabled == TRIGGER_FIRES_ALWAYS)
                        part->watched = true;
                });
    for (int i = 0; i < scene->partition_count; i++)
        if (!scene->partitions[i].watched) scene->looks.of[scene->partitions[i].table].due = true;
}

int SlotOf(const RingPosition &ring, int64_t generation) {
    return static_cast<int>((generation % ring.slots + ring.slots) % ring.slots);
}

// Whether something is due by what was seen of the table.
bool IsDue(Oid dedup, const TableLook &table) {
    const RingPosition &ring = table.ring;
    if (!table.seen || ring.slots < kFewestSlots || ring.slots > kMostSlots) return true;
    if (table.counted < ring.current - ring.oldest) return true;
    for (int64_t g = ring.oldest; g < ring.current && HasFilterMemory(); g++)
        if (!IsPublished(dedup, SlotOf(ring, g), g)) return true;
    for (int64_t g = ring.current - ring.slots + 1; g < ring.oldest; g++)
        if (table.holds_in[SlotOf(ring, g)]) return true;
    return table.time_to_turn && table.holds_in[SlotOf(ring, ring.current)];
}

}  // namespace

Looks LookAtAll() {
    Scene scene = {};
    FindTables(&scene);
    LookAtGenerations(&scene);
    LookAtRecords(&scene);
    FindPartitions(&scene);
    LookIntoPartitions(&scene);
    LookAtTriggers(&scene);
    for (int i = 0; i < scene.looks.count; i++) {
        Look &look = scene.looks.of[i];
        look.due = look.due || look.failed_before || IsDue(look.dedup, scene.tables[i]);
    }
    return scene.looks;
}

}  // namespace idem
