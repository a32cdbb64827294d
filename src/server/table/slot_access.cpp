#include "server/table/slot_access.hpp"

namespace idem {
namespace {

TupleTableSlot *NewTuple(const OpenedSlot &opened, const TupleTableSlotOps *ops) {
    return MakeSingleTupleTableSlot(opened.slot->desc, ops);
}

HeapTupleHeader HeaderOf(TupleTableSlot *tuple) { return ExecFetchSlotHeapTuple(tuple, false, nullptr)->t_data; }

// What the tuple slot holds, made independent of the page it came from.
Found Take(const OpenedSlot &opened, TupleTableSlot *tuple, TransactionId holder) {
    Found found;
    found.holder = holder;
    found.other = TransactionIdIsValid(holder);
    HeapTupleHeader header = HeaderOf(tuple);
    found.ours = !found.other && TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header));
    found.command = found.ours ? HeapTupleHeaderGetCmin(header) : InvalidCommandId;
    found.at = tuple->tts_tid;
    ExecMaterializeSlot(tuple);
    found.row = ReadRow(tuple, opened.slot->columns);
    return found;
}

// Calls use() on every tuple with the key that the snapshot shows until it returns false; returns how many index
// entries led to none.
template <class F>
int ScanKey(const OpenedSlot &opened, const Key &key, Snapshot snapshot, TupleTableSlot *tuple, F use) {
    ScanKeyData scan_key;
    ScanKeyInit(&scan_key, 1, BTEqualStrategyNumber, F_UUID_EQ, PointerGetDatum(&key));
    IndexScanDesc scan = BeginIndexScan(opened.partition, opened.key_index, snapshot, 1);
    index_rescan(scan, &scan_key, 1, nullptr, 0);
    int dead = 0;
    bool more = true;
    while (more && index_getnext_tid(scan, ForwardScanDirection) != nullptr) {
        do {
            if (!index_fetch_heap(scan, tuple))
                dead++;
            else
                more = use(tuple);
        } while (more && scan->xs_heap_continue);
    }
    index_endscan(scan);
    return dead;
}

bool DeletedByUs(HeapTupleHeader header) {
    if ((header->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask)) return false;
    return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(header));
}

// A scan copies a page's entries, then visits their tuples. If an update commits in between, the old version is dead by
// then and the new one's entry was not copied: the row is live all the time and the scan finds nothing (pgsql-hackers,
// "[BUG?] check_exclusion_or_unique_constraint false negative"). A snapshot scan can't miss it.
bool WasMissed(const OpenedSlot &opened, const Key &key, TupleTableSlot *tuple) {
    bool missed = false;
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    // Shown by SnapshotAny and judged by hand, so that a serializable transaction doesn't count it as reading its
    // neighbours.
    ScanKey(opened, key, SnapshotAny, tuple, [&](TupleTableSlot *row) {
        // What this command has deleted itself is still in its snapshot.
        missed = table_tuple_satisfies_snapshot(opened.partition, row, snapshot) && !DeletedByUs(HeaderOf(row));
        return !missed;
    });
    UnregisterSnapshot(snapshot);
    ExecClearTuple(tuple);
    return missed;
}

bool WriterFits(const IndexWriter &writer, List *indexes) {
    if (writer.estate == nullptr || writer.count != list_length(indexes)) return false;
    for (int i = 0; i < writer.count; i++)
        if (writer.indexes[i] != list_nth_oid(indexes, i)) return false;
    return true;
}

// Makes the executor's state for a slot and these indexes. It is kept with the slot, since preparing a partial index's
// predicate costs as much as a write.
void PrepareWriter(const OpenedSlot &opened, List *indexes) {
    IndexWriter &writer = opened.slot->writer;
    if (writer.estate != nullptr) FreeExecutorState(writer.estate);
    MemoryContext caller = MemoryContextSwitchTo(opened.slot->context);
    writer.estate = CreateExecutorState();
    MemoryContextSwitchTo(writer.estate->es_query_cxt);
    writer.count = list_length(indexes);
    writer.indexes = static_cast<Oid *>(palloc(writer.count * sizeof(Oid)));
    for (int i = 0; i < writer.count; i++) writer.indexes[i] = list_nth_oid(indexes, i);
    writer.result = makeNode(ResultRelInfo);
    InitResultRelInfo(writer.result, opened.partition, 0, nullptr, 0);
    writer.result->ri_NumIndices = writer.count;
    writer.result->ri_IndexRelationDescs = static_cast<RelationPtr>(palloc0(writer.count * sizeof(Relation)));
    writer.result->ri_IndexRelationInfo = static_cast<IndexInfo **>(palloc0(writer.count * sizeof(IndexInfo *)));
    MemoryContextSwitchTo(caller);
}

