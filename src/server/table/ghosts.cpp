#include "server/table/ghosts.hpp"

#include <new>

#include "core/extents.hpp"
#include "core/shared_filter.hpp"
#include "server/base/settings.hpp"
#include "server/table/filter_memory.hpp"

namespace idem {
namespace {

constexpr int kMostGhosts = 256;  // dedup tables that have any
constexpr int kGenerations = 8;   // of one dedup table: a byte for each position

// So that a large one does not keep its maker from being interrupted.
constexpr uint64_t kRowsCopiedAtOnce = 16 * 1024 * 1024;

struct alignas(PG_CACHE_LINE_SIZE) Ghost {
    SharedFilter filter;  // column n holds the generation that is n modulo kGenerations
    std::atomic<double> by_chance;
    double chances[kGenerations];
};

// The start of the shared memory; the arena of the bits follows.
struct GhostMemory {
    std::atomic<int> used;  // only so many were ever in use, so that who has none is soon told
    Ghost ghosts[kMostGhosts];
};

GhostMemory *memory = nullptr;
LWLock *lock = nullptr;

Size ArenaSize() { return static_cast<Size>(ghost_memory_kb) * 1024; }

uint8_t *Arena() { return reinterpret_cast<uint8_t *>(memory + 1); }

template <class F>
void WithLock(LWLockMode mode, F use) {
    LWLockAcquire(lock, mode);
    use();
    LWLockRelease(lock);
}

Ghost *GhostOf(FilterOwner owner) {
    int used = memory->used.load(std::memory_order_acquire);
    for (int i = 0; i < used; i++)
        if (memory->ghosts[i].filter.Owner() == owner) return &memory->ghosts[i];
    return nullptr;
}

// nullptr if all are in use. Under the lock.
Ghost *FreeGhost() {
    Ghost *ghost = GhostOf({});
    int used = memory->used.load(std::memory_order_relaxed);
    if (ghost != nullptr || used == kMostGhosts) return ghost;
    memory->used.store(used + 1, std::memory_order_release);
    return &memory->ghosts[used];
}

// A table without ghosts has none here. What a session finds stays true or becomes empty, as SharedFilter knows whose
// it is; so it looks again only where it found nothing.
const Ghost *RememberedGhost(FilterOwner owner) {
    static const Ghost *latest = nullptr;
    if (latest == nullptr || latest->filter.Owner() != owner) latest = GhostOf(owner);
    return latest;
}

// The ghost of this table with this shape, made where there is none and there is room.
Ghost *PrepareGhost(FilterOwner owner, FilterShape shape) {
    Ghost *ghost = GhostOf(owner);
    if (ghost != nullptr && ghost->filter.Place().shape.positions == shape.positions) return ghost;
    if (ghost != nullptr) ghost->filter.Assign({}, {});

    Extent in_use[kMostGhosts];
    size_t count = 0;
    for (const Ghost &other : memory->ghosts) {
        FilterPlace place = other.filter.Place();
        if (place.shape.positions > 0) in_use[count++] = {place.offset, CACHELINEALIGN(FilterBytes(place.shape))};
    }
    Extent gap = FindGap({in_use, count}, ArenaSize(), CACHELINEALIGN(FilterBytes(shape)));
    ghost = gap.size < FilterBytes(shape) ? nullptr : FreeGhost();
    if (ghost == nullptr) return nullptr;
    ghost->filter.Assign(owner, {gap.offset, shape});
    memset(ghost->chances, 0, sizeof(ghost->chances));
    ghost->by_chance.store(0, std::memory_order_relaxed);
    return ghost;
}

// One minus the chance that none of the columns errs.
void SumUpChances(Ghost *ghost) {
    double none = 1;
    for (int column = 0; column < kGenerations; column++)
        if ((ghost->filter.Published() >> column & 1) != 0) none *= 1 - ghost->chances[column];
    ghost->by_chance.store(1 - none, std::memory_order_relaxed);
}

FilterColumn RowsOf(const FilterColumn &column, uint64_t first, uint64_t count) {
    FilterShape part = {count, column.shape.columns};
    return {column.bits + first * RowBytes(part), part, column.column};
}

}  // namespace

const SharedPart kGhostMemory = {"idem ghosts",
                                 [] { return ghost_memory_kb == 0 ? 0 : add_size(sizeof(GhostMemory), ArenaSize()); },
                                 [](void *place, LWLock *its_lock) {
                                     memory = static_cast<GhostMemory *>(place);
                                     lock = its_lock;
                                 }};

void KeepGhost(Oid dedup, int slot, int64_t generation) {
    if (memory == nullptr) return;
    std::optional<FilterColumn> from = PublishedColumn(dedup, slot, generation);
    if (!from) return;
    int column = static_cast<int>((generation % kGenerations + kGenerations) % kGenerations);
    FilterColumn to = {nullptr, {from->shape.positions, kGenerations}, column};
    WithLock(LW_EXCLUSIVE, [&] {
        Ghost *ghost = PrepareGhost({MyDatabaseId, dedup}, to.shape);
        if (ghost == nullptr) return;
        ghost->filter.Unpublish(column);
        to.bits = Arena() + ghost->filter.Place().offset;
    });
    if (to.bits == nullptr) return;

    uint64_t set = 0;
    for (uint64_t row = 0; row < to.shape.positions; row += kRowsCopiedAtOnce) {
        CHECK_FOR_INTERRUPTS();
        uint64_t rows = Min(kRowsCopiedAtOnce, to.shape.positions - row);
        set += CopyColumn(RowsOf(*from, row, rows), RowsOf(to, row, rows));
    }

    WithLock(LW_EXCLUSIVE, [&] {
        Ghost *ghost = GhostOf({MyDatabaseId, dedup});
        if (ghost == nullptr || Arena() + ghost->filter.Place().offset != to.bits) return;
        ghost->filter.Publish(column, generation);
        ghost->chances[column] = ChanceOfFalsePositive(to.shape.positions, set);
        SumUpChances(ghost);
    });
}

GhostAnswer AskGhosts(Oid dedup, const Key &key) {
    if (memory == nullptr) return {false, 0};
    FilterOwner owner = {MyDatabaseId, dedup};
    const Ghost *ghost = RememberedGhost(owner);
    if (ghost == nullptr) return {false, 0};
    bool knows = ghost->filter.ColumnsThatSeemToHold(Arena(), owner, key) != 0;
    return {knows, ghost->by_chance.load(std::memory_order_relaxed)};
}

void DropGhosts(bool (*table_exists)(Oid dedup), bool (*database_exists)(Oid database)) {
    if (memory == nullptr) return;
    for (Ghost &ghost : memory->ghosts) {
        FilterOwner owner = ghost.filter.Owner();
        if (owner == FilterOwner{}) continue;
        bool there = owner.database == MyDatabaseId ? table_exists(owner.table) : database_exists(owner.database);
        if (there) continue;
        WithLock(LW_EXCLUSIVE, [&] {
            if (ghost.filter.Owner() == owner) ghost.filter.Assign({}, {});
        });
    }
}

}  // namespace idem
