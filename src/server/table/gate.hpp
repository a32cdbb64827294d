// The gate: what makes one unique index out of many.
//
// Whoever claims or settles holds the gate shared for the length of one look-and-write, not for the length of the
// transaction; whoever turns the ring holds it exclusively until its commit. So two calls never disagree about which
// generation is current unless the turn lies between them, and then the later one finds the earlier one's row
// (docs/storage.md has the proof). Nothing may wait while it holds the gate: every lock below it is conditional.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// The lock is that of a relation which no database can have: the server gives OIDs from 10000 on, those below are
// handed out by hand, and of these 8000 to 9999 are for patches in the making, which no release keeps. So no statement
// can name it, and it costs what a relation's lock costs: below ShareUpdateExclusiveLock the server takes it on its
// fast path. It is per database, and pg_locks shows it under this number. What opens a relation by a number, as
// pg_relation_size() does, takes AccessShareLock for a moment, which neither mode minds; and ExclusiveLock is not
// written to the log for standbys.
constexpr Oid kGate = 9999;
constexpr LOCKMODE kGateShared = RowShareLock;
constexpr LOCKMODE kGateClosed = ExclusiveLock;

// Raises 25000 (which no policy answers by a bypass) if this session is below the gate already: a call in the middle of
// another one would change what that one holds. No code of a user's should run there; if some does, it is refused.
void RefuseReentry();

#ifdef IDEM_TEST_WITHOUT_GATE
// Only for the stress test's proof that it can see double effects; never in a build that is installed.
template <class F>
void UnderGate(F call) {
    AcceptInvalidationMessages();
    call();
}
#else
// Calls `call` with the gate held shared. An error inside lets go of the gate with all other locks.
//
// The (sub)transaction owns what is locked below, not the portal that runs the statement: a cursor that fails in a
// savepoint loses its locks there, but the rows that it wrote before the savepoint stay, and are open without a lock.
template <class F>
void UnderGate(F call) {
    RefuseReentry();
    ResourceOwner caller = CurrentResourceOwner;
    CurrentResourceOwner = CurTransactionResourceOwner;
    LockRelationOid(kGate, kGateShared);
    call();
    UnlockRelationOid(kGate, kGateShared);
    CurrentResourceOwner = caller;
}
#endif

// Takes the gate exclusively until the transaction ends, which is to follow at once: whatever may wait, such as writing
// to idem's own tables, is done before. Waits `timeout_ms` at most, then raises 55P03.
void CloseGate(int timeout_ms);

}  // namespace idem
