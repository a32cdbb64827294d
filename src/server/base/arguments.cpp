#include "server/base/arguments.hpp"

#include "core/window.hpp"

namespace idem {
std::string_view ViewOf(const text *value) { return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)}; }

std::string_view Utf8(std::string_view bytes) {
    char *utf8 = pg_server_to_any(bytes.data(), static_cast<int>(bytes.size()), PG_UTF8);
    return utf8 == bytes.data() ? bytes : std::string_view(utf8);
}

void RequireArgument(FunctionCallInfo fcinfo, int number, const char *name) {
    if (PG_ARGISNULL(number))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name)));
}

void CheckLength(const text *value, const char *name, int most_bytes) {
    int bytes = static_cast<int>(VARSIZE_ANY_EXHDR(value));
    if (bytes > most_bytes)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s is too long", name),
                        errdetail("It has %d bytes; at most %d are allowed.", bytes, most_bytes)));
}

text *CheckText(text *value, const char *name, int most_bytes) {
    CheckLength(value, name, most_bytes);
    if (ViewOf(value).empty())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be empty", name)));
    return value;
}

text *NonEmptyTextArgument(FunctionCallInfo fcinfo, int number, const char *name, int most_bytes) {
    return PG_ARGISNULL(number) ? nullptr : CheckText(PG_GETARG_TEXT_PP(number), name, most_bytes);
}

Identity MakeIdentity(text *handler, text *event_id, text *batch) {
    Key key = MakeKey(Utf8(ViewOf(handler)), Utf8(ViewOf(event_id)), batch ? Utf8(ViewOf(batch)) : std::string_view());
    return {handler, event_id, batch, key};
}

Identity IdentityArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "handler");
    RequireArgument(fcinfo, number + 1, "event_id");
    return MakeIdentity(NonEmptyTextArgument(fcinfo, number, "handler", kMostHandlerBytes),
                        NonEmptyTextArgument(fcinfo, number + 1, "event_id", kMostEventIdBytes),
                        NonEmptyTextArgument(fcinfo, number + 2, "batch", kMostBatchBytes));
}

Micros WindowOfInterval(const Interval *interval, const char *name) {
    Micros window = 0;
    switch (ReadWindow(interval->month, interval->day, interval->time, &window)) {
        case WindowFault::HasMonths:
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s has no fixed length", name),
                            errdetail("Months and years differ in length."),
                            errhint("Say it in days or hours; a day is 24 hours.")));
        case WindowFault::NotPositive:
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be positive", name)));
        case WindowFault::TooLong:
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s is too long", name),
                            errdetail("At most %d days are allowed.", static_cast<int>(kLongestWindow / kDay))));
        case WindowFault::None:
            break;
    }
    return window;
}

Micros PauseOfInterval(const Interval *interval, const char *name) {
    bool zero = interval->month == 0 && interval->day == 0 && interval->time == 0;
    return zero ? 0 : WindowOfInterval(interval, name);
}

Interval *IntervalOfSpan(Micros span) {
    auto *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));
    interval->day = static_cast<int32>(span / kDay);
    interval->time = span % kDay;
    return interval;
}

Micros WindowArgument(FunctionCallInfo fcinfo, int number, const char *name, Micros otherwise) {
    return PG_ARGISNULL(number) ? otherwise : WindowOfInterval(PG_GETARG_INTERVAL_P(number), name);
}

int32_t CheckAttempt(int32_t attempt) {
    if (attempt <= 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("attempt must be positive, not %d", attempt),
                        errhint("Pass the attempt which idem_acquire returned.")));
    return attempt;
}

int32_t AttemptArgument(FunctionCallInfo fcinfo, int number) {
    return PG_ARGISNULL(number) ? 0 : CheckAttempt(PG_GETARG_INT32(number));
}

bool TransactionModeOf(std::string_view mode) {
    if (mode == "transaction") return true;
    if (mode == "lease") return false;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid mode \"%.*s\"", static_cast<int>(mode.size()), mode.data()),
                    errhint("The modes are \"transaction\" and \"lease\".")));
}

bool AllowsUnavailable(std::string_view word) {
    if (word == "allow") return true;
    if (word == "reject") return false;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid on_unavailable \"%.*s\"", static_cast<int>(word.size()), word.data()),
                    errhint("It is \"reject\" or \"allow\".")));
}

}  // namespace idem
