// What a dedup table and its partitions must be like, so that idem's writes are all that any write should be.
//
// `name` is the dedup table's, for messages. All raise 42809.
#pragma once

#include "server/base/postgres.hpp"
#include "server/table/event_row.hpp"

namespace idem {

[[noreturn]] void OutOfOrder(const char *name, const char *detail);

// What idem's writes would pass by without a word must not be there.
void CheckNothingPassedBy(const char *name, Relation relation);

// idem writes below a lock that everybody's calls share, so only immutable functions of the server's own may run there:
// others could wait, fail in the middle, or call idem. The partition's constraints and its indexes must call no other,
// and no column may be generated, as idem computes none.
void CheckNoUserCode(const char *name, Relation partition);

// True if the partition constrains its rows by more than the NOT NULLs which it must have.
bool CheckConstraints(const char *name, Relation partition, const ColumnMap &columns);

// The primary key on (key) decides who was first, so no other constraint may refuse a row. (REINDEX CONCURRENTLY makes
// a second index like the primary key for a while.)
void CheckIndexes(const char *name, Relation partition, AttrNumber key_column);

}  // namespace idem
