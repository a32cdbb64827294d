#include "server/claim/stat_memory.hpp"

#include "core/advice.hpp"
#include "core/window.hpp"
#include "server/base/settings.hpp"

namespace idem {
namespace {

constexpr char kFile[] = PGSTAT_STAT_PERMANENT_DIRECTORY "/idem.stat";
constexpr char kNewFile[] = PGSTAT_STAT_PERMANENT_DIRECTORY "/idem.stat.new";

// Of the file: it is read only by what has written it.
struct Header {
    char magic[8];
    uint32 server_version;
    uint32 entry_size;
    uint32 entries;
};
constexpr Header kHeader = {{'i', 'd', 'e', 'm', 's', 't', '0', '1'}, PG_VERSION_NUM, sizeof(HandlerStat), 0};

// The start of the shared memory.
struct StatMemory {
    int64_t changes;  // so many additions and resets since the server started
    int64_t saved;    // `changes` when the file was last written
    int used;         // entries in use come first; entry 0 is the others'
    HandlerStat entries[FLEXIBLE_ARRAY_MEMBER];
};

StatMemory *memory = nullptr;
LWLock *lock = nullptr;

int Room() { return 1 + stat_handlers; }

Size MemorySize() {
    return stat_handlers == 0 ? 0 : add_size(offsetof(StatMemory, entries), mul_size(Room(), sizeof(HandlerStat)));
}

template <class F>
void WithLock(LWLockMode mode, F use) {
    if (memory == nullptr) return;
    LWLockAcquire(lock, mode);
    use();
    LWLockRelease(lock);
}

bool IsOf(const HandlerStat &entry, const Tally &tally) {
    return entry.dedup == tally.dedup && entry.database == MyDatabaseId && entry.handler_bytes == tally.handler_bytes &&
           memcmp(entry.handler, tally.handler, tally.handler_bytes) == 0;
}

// The handler's entry, a new one if need be, or the others'.
HandlerStat *EntryOf(const Tally &tally) {
    for (int i = 1; i < memory->used; i++)
        if (IsOf(memory->entries[i], tally)) return &memory->entries[i];
    if (memory->used == Room()) return &memory->entries[0];
    HandlerStat *entry = &memory->entries[memory->used++];
    memset(entry, 0, sizeof(*entry));
    entry->database = MyDatabaseId;
    entry->dedup = tally.dedup;
    entry->reset_at = GetCurrentTimestamp();
    entry->handler_bytes = tally.handler_bytes;
    memcpy(entry->handler, tally.handler, tally.handler_bytes);
    return entry;
}

// The last entry takes the place of one that goes.
void Remove(int i) {
    memory->used--;
    if (i != memory->used) memcpy(&memory->entries[i], &memory->entries[memory->used], sizeof(HandlerStat));
    memory->changes++;
}

template <class F>
void RemoveWhere(F gone) {
    WithLock(LW_EXCLUSIVE, [&] {
        for (int i = memory->used - 1; i >= 1; i--)
            if (gone(memory->entries[i])) Remove(i);
    });
}

// The entry, compressed, behind its compressed size.
bool WriteEntry(FILE *file, const HandlerStat &entry, char *room) {
    const auto *bytes = reinterpret_cast<const char *>(&entry);
    int32 size = pglz_compress(bytes, sizeof(entry), room, PGLZ_strategy_always);
    if (size < 0) {
        size = sizeof(entry);
        memcpy(room, bytes, sizeof(entry));
    }
    return fwrite(&size, sizeof(size), 1, file) == 1 && fwrite(room, size, 1, file) == 1;
}

bool ReadEntry(FILE *file, HandlerStat *entry, char *room) {
    int32 size = 0;
    if (fread(&size, sizeof(size), 1, file) != 1 || size <= 0 ||
        size > static_cast<int32>(PGLZ_MAX_OUTPUT(sizeof(*entry))))
        return false;
    if (fread(room, size, 1, file) != 1) return false;
    auto *bytes = reinterpret_cast<char *>(entry);
    if (size == sizeof(*entry)) {
        memcpy(bytes, room, size);
        return true;
    }
    return pglz_decompress(room, size, bytes, sizeof(*entry), true) == sizeof(*entry);
}

// The copy is the caller's, so that nobody waits for the disk.
bool WriteFile(const StatMemory &copy) {
    FILE *file = AllocateFile(kNewFile, PG_BINARY_W);
    if (file == nullptr) return false;
    Header header = kHeader;
    header.entries = copy.used;
    auto *room = static_cast<char *>(palloc(PGLZ_MAX_OUTPUT(sizeof(HandlerStat))));
    bool written = fwrite(&header, sizeof(header), 1, file) == 1;
    for (int i = 0; written && i < copy.used; i++) written = WriteEntry(file, copy.entries[i], room);
    pfree(room);
    return FreeFile(file) == 0 && written && durable_rename(kNewFile, kFile, LOG) == 0;
}

void SaveAtShutdown(int code, Datum) {
    if (code == 0) SaveStats();
}

// By the postmaster, before anybody else is there. What can't be read counts for nothing.
void LoadStats() {
    FILE *file = AllocateFile(kFile, PG_BINARY_R);
    if (file == nullptr) return;
    Header header = {};
    auto *room = static_cast<char *>(palloc(PGLZ_MAX_OUTPUT(sizeof(HandlerStat))));
    bool known = fread(&header, sizeof(header), 1, file) == 1 &&
                 memcmp(header.magic, kHeader.magic, sizeof(header.magic)) == 0 &&
                 header.server_version / 10000 == kHeader.server_version / 10000 &&
                 header.entry_size == kHeader.entry_size;
    int room_for = Min(Room(), static_cast<int>(header.entries));
    bool read = known;
    for (int i = 0; read && i < room_for; i++) {
        read = ReadEntry(file, &memory->entries[i], room);
        if (read) memory->used = Max(memory->used, i + 1);
    }
    if (!read) {
        ereport(LOG, (errmsg("idem could not read its statistics in \"%s\"", kFile), errdetail("They begin anew.")));
        memset(memory->entries, 0, sizeof(HandlerStat));
        memory->used = 1;
    }
    pfree(room);
    FreeFile(file);
}

}  // namespace

const SharedPart kStatMemory = {"idem stat", MemorySize, [](void *place, LWLock *its_lock) {
                                    memory = static_cast<StatMemory *>(place);
                                    lock = its_lock;
                                    if (IsUnderPostmaster || memory->used > 0) return;
                                    memory->used = 1;
                                    on_shmem_exit(SaveAtShutdown, Datum{0});
                                    LoadStats();
                                }};

bool StatsAreKept() { return memory != nullptr && !RecoveryInProgress(); }

void AddTally(const Tally &tally) {
    WithLock(LW_EXCLUSIVE, [&] {
        Numbers *numbers = &EntryOf(tally)->numbers;
        memory->changes++;
        for (int i = 0; i < kCounterCount; i++) numbers->counts[i] += tally.counts[i];
        numbers->last_duplicate_at = Max(numbers->last_duplicate_at, tally.last_duplicate_at);
        numbers->last_conflict_at = Max(numbers->last_conflict_at, tally.last_conflict_at);
        numbers->late_by_chance += tally.late_by_chance;
        numbers->oldest_stale = Max(numbers->oldest_stale, tally.oldest_stale);
        for (int i = 0; i < tally.delivery_count; i++) {
            numbers->duplicates.Add(tally.deliveries[i].span);
            numbers->sample.See(tally.deliveries[i].key, tally.deliveries[i].span);
        }
        for (int i = 0; i < tally.work_count; i++) numbers->work.Add(tally.work[i]);
    });
}

void ReadStats(void (*use)(const HandlerStat &stat, void *argument), void *argument) {
    auto *copy = static_cast<HandlerStat *>(palloc(sizeof(HandlerStat)));
    // One at a time, so that nobody who counts waits for long; what is removed meanwhile may be passed over.
    for (int i = 0;; i++) {
        bool found = false;
        bool relevant = false;
        WithLock(LW_SHARED, [&] {
            found = i < memory->used;
            if (!found) return;
            const HandlerStat &entry = memory->entries[i];
            relevant = i == 0 || entry.database == MyDatabaseId;
            if (relevant) memcpy(copy, &entry, sizeof(*copy));
        });
        if (!found) break;
        bool anything = i > 0;
        for (int64_t count : copy->numbers.counts) anything = anything || count > 0;
        if (relevant && anything) use(*copy, argument);
    }
    pfree(copy);
}

void ResetStats(Oid dedup) {
    if (OidIsValid(dedup)) {
        RemoveWhere([&](const HandlerStat &entry) { return entry.database == MyDatabaseId && entry.dedup == dedup; });
        return;
    }
    WithLock(LW_EXCLUSIVE, [] {
        memset(&memory->entries[0], 0, sizeof(HandlerStat));
        memory->entries[0].reset_at = GetCurrentTimestamp();
        memory->changes++;
    });
}

void DropStats(bool (*table_exists)(Oid dedup), bool (*database_exists)(Oid database)) {
    if (memory == nullptr) return;
    // The questions read catalogs, which is not for under the lock.
    struct Owner {
        Oid database;
        Oid dedup;
    };
    auto *owners = static_cast<Owner *>(palloc(Room() * sizeof(Owner)));
    int count = 0;
    WithLock(LW_SHARED, [&] {
        for (int i = 1; i < memory->used; i++)
            owners[count++] = {memory->entries[i].database, memory->entries[i].dedup};
    });
    for (int i = 0; i < count; i++) {
        Owner owner = owners[i];
        bool there = owner.database == MyDatabaseId ? table_exists(owner.dedup) : database_exists(owner.database);
        if (there) continue;
        RemoveWhere(
            [&](const HandlerStat &entry) { return entry.database == owner.database && entry.dedup == owner.dedup; });
    }
    pfree(owners);
}

std::optional<LateEvents> LateEventsToTell(Oid dedup) {
    LateEvents all = {};
    double told = 0;
    double told_by_chance = 0;
    bool today = false;
    TimestampTz now = GetCurrentTimestamp();
    auto of_table = [&](auto use) {
        for (int i = 1; i < memory->used; i++)
            if (memory->entries[i].database == MyDatabaseId && memory->entries[i].dedup == dedup)
                use(memory->entries[i]);
    };
    bool tell = false;
    WithLock(LW_EXCLUSIVE, [&] {
        of_table([&](const HandlerStat &entry) {
            all.late += entry.numbers.Of(Counter::Late);
            all.acquired += entry.numbers.Of(Counter::Acquired);
            all.by_chance += entry.numbers.late_by_chance;
            told += static_cast<double>(entry.late_told);
            told_by_chance += entry.by_chance_told;
            today = today || now < entry.late_told_at + kDay;
        });
        tell = !today && MoreThanChance(static_cast<double>(all.late) - told, all.by_chance - told_by_chance);
        if (!tell) return;
        of_table([&](HandlerStat &entry) {
            entry.late_told_at = now;
            entry.late_told = entry.numbers.Of(Counter::Late);
            entry.by_chance_told = entry.numbers.late_by_chance;
        });
        memory->changes++;
    });
    return tell ? std::optional(all) : std::nullopt;
}

void SaveStats() {
    if (memory == nullptr) return;
    auto *copy = static_cast<StatMemory *>(MemoryContextAllocHuge(CurrentMemoryContext, MemorySize()));
    bool changed = false;
    WithLock(LW_SHARED, [&] {
        changed = memory->changes != memory->saved;
        if (changed) memcpy(copy, memory, offsetof(StatMemory, entries) + memory->used * sizeof(HandlerStat));
    });
    if (changed && WriteFile(*copy))
        WithLock(LW_EXCLUSIVE, [&] { memory->saved = copy->changes; });
    else if (changed)
        ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", kFile)));
    pfree(copy);
}

}  // namespace idem
