// Headers of a delivery, as frameworks pass them on: a jsonb object of names and values.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

struct HeaderText {
    std::string_view value;  // into the headers; empty = there is none
    bool unusable;           // no text, or different values, of which nobody could say which one the caller goes by
};

// The header which has one of two names (null = only one), in whatever case; a value is text or an array of text.
// What is unusable has no value.
HeaderText HeaderValue(Jsonb *headers, const char *name, const char *other_name);

}  // namespace idem
