#include "server/ring/clock_watch.hpp"

#include <cstdlib>
#include <ctime>

#include "server/base/extension.hpp"
#include "server/base/own_table.hpp"
#include "server/base/settings.hpp"

namespace idem {
namespace {

// Columns of idem_clock, as sql/tables.sql makes them.
enum ClockColumn { kOnly = 1, kSeenAt, kSteady, kRun, kCalm, kDoubtedSince };

// Of the pass that this process is at.
ClockReading at_begin;
bool believed = true;
Whose asked_by = Whose::ByHand;

// An idle pass writes nothing; the steady clock tells just as well how long it was since.
constexpr Micros kBetweenNotes = 3600 * kSecond;

// Within which the steady clock's readings may be compared: from the machine's start on, or else from the server's.
int64_t ThisRun() {
    static int64_t run = 0;
    if (run != 0) return run;
    char boot[64] = {};
    FILE *file = AllocateFile("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file == nullptr ? 0 : fread(boot, 1, sizeof(boot), file);
    if (file != nullptr) FreeFile(file);
    run = length == 0 ? PgStartTime
                      : static_cast<int64_t>(
                            hash_bytes_extended(reinterpret_cast<unsigned char *>(boot), static_cast<int>(length), 0));
    return run;
}

ClockReading ReadClock() {
#ifdef CLOCK_BOOTTIME
    constexpr clockid_t kSteadyClock = CLOCK_BOOTTIME;  // goes on while the machine sleeps
#else
    constexpr clockid_t kSteadyClock = CLOCK_MONOTONIC;
#endif
    timespec time = {};
    if (clock_gettime(kSteadyClock, &time) != 0) elog(ERROR, "could not read the steady clock: %m");
    return {GetCurrentTimestamp(), time.tv_sec * kSecond + time.tv_nsec / 1000, ThisRun()};
}

std::optional<ClockMemory> Remembered(Oid table) {
    std::optional<ClockMemory> memory;
    OwnKey all = {};
    ReadOwnRows(table, all, [&](HeapTuple tuple, TupleDesc desc) {
        ClockMemory read = {};
        read.last = {DatumGetTimestampTz(ColumnOf(tuple, kSeenAt, desc)), DatumGetInt64(ColumnOf(tuple, kSteady, desc)),
                     DatumGetInt64(ColumnOf(tuple, kRun, desc))};
        read.calm = DatumGetInt64(ColumnOf(tuple, kCalm, desc));
        if (!heap_attisnull(tuple, kDoubtedSince, desc))
            read.doubted_since = DatumGetTimestampTz(ColumnOf(tuple, kDoubtedSince, desc));
        memory = read;
    });
    return memory;
}

void Remember(Oid table, const ClockMemory &memory) {
    OwnRow row = {};
    row.Set(kOnly, BoolGetDatum(true));
    row.Set(kSeenAt, TimestampTzGetDatum(memory.last.wall));
    row.Set(kSteady, Int64GetDatum(memory.last.steady));
    row.Set(kRun, Int64GetDatum(memory.last.run));
    row.Set(kCalm, Int64GetDatum(memory.calm));
    row.SetOrNull(kDoubtedSince, memory.doubted_since.has_value(),
                  TimestampTzGetDatum(memory.doubted_since.value_or(0)));
    OwnKey all = {};
    if (UpdateOwnRow(table, all, row) == 0) InsertOwnRow(table, row);
}

void Report(const ClockLook &look) {
    auto seconds = static_cast<long long>(std::llabs(look.off) / kSecond);
    const char *where = look.off > 0 ? "ahead of" : "behind";
    constexpr const char *kHint = "If the clock is right, CALL idem_purge() by hand does not wait.";
    switch (look.news) {
        case ClockNews::None:
            break;
        case ClockNews::Jumped:
            ereport(WARNING, (errmsg("clock has jumped: it is %lld seconds %s what has passed", seconds, where),
                              errdetail("Nothing is purged by itself until it has held steady for %d seconds "
                                        "(idem.clock_patience).",
                                        clock_patience_s),
                              errhint(kHint)));
            break;
        case ClockNews::Gap:
            ereport(LOG,
                    (errmsg("clock is %lld seconds %s the last pass over dedup tables before the machine was started",
                            seconds, where),
                     errdetail(
                         "The machine was off, or the clock has jumped. Nothing is purged by itself until it has held "
                         "steady for %d seconds (idem.clock_patience).",
                         clock_patience_s),
                     errhint(kHint)));
            break;
        case ClockNews::Settled:
            ereport(LOG, (errmsg("clock has held steady for %d seconds: purging of dedup tables goes on",
                                 clock_patience_s)));
            break;
    }
}

// Keeps the extension from being dropped until the transaction ends; false if it is, or somebody is at it.
bool HoldExtension() {
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, InstalledExtension().oid, 0);
    if (LockAcquire(&tag, AccessShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL) return false;
    AcceptInvalidationMessages();
    return OidIsValid(get_extension_oid("idem", true));
}

}  // namespace

void BeginPassByClock(Whose whose) {
    Micros patience = clock_patience_s * kSecond;
    at_begin = ReadClock();
    asked_by = whose;
    believed = false;
    if (!HoldExtension()) return;
    Oid table = InstalledExtension().clock;
    // Whoever has it locked looks at the clock himself; then there is nothing to note.
    bool notes = ConditionalLockRelationOid(table, ShareUpdateExclusiveLock);
    std::optional<ClockMemory> before = Remembered(table);
    ClockLook look = LookAtClock(before, at_begin, patience);
    believed = !look.memory.doubted_since;
    bool changed = !before || look.news != ClockNews::None || before->doubted_since != look.memory.doubted_since ||
                   before->last.run != at_begin.run || at_begin.steady - before->last.steady >= kBetweenNotes;
    if (notes && changed) Remember(table, look.memory);
    (void)set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
    SPI_commit();
    if (notes) Report(look);
}

std::optional<Micros> PurgeTime() {
    if (asked_by == Whose::ByHand) return GetCurrentTimestamp();
    ClockReading now = ReadClock();
    bool fits = ClockFits(now.wall - at_begin.wall, now.steady - at_begin.steady);
    return believed && (fits || clock_patience_s == 0) ? std::optional(now.wall) : std::nullopt;
}

}  // namespace idem
