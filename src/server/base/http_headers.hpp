// Headers of a delivery, as frameworks pass them on: a jsonb object of names and values.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// The value of the header which has one of two names (null = only one), in whatever case; a value is text or an array
// of text. Empty where there is none, where it is no text, or where the headers contradict each other: of two different
// values nobody could say which one the caller goes by. The view is into `headers`.
std::string_view HeaderValue(Jsonb *headers, const char *name, const char *other_name);

}  // namespace idem
