// The fingerprint of named paths of a jsonb, in canonical form.
#pragma once

#include "core/fingerprint.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// Equal for contents which are equal at these paths as jsonb compares them: the order of keys, spaces and the way in
// which a number is written make no difference; a missing value differs from null. `paths` is a text[]: each element is
// a key, or a list of keys and array positions as for #>, such as {data,object,amount}. Raises 22004 for a null and
// 22023 for no path.
Fingerprint FingerprintOfPaths(Jsonb *content, ArrayType *paths);

}  // namespace idem
