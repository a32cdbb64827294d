#include "server/table/dedup_table.hpp"

#include "server/base/extension.hpp"
#include "server/table/edition.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/order.hpp"
#include "server/table/registry.hpp"
#include "server/table/watch.hpp"

namespace idem {
namespace {

// Tables which this session has used, by their OID.
HTAB *tables = nullptr;

struct TableEntry {
    Oid relation;
    DedupTable *table;
};

// Counts loads.
uint64_t loads = 0;

// How many hold the tables that are open.
int holders = 0;

// Counts what the server's relation cache told, so that a load notices what changed meanwhile.
uint64_t invalidations = 0;

[[noreturn]] void NotADedupTable(const char *name) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a dedup table", name),
                    errhint("Make one with idem_create_table.")));
}

// Calls use(number, partition) on each slot's open partition, in the order of their numbers; returns how many there
// are.
template <class F>
int ForEachSlot(const char *name, Relation table, F use) {
    PartitionKey key = RelationGetPartitionKey(table);
    bool by_slot = key->strategy == PARTITION_STRATEGY_LIST && key->partnatts == 1 && key->partattrs[0] > 0 &&
                   strcmp(NameStr(TupleDescAttr(RelationGetDescr(table), key->partattrs[0] - 1)->attname), "slot") == 0;
    if (by_slot && key->partsupfunc[0].fn_oid >= FirstNormalObjectId)
        OutOfOrder(name, "It is partitioned by an operator class which is not the server's own.");
    if (!by_slot) OutOfOrder(name, "It is not partitioned by list of the column \"slot\".");

    PartitionDesc partitions = RelationGetPartitionDesc(table, false);
    PartitionBoundInfo bounds = partitions->boundinfo;
    if (partitions->detached_exist) OutOfOrder(name, "A partition is being detached.");
    if (bounds == nullptr || partitions->nparts < kFewestSlots || partitions->nparts > kMostSlots)
        OutOfOrder(name, psprintf("It has %d partitions; %d to %d are allowed.", partitions->nparts, kFewestSlots,
                                  kMostSlots));
    if (bounds->null_index >= 0 || bounds->default_index >= 0 || bounds->ndatums != partitions->nparts)
        OutOfOrder(name, "Its partitions must hold one value of \"slot\" each.");

    char persistence = RELPERSISTENCE_PERMANENT;
    for (int number = 0; number < bounds->ndatums; number++) {
        if (DatumGetInt16(bounds->datums[number][0]) != number)
            OutOfOrder(name, psprintf("It has no partition for slot %d.", number));
        Relation partition = table_open(partitions->oids[bounds->indexes[number]], AccessShareLock);
        if (partition->rd_rel->relkind != RELKIND_RELATION || partition->rd_rel->relam != HEAP_TABLE_AM_OID)
            OutOfOrder(name,
                       psprintf("Partition \"%s\" is not an ordinary table.", RelationGetRelationName(partition)));
        CheckNothingPassedBy(name, partition);
        if (number == 0) persistence = partition->rd_rel->relpersistence;
        if (partition->rd_rel->relpersistence != persistence)
            OutOfOrder(name,
                       psprintf("Some of its partitions are unlogged and some are not, such as \"%s\": after a crash "
                                "it would remember some events and forget others.",
                                RelationGetRelationName(partition)));
        CheckNoUserCode(name, partition);
        use(number, partition);
        table_close(partition, AccessShareLock);
    }
    return bounds->ndatums;
}

