// The only includer of the server's headers, and the only place which knows that its versions differ.
//
// Standard headers come first: port.h defines names such as snprintf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <sys/stat.h>

extern "C" {
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/async.h"
#include "commands/comment.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "common/pg_lzcompress.h"
#include "common/pg_prng.h"
#include "common/relpath.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/predicate.h"
#include "storage/shmem.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/partcache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"
}

static_assert(PG_VERSION_NUM >= 150000, "idem needs PostgreSQL 15 or later");

namespace idem {

// PostgreSQL 16 lets update_indexes tell apart summarizing indexes, and ExecInsertIndexTuples ask for them only.
#if PG_VERSION_NUM >= 160000
using UpdatedIndexes = TU_UpdateIndexes;
inline bool NeedsIndexEntries(UpdatedIndexes updated) { return updated != TU_None; }
#else
using UpdatedIndexes = bool;
inline bool NeedsIndexEntries(UpdatedIndexes updated) { return updated; }
#endif

inline List *InsertIndexTuples(ResultRelInfo *result, TupleTableSlot *slot, EState *estate, UpdatedIndexes *updated,
                               bool *speculative_conflict) {
#if PG_VERSION_NUM >= 190000
    uint32 flags = (updated != nullptr ? EIIT_IS_UPDATE : 0) |
                   (speculative_conflict != nullptr ? EIIT_NO_DUPE_ERROR : 0) |
                   (updated != nullptr && *updated == TU_Summarizing ? EIIT_ONLY_SUMMARIZING : 0);
    return ExecInsertIndexTuples(result, estate, flags, slot, NIL, speculative_conflict);
#elif PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(result, slot, estate, updated != nullptr, speculative_conflict != nullptr,
                                 speculative_conflict, NIL, updated != nullptr && *updated == TU_Summarizing);
#else
    return ExecInsertIndexTuples(result, slot, estate, updated != nullptr, speculative_conflict != nullptr,
                                 speculative_conflict, NIL);
#endif
}

inline bool OwnsRelation(Oid relation, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(RelationRelationId, relation, role);
#else
    return pg_class_ownercheck(relation, role);
#endif
}

inline bool MayExecute(Oid function, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

inline Oid PrimaryKeyIndex(Relation table) {
#if PG_VERSION_NUM >= 180000
    return RelationGetPrimaryKeyIndex(table, false);
#else
    return RelationGetPrimaryKeyIndex(table);
#endif
}

inline IndexScanDesc BeginIndexScan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 190000
    return index_beginscan(table, index, snapshot, nullptr, keys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
    return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

inline TableScanDesc BeginTableScan(Relation table, Snapshot snapshot) {
#if PG_VERSION_NUM >= 190000
    return table_beginscan(table, snapshot, 0, nullptr, SO_NONE);
#else
    return table_beginscan(table, snapshot, 0, nullptr);
#endif
}

// Each waits for the row's other writers where `waits`, and else tells of them.
inline TM_Result UpdateTuple(Relation table, ItemPointer at, TupleTableSlot *tuple, bool waits,
                             UpdatedIndexes *updated) {
    CommandId command = GetCurrentCommandId(true);
    TM_FailureData failure;
    LockTupleMode mode;
#if PG_VERSION_NUM >= 190000
    return table_tuple_update(table, at, tuple, command, 0, InvalidSnapshot, InvalidSnapshot, waits, &failure, &mode,
                              updated);
#else
    return table_tuple_update(table, at, tuple, command, InvalidSnapshot, InvalidSnapshot, waits, &failure, &mode,
                              updated);
#endif
}

inline TM_Result DeleteTuple(Relation table, ItemPointer at, Snapshot snapshot, bool waits) {
    CommandId command = GetCurrentCommandId(true);
    TM_FailureData failure;
#if PG_VERSION_NUM >= 190000
    return table_tuple_delete(table, at, command, 0, snapshot, InvalidSnapshot, waits, &failure);
#else
    return table_tuple_delete(table, at, command, snapshot, InvalidSnapshot, waits, &failure, false);
#endif
}

// PostgreSQL 19 gives a handler more to know, so that the system's SIG_IGN is not of a handler's type.
inline void IgnoreSignal(int signal) {
#if PG_VERSION_NUM >= 190000
    pqsignal(signal, PG_SIG_IGN);
#else
    pqsignal(signal, SIG_IGN);
#endif
}

// Calls walk() for each child of a plan's node until it returns true.
inline bool WalkPlanStates(PlanState *node, bool (*walk)(PlanState *, void *)) {
#if PG_VERSION_NUM >= 160000
    return planstate_tree_walker(node, walk, nullptr);
#else
    return planstate_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walk)), nullptr);
#endif
}

inline void PathOfMainFork(Oid tablespace, Oid file, char *path, size_t size) {
#if PG_VERSION_NUM >= 180000
    RelPathStr found = GetRelationPath(MyDatabaseId, tablespace, file, INVALID_PROC_NUMBER, MAIN_FORKNUM);
    strlcpy(path, found.str, size);
#else
    char *found = GetRelationPath(MyDatabaseId, tablespace, file, -1, MAIN_FORKNUM);
    strlcpy(path, found, size);
    pfree(found);
#endif
}

// Whether this session holds the lock in exactly this mode.
inline bool HoldsLock(const LOCKTAG &lock, LOCKMODE mode) {
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(&lock, mode, false);
#else
    return LockHeldByMe(&lock, mode);
#endif
}

// Calls walker(child, context) on each node below this one until it returns true.
inline bool WalkExpression(Node *node, bool (*walker)(Node *, void *), void *context) {
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, walker, context);
#else
    return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walker)), context);
#endif
}

// PostgreSQL 17 lets an extension name what it waits for; to be called once a process.
inline uint32 NamedWaitEvent([[maybe_unused]] const char *name) {
#if PG_VERSION_NUM >= 170000
    return WaitEventExtensionNew(name);
#else
    return PG_WAIT_EXTENSION;
#endif
}

}  // namespace idem
