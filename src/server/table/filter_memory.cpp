#include "server/table/filter_memory.hpp"

#include <new>

#include "core/extents.hpp"
#include "core/ring.hpp"
#include "core/shared_filter.hpp"
#include "server/base/settings.hpp"

namespace idem {
namespace {

static_assert(kMostSlots <= kMostColumns, "a slot is a column");

constexpr int kMostFilters = 1024;

// So that a large filter does not keep its builder from being interrupted.
constexpr uint64_t kRowsClearedAtOnce = 16 * 1024 * 1024;

// A filter and, under the lock, what it is about. Free if its owner is nobody.
struct alignas(PG_CACHE_LINE_SIZE) Descriptor {
    SharedFilter filter;
    int slots;
    Oid partitions[kMostSlots];
    uint64_t taken_back[kMostSlots];  // counts how often each column was, whoever had the descriptor
    uint64_t editions[kMostSlots];    // of the partitions, as they were last seen
    bool touched[kMostSlots];         // since the column was last started
};

// The start of the shared memory; the arena of the filters' bits follows.
struct FilterMemory {
    int used;  // only so many descriptors were ever in use
    Descriptor descriptors[kMostFilters];
};

// Where this process sees them; nullptr = there is none.
FilterMemory *memory = nullptr;
LWLock *lock = nullptr;

Size ArenaSize() { return static_cast<Size>(filter_memory_kb) * 1024; }

uint8_t *Arena() { return reinterpret_cast<uint8_t *>(memory + 1); }

// Calls use(), which must not raise errors, with the lock held; not if there is no memory.
template <class F>
void WithLock(LWLockMode mode, F use) {
    if (memory == nullptr) return;
    LWLockAcquire(lock, mode);
    use();
    LWLockRelease(lock);
}

FilterOwner OwnerOf(Oid dedup) { return {MyDatabaseId, dedup}; }

int IndexOf(FilterOwner owner) {
    for (int i = 0; i < memory->used; i++)
        if (memory->descriptors[i].filter.Owner() == owner) return i;
    return -1;
}

Descriptor *DescriptorOf(FilterOwner owner) {
    int i = IndexOf(owner);
    return i < 0 ? nullptr : &memory->descriptors[i];
}

// nullptr if all are in use.
Descriptor *FreeDescriptor() {
    int i = IndexOf({});
    if (i < 0 && memory->used < kMostFilters) i = memory->used++;
    return i < 0 ? nullptr : &memory->descriptors[i];
}

// Takes a column back, and so spoils what is being built of it.
void TakeBack(Descriptor *descriptor, int slot) {
    descriptor->taken_back[slot]++;
    descriptor->filter.Unpublish(slot);
}

// Whether nobody has taken the column back, or the filter away, since it was started.
bool IsStillBuilt(const BuiltColumn &column) {
    const Descriptor &descriptor = memory->descriptors[column.filter];
    return descriptor.filter.Owner() == OwnerOf(column.dedup) &&
           descriptor.taken_back[column.slot] == column.taken_back;
}

bool IsOf(const Descriptor &descriptor, const Oid *partitions, int slots) {
    if (descriptor.slots != slots) return false;
    for (int slot = 0; slot < slots; slot++)
        if (descriptor.partitions[slot] != partitions[slot]) return false;
    return true;
}

Size ExtentSize(FilterShape shape) { return CACHELINEALIGN(FilterBytes(shape)); }

// The best place for such a filter, with no regard to what `but` occupies; no positions if there is none of use.
FilterPlace FindPlace(uint64_t keys_per_slot, int slots, const Descriptor *but) {
    Extent in_use[kMostFilters];
    size_t count = 0;
    for (int i = 0; i < memory->used; i++) {
        const Descriptor &descriptor = memory->descriptors[i];
        FilterPlace place = descriptor.filter.Place();
        if (&descriptor != but && place.shape.positions > 0) in_use[count++] = {place.offset, ExtentSize(place.shape)};
    }
    FilterShape wanted = FitFilter(keys_per_slot, slots, ArenaSize());
    Extent gap = FindGap({in_use, count}, ArenaSize(), ExtentSize(wanted));
    return {gap.offset, FitFilter(keys_per_slot, slots, gap.size)};
}

// Gives a table a filter in this place, with nothing published.
void Make(Descriptor *descriptor, Oid dedup, const Oid *partitions, int slots, FilterPlace place) {
    descriptor->filter.Assign(OwnerOf(dedup), place);
    descriptor->slots = slots;
    for (int slot = 0; slot < slots; slot++) {
        descriptor->partitions[slot] = partitions[slot];
        descriptor->taken_back[slot]++;
        descriptor->touched[slot] = false;
    }
}

// In memory of the caller's, to be freed by pfree.
struct Owners {
    FilterOwner *owners;
    int count;
};

Owners OwnersInUse() {
    Owners all = {static_cast<FilterOwner *>(palloc(kMostFilters * sizeof(FilterOwner))), 0};
    WithLock(LW_SHARED, [&] {
        for (int i = 0; i < memory->used; i++) {
            FilterOwner owner = memory->descriptors[i].filter.Owner();
            if (owner != FilterOwner{}) all.owners[all.count++] = owner;
        }
    });
    return all;
}

void Drop(FilterOwner owner) {
    WithLock(LW_EXCLUSIVE, [&] {
        Descriptor *descriptor = DescriptorOf(owner);
        if (descriptor != nullptr) descriptor->filter.Assign({}, {});
    });
}

// Who has a filter now was there before gone() looks; so whoever it doesn't find is gone for good.
template <class F>
void DropWhere(F gone) {
    Owners all = OwnersInUse();
    for (int i = 0; i < all.count; i++)
        if (gone(all.owners[i])) Drop(all.owners[i]);
    pfree(all.owners);
}

}  // namespace

const SharedPart kFilterMemory = {
    "idem filters", [] { return filter_memory_kb == 0 ? 0 : add_size(sizeof(FilterMemory), ArenaSize()); },
    [](void *place, LWLock *its_lock) {
        memory = static_cast<FilterMemory *>(place);
        lock = its_lock;
    }};

int FindFilter(Oid dedup, const Oid *partitions, int slots) {
    int filter = -1;
    WithLock(LW_SHARED, [&] {
        filter = IndexOf(OwnerOf(dedup));
        if (filter >= 0 && !IsOf(memory->descriptors[filter], partitions, slots)) filter = -1;
    });
    return filter;
}

uint64_t SlotsThatMayHold(int filter, Oid dedup, int64_t oldest, const Key &key) {
    if (memory == nullptr || filter < 0) return kAllColumns;
    return memory->descriptors[filter].filter.ColumnsThatMayHold(Arena(), OwnerOf(dedup), oldest, key);
}

bool PrepareFilter(Oid dedup, const Oid *partitions, int slots, int64_t keys_per_generation) {
    bool prepared = false;
    WithLock(LW_EXCLUSIVE, [&] {
        Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        if (descriptor != nullptr && !IsOf(*descriptor, partitions, slots)) {
            descriptor->filter.Assign({}, {});
            descriptor = nullptr;
        }
        FilterPlace place = FindPlace(Max(keys_per_generation, 0), slots, descriptor);
        uint64_t positions = descriptor == nullptr ? 0 : descriptor->filter.Place().shape.positions;
        // Half as large again at least, or all columns would be built anew for little.
        if (place.shape.positions > positions + positions / 2) {
            if (descriptor == nullptr) descriptor = FreeDescriptor();
            if (descriptor != nullptr) Make(descriptor, dedup, partitions, slots, place);
        }
        prepared = descriptor != nullptr;
    });
    return prepared;
}

bool StartColumn(Oid dedup, int slot, int64_t generation, FilterBuild *build) {
    bool started = false;
    FilterPlace place = {};
    WithLock(LW_EXCLUSIVE, [&] {
        int filter = IndexOf(OwnerOf(dedup));
        if (filter < 0 || slot >= memory->descriptors[filter].slots) return;
        Descriptor &descriptor = memory->descriptors[filter];
        TakeBack(&descriptor, slot);
        descriptor.touched[slot] = false;
        place = descriptor.filter.Place();
        ColumnFiller filler(Arena() + place.offset, place.shape, slot);
        *build = {{filter, dedup, slot, generation, descriptor.taken_back[slot]}, filler};
        started = true;
    });

    uint64_t rows = started ? place.shape.positions : 0;
    for (uint64_t row = 0; row < rows; row += kRowsClearedAtOnce) {
        CHECK_FOR_INTERRUPTS();
        FilterShape part = {Min(kRowsClearedAtOnce, rows - row), place.shape.columns};
        ClearColumn(Arena() + place.offset + row * RowBytes(part), part, slot);
    }
    return started;
}

void AddToColumn(FilterBuild *build, const Key &key) { build->filler.Add(key); }

void VouchFor(const FilterBuild &build, uint64_t edition) {
    WithLock(LW_EXCLUSIVE, [&] {
        if (IsStillBuilt(build.column)) memory->descriptors[build.column.filter].editions[build.column.slot] = edition;
    });
}

BuiltColumn FinishColumn(FilterBuild *build) {
    build->filler.Finish();
    return build->column;
}

bool PublishColumn(const BuiltColumn &column) {
    bool published = false;
    WithLock(LW_EXCLUSIVE, [&] {
        published = IsStillBuilt(column);
        if (published) memory->descriptors[column.filter].filter.Publish(column.slot, column.generation);
    });
    return published;
}

void UnpublishColumn(Oid dedup, int slot) {
    WithLock(LW_EXCLUSIVE, [&] {
        Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        if (descriptor != nullptr) TakeBack(descriptor, slot);
    });
}

bool IsPublished(Oid dedup, int slot, int64_t generation) {
    bool published = false;
    WithLock(LW_SHARED, [&] {
        const Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        published = descriptor != nullptr && descriptor->filter.IsPublished(slot, generation);
    });
    return published;
}

void TellEdition(int filter, Oid dedup, int slot, uint64_t edition) {
    WithLock(LW_EXCLUSIVE, [&] {
        if (filter < 0 || memory->descriptors[filter].filter.Owner() != OwnerOf(dedup)) return;
        Descriptor &descriptor = memory->descriptors[filter];
        if (descriptor.editions[slot] == edition) return;
        descriptor.editions[slot] = edition;
        TakeBack(&descriptor, slot);
    });
}

std::optional<FilterColumn> PublishedColumn(Oid dedup, int slot, int64_t generation) {
    std::optional<FilterColumn> column;
    WithLock(LW_SHARED, [&] {
        const Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        if (descriptor == nullptr || !descriptor->filter.IsPublished(slot, generation)) return;
        FilterPlace place = descriptor->filter.Place();
        column = {Arena() + place.offset, place.shape, slot};
    });
    return column;
}

bool HasFilterMemory() { return memory != nullptr; }

void TouchFilter(Oid partition) {
    WithLock(LW_EXCLUSIVE, [&] {
        for (int i = 0; i < memory->used; i++) {
            Descriptor &descriptor = memory->descriptors[i];
            if (descriptor.filter.Owner().database != MyDatabaseId) continue;
            for (int slot = 0; slot < descriptor.slots; slot++)
                if (descriptor.partitions[slot] == partition) {
                    TakeBack(&descriptor, slot);
                    descriptor.touched[slot] = true;
                }
        }
    });
}

bool IsTouched(Oid dedup, int slot) {
    if (memory == nullptr) return false;
    bool touched = false;
    WithLock(LW_SHARED, [&] {
        const Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        touched = descriptor != nullptr && descriptor->touched[slot];
    });
    return touched;
}

void DropFilter(Oid dedup) { Drop(OwnerOf(dedup)); }

void DropFiltersOfTables(bool (*exists)(Oid dedup)) {
    DropWhere([&](FilterOwner owner) { return owner.database == MyDatabaseId && !exists(owner.table); });
}

void DropFiltersOfDatabases(bool (*exists)(Oid database)) {
    DropWhere([&](FilterOwner owner) { return !exists(owner.database); });
}

bool DescribeFilter(Oid dedup, size_t *bytes, uint64_t *published) {
    bool found = false;
    WithLock(LW_SHARED, [&] {
        const Descriptor *descriptor = DescriptorOf(OwnerOf(dedup));
        found = descriptor != nullptr;
        if (!found) return;
        *bytes = FilterBytes(descriptor->filter.Place().shape);
        *published = descriptor->filter.Published();
    });
    return found;
}

}  // namespace idem
