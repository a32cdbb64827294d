#include "server/base/http_headers.hpp"

namespace idem {
namespace {

bool IsNamed(const JsonbValue &key, const char *name) {
    return name != nullptr && static_cast<size_t>(key.val.string.len) == strlen(name) &&
           pg_strncasecmp(key.val.string.val, name, key.val.string.len) == 0;
}

void AddText(const JsonbValue &value, HeaderText *found) {
    if (value.type != jbvString) {
        found->unusable = true;
        return;
    }
    std::string_view text(value.val.string.val, static_cast<size_t>(value.val.string.len));
    found->unusable |= !found->value.empty() && found->value != text;
    found->value = text;
}

void AddValue(const JsonbValue &value, HeaderText *found) {
    if (value.type != jbvBinary || !JsonContainerIsArray(value.val.binary.data)) {
        AddText(value, found);
        return;
    }
    JsonbContainer *array = value.val.binary.data;
    for (uint32 i = 0; i < JsonContainerSize(array); i++) AddText(*getIthJsonbValueFromContainer(array, i), found);
}

}  // namespace

HeaderText HeaderValue(Jsonb *headers, const char *name, const char *other_name) {
    HeaderText found = {};
    // What is no object has no keys.
    JsonbIterator *iterator = JsonbIteratorInit(&headers->root);
    JsonbValue token;
    bool named = false;
    for (JsonbIteratorToken kind; (kind = JsonbIteratorNext(&iterator, &token, true)) != WJB_DONE;) {
        if (kind == WJB_KEY)
            named = IsNamed(token, name) || IsNamed(token, other_name);
        else if (kind == WJB_VALUE && named)
            AddValue(token, &found);
    }
    if (found.unusable) found.value = {};
    return found;
}

}  // namespace idem
