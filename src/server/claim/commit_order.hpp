// A commit that leaves a claim unsettled is refused before any other extension hears of it.
//
// postgres_fdw and Citus commit elsewhere in callbacks of their own as the transaction is about to commit, and no error
// that comes after takes that back. The server calls the newest callback first, and theirs may be newer than ours:
// postgres_fdw registers at its first connection. So ours is registered anew after each statement of a transaction with
// open claims. Whatever connects or writes elsewhere ends in the executor's end or in that of a utility statement;
// deferred triggers too, and cursors which the commit closes or keeps, as they are done before the callbacks.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// The transaction has just got a claim: maybe by something that is no statement, such as an expression of PL/pgSQL.
void ComeFirstAtCommit();

// To be called once, when the library is loaded.
void WatchStatements();

}  // namespace idem