// Closes the first `count` indexes but the key's, which the slot closes.
void CloseIndexes(const OpenedSlot &opened, int count, LOCKMODE lock) {
    const IndexWriter &writer = opened.slot->writer;
    for (int i = 0; i < count; i++) {
        Relation index = writer.result->ri_IndexRelationDescs[i];
        if (index != opened.key_index) index_close(index, lock);
    }
    ResetPerTupleExprContext(writer.estate);
}

TupleTableSlot *TupleOf(const OpenedSlot &opened, EventRow *row) {
    row->Set(Column::Slot, Int16GetDatum(opened.slot->number));
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsHeapTuple);
    ExecStoreHeapTuple(FormTuple(*row, opened.slot->columns, opened.slot->desc), tuple, true);
    tuple->tts_tableOid = RelationGetRelid(opened.partition);
    const IndexWriter &writer = opened.slot->writer;
    if (opened.slot->constrained) ExecConstraints(writer.result, tuple, writer.estate);
    return tuple;
}

// A row of ours may have been written by this very command, and the server refuses to change such a row.
void LetUsSee(const Found &found) {
    if (found.ours) CommandCounterIncrement();
}

// Locks a row without waiting, so that the change which follows does not wait either: heap_update always would, and
// heap_delete takes our own lock for somebody else's.
TM_Result TryLockRow(const OpenedSlot &opened, const Found &found, LockTupleMode mode) {
    TM_FailureData failure;
    ItemPointerData at = found.at;
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    TM_Result result = table_tuple_lock(opened.partition, &at, InvalidSnapshot, tuple, GetCurrentCommandId(true), mode,
                                        LockWaitSkip, 0, &failure);
    ExecDropSingleTupleTableSlot(tuple);
    return result;
}

Written WrittenOf(TM_Result result) {
    switch (result) {
        case TM_Ok:
            return Written::Done;
        case TM_BeingModified:
        case TM_WouldBlock:
            return Written::Held;
        case TM_Updated:
        case TM_Deleted:
        case TM_SelfModified:
            return Written::Conflict;
        case TM_Invisible:
            break;
    }
    elog(ERROR, "unexpected result %d of changing a row of a dedup table", result);
}

}  // namespace

Oid TryOpenSlot(Slot *slot, LOCKMODE lock, OpenedSlot *opened) {
    if (!ConditionalLockRelationOid(slot->relation, lock)) return slot->relation;
    Relation partition = table_open(slot->relation, NoLock);
    Oid key_index = PrimaryKeyIndex(partition);
    if (!ConditionalLockRelationOid(key_index, lock)) {
        table_close(partition, lock);
        return key_index;
    }
    *opened = {slot, lock, partition, index_open(key_index, NoLock), false};
    return InvalidOid;
}

Oid TryOpenForWriting(OpenedSlot *opened) {
    if (opened->writable) return InvalidOid;
    IndexWriter &writer = opened->slot->writer;
    List *indexes = RelationGetIndexList(opened->partition);
    if (!WriterFits(writer, indexes)) PrepareWriter(*opened, indexes);
    list_free(indexes);
    writer.result->ri_RelationDesc = opened->partition;

    for (int i = 0; i < writer.count; i++) {
        Relation index = opened->key_index;
        if (writer.indexes[i] != RelationGetRelid(index)) {
            if (!ConditionalLockRelationOid(writer.indexes[i], opened->lock)) {
                CloseIndexes(*opened, i, opened->lock);
                return writer.indexes[i];
            }
            index = index_open(writer.indexes[i], NoLock);
        }
        writer.result->ri_IndexRelationDescs[i] = index;
        IndexInfo *&info = writer.result->ri_IndexRelationInfo[i];
        if (info == nullptr || info->ii_ReadyForInserts != index->rd_index->indisready) {
            MemoryContext caller = MemoryContextSwitchTo(writer.estate->es_query_cxt);
            info = BuildIndexInfo(index);
            MemoryContextSwitchTo(caller);
        }
    }
    opened->writable = true;
    return InvalidOid;
}

void CloseSlot(const OpenedSlot &opened, bool wrote) {
    LOCKMODE let_go = wrote ? NoLock : opened.lock;
    if (opened.writable) CloseIndexes(opened, opened.slot->writer.count, let_go);
    index_close(opened.key_index, let_go);
    table_close(opened.partition, let_go);
}

LookUp LookForKey(const OpenedSlot &opened, const Key &key, bool thorough) {
    LookUp look = {};
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    SnapshotData dirty;
    InitDirtySnapshot(dirty);

    for (bool again = true; again;) {
        CHECK_FOR_INTERRUPTS();
        int dead = ScanKey(opened, key, &dirty, tuple, [&](TupleTableSlot *row) {
            if (TransactionIdIsValid(dirty.xmin) && dirty.speculativeToken != 0) {
                look.look = Look::Inserting;
                look.inserter = dirty.xmin;
                look.token = dirty.speculativeToken;
                return false;
            }
            look.look = Look::Row;
            look.found = Take(opened, row, TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax);
            return false;
        });
        again = look.look == Look::Nothing && (dead > 0 || thorough) && WasMissed(opened, key, tuple);
    }

    if (look.look != Look::Row) ExecDropSingleTupleTableSlot(tuple);
    return look;
}

