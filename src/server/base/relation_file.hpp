// How long a relation's file is, for who must not wait: no lock is taken.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Bytes of the main fork of a relation of this database with this tablespace and file in pg_class, as the file system
// knows them; 0 where it has no file, or not any more. What others do meanwhile may be in it or not.
int64_t FileBytes(Oid tablespace, Oid file);

}  // namespace idem
