#include "server/base/statement.hpp"

namespace idem {

void Execute(const char *statement) {
    int result = SPI_execute(statement, false, 0);
    if (result < 0) elog(ERROR, "could not execute \"%s\": %s", statement, SPI_result_code_string(result));
}

char *QualifiedNameOf(Oid relation) {
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), get_rel_name(relation));
}

}  // namespace idem