std::optional<Found> ReadOwnRow(const OpenedSlot &opened, const ItemPointerData &at, const Key &key) {
    ItemPointerData place = at;
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    if (!table_tuple_fetch_row_version(opened.partition, &place, SnapshotSelf, tuple)) {
        ExecDropSingleTupleTableSlot(tuple);
        return std::nullopt;
    }
    Found found = Take(opened, tuple, InvalidTransactionId);
    bool is_it = found.ours && memcmp(DatumGetUUIDP(found.row.Get(Column::Key)), &key, sizeof(Key)) == 0;
    return is_it ? std::optional(found) : std::nullopt;
}

std::optional<EventRow> ReadVisibleRow(Slot *slot, const Key &key, Snapshot snapshot) {
    Relation partition = table_open(slot->relation, AccessShareLock);
    Relation index = index_open(PrimaryKeyIndex(partition), AccessShareLock);
    OpenedSlot opened = {slot, AccessShareLock, partition, index, false};
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    std::optional<EventRow> row;
    ScanKey(opened, key, snapshot, tuple, [&](TupleTableSlot *) {
        row = Take(opened, tuple, InvalidTransactionId).row;
        return false;
    });
    CloseSlot(opened, false);
    return row;
}

void CheckVisible(const OpenedSlot &opened, const ItemPointerData &at) {
    if (!IsolationUsesXactSnapshot()) return;
    ItemPointerData place = at;
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    bool visible = table_tuple_fetch_row_version(opened.partition, &place, GetTransactionSnapshot(), tuple);
    ExecDropSingleTupleTableSlot(tuple);
    if (!visible)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not serialize access due to concurrent update")));
}

void ReadAbsence(const OpenedSlot &opened, const Key &key) {
    TupleTableSlot *tuple = NewTuple(opened, &TTSOpsBufferHeapTuple);
    ScanKey(opened, key, GetTransactionSnapshot(), tuple, [](TupleTableSlot *) { return true; });
    ExecDropSingleTupleTableSlot(tuple);
}

Written InsertRow(const OpenedSlot &opened, EventRow *row, ItemPointerData *at) {
    const IndexWriter &writer = opened.slot->writer;
    TupleTableSlot *tuple = TupleOf(opened, row);

    // As INSERT ... ON CONFLICT does (ExecInsert in nodeModifyTable.c): others wait for the token, not for our
    // transaction.
    uint32 token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());
    table_tuple_insert_speculative(opened.partition, tuple, GetCurrentCommandId(true), 0, nullptr, token);
    bool conflict = false;
    list_free(InsertIndexTuples(writer.result, tuple, writer.estate, nullptr, &conflict));
    table_tuple_complete_speculative(opened.partition, tuple, token, !conflict);
    SpeculativeInsertionLockRelease(GetCurrentTransactionId());

    *at = tuple->tts_tid;
    ExecDropSingleTupleTableSlot(tuple);
    return conflict ? Written::Conflict : Written::Done;
}

Written UpdateRow(const OpenedSlot &opened, const Found &found, EventRow *row, ItemPointerData *at) {
    const IndexWriter &writer = opened.slot->writer;
    CheckCmdReplicaIdentity(opened.partition, CMD_UPDATE);
    LetUsSee(found);
    // Nobody else can hold a lock on a row of ours that an update would wait for.
    TM_Result result = found.ours ? TM_Ok : TryLockRow(opened, found, LockTupleNoKeyExclusive);
    if (result == TM_Ok) {
        TupleTableSlot *tuple = TupleOf(opened, row);
        ItemPointerData place = found.at;
        UpdatedIndexes updated;
        result = UpdateTuple(opened.partition, &place, tuple, true, &updated);
        if (result == TM_Ok && NeedsIndexEntries(updated))
            list_free(InsertIndexTuples(writer.result, tuple, writer.estate, &updated, nullptr));
        *at = tuple->tts_tid;
        ExecDropSingleTupleTableSlot(tuple);
    }
    return WrittenOf(result);
}

Written DeleteRow(const OpenedSlot &opened, const Found &found) {
    CheckCmdReplicaIdentity(opened.partition, CMD_DELETE);
    LetUsSee(found);
    TM_Result result = TryLockRow(opened, found, LockTupleExclusive);
    if (result == TM_Ok) {
        ItemPointerData place = found.at;
        result = DeleteTuple(opened.partition, &place, InvalidSnapshot, true);
    }
    return WrittenOf(result);
}

}  // namespace idem