// Calls use(relation) on the open table, if it is one OF idem_event.
template <class F>
void WithDedupTable(Oid relation_id, F use) {
    Relation relation = try_relation_open(relation_id, AccessShareLock);
    if (relation == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", relation_id)));
    bool of_event = relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
                    relation->rd_rel->reloftype == InstalledExtension().event_type;
    if (!of_event || relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
        NotADedupTable(RelationGetRelationName(relation));
    CheckNothingPassedBy(RelationGetRelationName(relation), relation);
    use(relation);
    relation_close(relation, AccessShareLock);
}

void LoadSlots(DedupTable *table, Relation relation) {
    table->slots = static_cast<Slot *>(MemoryContextAllocZero(table->context, kMostSlots * sizeof(Slot)));
    table->slot_count = ForEachSlot(table->name, relation, [&](int number, Relation partition) {
        Slot &slot = table->slots[number];
        MemoryContext caller = MemoryContextSwitchTo(table->context);
        slot.relation = RelationGetRelid(partition);
        slot.number = number;
        slot.context = table->context;
        slot.desc = CreateTupleDescCopyConstr(RelationGetDescr(partition));
        slot.columns = MapColumns(slot.desc, RelationGetRelationName(partition));
        MemoryContextSwitchTo(caller);
        slot.watched = IsWatched(partition);
        slot.has_touch = HasTouchTrigger(partition);
        slot.constrained = CheckConstraints(table->name, partition, slot.columns);
        CheckIndexes(table->name, partition, slot.columns.numbers[static_cast<int>(Column::Key)]);
    });
}

int FilterOf(const DedupTable &table) {
    Oid partitions[kMostSlots];
    for (int i = 0; i < table.slot_count; i++) {
        partitions[i] = table.slots[i].relation;
        // Who gives it its trigger back by hand may not know what was written without.
        if (!table.slots[i].watched) TouchFilter(partitions[i]);
    }
    int filter = FindFilter(table.relation, partitions, table.slot_count);
    for (int i = 0; filter >= 0 && i < table.slot_count; i++)
        TellEdition(filter, table.relation, i, EditionOf(partitions[i]));
    return filter;
}

// Whoever fills an empty slot tells by idem_touch, so this need not be asked again before the table is out of date.
bool HasStrays(DedupTable &table) {
    int64_t first = table.current_generation - table.slot_count + 1;
    for (int64_t g = first; g < table.oldest_generation; g++) {
        const Slot &slot = table.SlotOf(g);
        if (!slot.watched) return true;
        Relation partition = table_open(slot.relation, AccessShareLock);
        bool rows = RelationGetNumberOfBlocks(partition) > 0;
        table_close(partition, AccessShareLock);
        if (rows) return true;
    }
    return false;
}

void LoadHandlerPolicies(DedupTable *table) {
    auto add = [](const HandlerPolicy &read, void *argument) {
        auto *table = static_cast<DedupTable *>(argument);
        MemoryContext caller = MemoryContextSwitchTo(table->context);
        Size size = (table->handler_count + 1) * sizeof(HandlerPolicy);
        table->handlers =
            static_cast<HandlerPolicy *>(table->handlers == nullptr ? palloc(size) : repalloc(table->handlers, size));
        HandlerPolicy &policy = table->handlers[table->handler_count++];
        policy.handler = {pnstrdup(read.handler.data(), read.handler.size()), read.handler.size()};
        policy.change = read.change;
        MemoryContextSwitchTo(caller);
    };
    ReadHandlerPolicies(table->relation, add, table);
}

DedupTable *Load(Oid relation_id) {
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "idem dedup table", ALLOCSET_SMALL_SIZES);
    auto *table = static_cast<DedupTable *>(MemoryContextAllocZero(context, sizeof(DedupTable)));
    table->relation = relation_id;
    table->context = context;
    table->loaded = ++loads;

    WithDedupTable(relation_id, [&](Relation relation) {
        strlcpy(table->name, RelationGetRelationName(relation), NAMEDATALEN);
        LoadSlots(table, relation);
    });

    std::optional<Policy> policy = ReadPolicy(relation_id);
    RingPosition position;
    if (!policy || !ReadRingPosition(relation_id, &position))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("dedup table \"%s\" is not registered", table->name),
                        errhint("If it was restored without its registration, use idem_attach_table.")));
    // The slot of a generation depends on their number, so a partition more or less would hide events.
    if (position.slots != table->slot_count)
        OutOfOrder(table->name,
                   psprintf("It has %d partitions, but was registered with %d.", table->slot_count, position.slots));
    table->policy = *policy;
    LoadHandlerPolicies(table);
    table->oldest_generation = position.oldest;
    table->current_generation = position.current;
    table->filter = FilterOf(*table);
    table->strays = HasStrays(*table);
    return table;
}

TableEntry *EntryOf(Oid relation) {
    if (tables == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Oid);
        control.entrysize = sizeof(TableEntry);
        tables = hash_create("idem dedup tables", 16, &control, HASH_ELEM | HASH_BLOBS);
    }
    bool found = false;
    auto *entry = static_cast<TableEntry *>(hash_search(tables, &relation, HASH_ENTER, &found));
    if (!found) entry->table = nullptr;
    return entry;
}

bool Concerns(const DedupTable *table, Oid relation) {
    if (relation == InvalidOid || table->relation == relation) return true;
    for (int i = 0; i < table->slot_count; i++)
        if (table->slots[i].relation == relation) return true;
    return false;
}

// Callback of the server's relation cache; InvalidOid = everything.
void ForgetTables(Datum, Oid relation) {
    invalidations++;
    if (tables == nullptr) return;
    HASH_SEQ_STATUS status;
    hash_seq_init(&status, tables);
    while (auto *entry = static_cast<TableEntry *>(hash_seq_search(&status)))
        if (entry->table != nullptr && Concerns(entry->table, relation)) entry->table->current = false;
}

// Lets go of what is out of date. If an outer call may still look at it, it stays until the transaction ends.
void DropOutdated() {
    HASH_SEQ_STATUS status;
    hash_seq_init(&status, tables);
    while (auto *entry = static_cast<TableEntry *>(hash_seq_search(&status))) {
        if (entry->table == nullptr || entry->table->current) continue;
        MemoryContext context = entry->table->context;
        entry->table = nullptr;
        if (holders > 0)
            MemoryContextSetParent(context, TopTransactionContext);
        else
            MemoryContextDelete(context);
    }
}

}  // namespace

DedupTable *OpenDedupTable(Oid relation) {
    TableEntry *entry = EntryOf(relation);
    if (entry->table != nullptr && entry->table->current) return entry->table;

    DropOutdated();
    uint64_t before = invalidations;
    DedupTable *table = Load(relation);
    table->current = invalidations == before;
    MemoryContextSetParent(table->context, TopMemoryContext);
    entry->table = table;
    return table;
}

void HoldDedupTables() { holders++; }

void LetGoOfDedupTables() { holders--; }

void ForgetHolders() { holders = 0; }

const DedupTable *LoadedDedupTable(Oid relation) {
    const DedupTable *table = EntryOf(relation)->table;
    return table != nullptr && table->current ? table : nullptr;
}

int CheckDedupTable(Oid relation_id) {
    int count = 0;
    WithDedupTable(relation_id, [&](Relation relation) {
        const char *name = RelationGetRelationName(relation);
        count = ForEachSlot(name, relation, [&](int, Relation partition) {
            ColumnMap columns = MapColumns(RelationGetDescr(partition), RelationGetRelationName(partition));
            CheckConstraints(name, partition, columns);
            CheckIndexes(name, partition, columns.numbers[static_cast<int>(Column::Key)]);
        });
    });
    return count;
}

void WatchDedupTables() { CacheRegisterRelcacheCallback(ForgetTables, Datum{0}); }

}  // namespace idem
