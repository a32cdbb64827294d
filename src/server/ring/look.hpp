// What a pass over a database looks at first: in which dedup tables something may be due.
//
// Most passes find nothing to do, in as many tables as there are. So this opens no table and takes no lock on one, and
// reads idem's own tables, a few catalogs and the lengths of files once for all of them. It may say yes where nothing
// is due; what it says no to has nothing to be done now.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

struct Look {
    Oid dedup;
    bool due;            // something may be, or nobody has looked at it whole for an hour
    bool failed_before;  // the latest pass did
};

// In the current memory context, in the order of their OIDs; dropped tables may be among them. Needs a transaction.
struct Looks {
    Look *of;
    int count;
};
Looks LookAtAll();

}  // namespace idem
