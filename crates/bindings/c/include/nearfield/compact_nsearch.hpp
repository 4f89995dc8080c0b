/* The calls that solvers make to CompactNSearch and cuNSearch, served by Nearfield: a solver
 * switches by
 *
 *     #include <nearfield/compact_nsearch.hpp>
 *     typedef nearfield::compact_nsearch::NeighborhoodSearch NeighborhoodSearch;
 *
 * Their conventions are kept where they differ from Nearfield's: points are neighbours when they
 * are strictly closer than the radius, positions are not copied when sets are added but read
 * whenever neighbours are searched, sets that are not dynamic are read again only after z_sort(),
 * set_radius() or set_active(), and lists of inactive pairs are empty. A copy of a PointSet owns
 * the lists that were found for it. The order inside a list is unspecified there and here.
 * Coordinates are double where USE_DOUBLE is defined, as there, else float. Failures are thrown as
 * nearfield::error.
 *
 * Threads may ask for the neighbours of single points and positions at the same time, for instance
 * in a loop of OpenMP, and read the lists that were found. No other call may run beside them.
 *
 * The device is "auto" unless NEARFIELD_COMPACT_NSEARCH_DEVICE is defined as the name of another.
 */

#ifndef NEARFIELD_COMPACT_NSEARCH_HPP
#define NEARFIELD_COMPACT_NSEARCH_HPP

#include "../nearfield.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#ifndef NEARFIELD_COMPACT_NSEARCH_DEVICE
#define NEARFIELD_COMPACT_NSEARCH_DEVICE "auto"
#endif

namespace nearfield {
namespace compact_nsearch {

#ifdef USE_DOUBLE
using Real = double;
#else
using Real = float;
#endif

/* The neighbours of one point: a vector that another object owns, or, as in cuNSearch, a
 * pointer. */
class NeighborList {
public:
    NeighborList(const unsigned int *first, std::size_t size) noexcept
        : first_(first), size_(size) {}

    const unsigned int *data() const noexcept { return first_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    const unsigned int *begin() const noexcept { return first_; }
    const unsigned int *end() const noexcept { return first_ + size_; }
    unsigned int operator[](std::size_t k) const noexcept { return first_[k]; }
    operator const unsigned int *() const noexcept { return first_; }
    /* A copy, where a vector is wanted. */
    operator std::vector<unsigned int>() const {
        return std::vector<unsigned int>(begin(), end());
    }

private:
    const unsigned int *first_;
    std::size_t size_;
};

namespace detail {

/* Lists of a pair of sets: a view of the engine's, or, of a copy, memory of its own, because the
 * next search writes over the engine's. */
class SetLists {
public:
    SetLists() = default;
    explicit SetLists(const nf_lists &view) noexcept : raw_(view) {}
    SetLists(SetLists &&other) noexcept
        : raw_(std::exchange(other.raw_, nf_lists())), own_(std::move(other.own_)) {}
    SetLists &operator=(SetLists &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(own_, other.own_);
        return *this;
    }

    SetLists(const SetLists &other) : raw_(other.raw_), own_(other.own_) {
        if (own_ || raw_.points == 0) {
            return;
        }
        const auto own = std::make_shared<Own>();
        own->indices.reserve(static_cast<std::size_t>(raw_.pairs));
        own->start.reserve(raw_.points);
        own->count.assign(raw_.count, raw_.count + raw_.points);
        for (std::size_t i = 0; i < raw_.points; ++i) {
            own->start.push_back(own->indices.size());
            const std::uint32_t *first = raw_.indices + raw_.start[i];
            own->indices.insert(own->indices.end(), first, first + raw_.count[i]);
        }
        raw_.start = own->start.data();
        raw_.count = own->count.data();
        raw_.indices = own->indices.data();
        own_ = own;
    }

    SetLists &operator=(const SetLists &other) {
        if (this != &other) {
            *this = SetLists(other);
        }
        return *this;
    }

    const nf_lists &raw() const noexcept { return raw_; }

private:
    struct Own {
        std::vector<std::uint64_t> start;
        std::vector<std::uint32_t> count;
        std::vector<std::uint32_t> indices;
    };

    nf_lists raw_ = {};
    /* Not changed once it is there, so copies of copies share it. */
    std::shared_ptr<const Own> own_;
};

} // namespace detail

template <class Number> class BasicNeighborhoodSearch;

/* A set of points of the caller, and what was found for it. */
template <class Number> class BasicPointSet {
public:
    /* Number of neighbours of point i in another set; 0 where it is not searched. */
    std::size_t n_neighbors(unsigned int point_set, unsigned int i) const noexcept {
        if (point_set >= lists_.size()) {
            return 0;
        }
        const nf_lists &lists = lists_[point_set].raw();
        return i < lists.points ? lists.count[i] : 0;
    }

    /* Index of the kth neighbour of point i in another set; k must be below n_neighbors(). */
    unsigned int neighbor(unsigned int point_set, unsigned int i, unsigned int k) const noexcept {
        const nf_lists &lists = lists_[point_set].raw();
        return lists.indices[lists.start[i] + k];
    }

    /* All neighbours of point i in another set. */
    NeighborList neighbor_list(unsigned int point_set, unsigned int i) const noexcept {
        if (point_set >= lists_.size() || i >= lists_[point_set].raw().points) {
            return {nullptr, 0};
        }
        const nf_lists &lists = lists_[point_set].raw();
        return {lists.indices + lists.start[i], lists.count[i]};
    }

    std::size_t n_points() const noexcept { return n_; }
    /* The array of the caller's that the points are read from. */
    const Number *GetPoints() const noexcept { return x_; }
    bool is_dynamic() const noexcept { return dynamic_; }
    void set_dynamic(bool dynamic) noexcept { dynamic_ = dynamic; }
    void *get_user_data() const noexcept { return user_data_; }

    /* Brings an array of this set into the order that z_sort() found; left as it is before the
     * first z_sort(). Throws when the set was resized since. */
    template <class T> void sort_field(T *values) const {
        if (is_sorted_ && order_.size() != n_) {
            throw error(NF_STATUS_OUT_OF_DATE,
                        "the set has " + std::to_string(n_) + " points, the order is that of " +
                            std::to_string(order_.size()) + ": call z_sort() again");
        }
        const std::vector<T> old(values, values + order_.size());
        std::transform(order_.begin(), order_.end(), values,
                       [&old](std::uint32_t from) { return old[from]; });
    }

private:
    friend class BasicNeighborhoodSearch<Number>;

    BasicPointSet(const Number *x, std::size_t n, bool dynamic, void *user_data)
        : x_(x), n_(n), dynamic_(dynamic), user_data_(user_data) {}

    const Number *x_;
    std::size_t n_;
    bool dynamic_;
    void *user_data_;
    /* Not read since it was added, resized or sorted. */
    bool changed_ = true;
    /* By the number of the other set; empty ones for those that are not searched. */
    std::vector<detail::SetLists> lists_;
    std::vector<std::uint32_t> order_;
    /* Whether there is an order. */
    bool is_sorted_ = false;
};

/* Neighbours within a radius, for any number of point sets. */
template <class Number> class BasicNeighborhoodSearch {
public:
    using PointSet = BasicPointSet<Number>;

    /* The second argument, whether empty cells are erased, has no meaning here. */
    explicit BasicNeighborhoodSearch(Number radius, bool = false)
        : radius_(radius),
          engine_(options(radius)
                      .strictly_within()
                      .precision(sizeof(Number) == sizeof(double) ? NF_PRECISION_F64
                                                                  : NF_PRECISION_F32)
                      .device(NEARFIELD_COMPACT_NSEARCH_DEVICE)) {}

    const PointSet &point_set(unsigned int i) const { return sets_[known(i)]; }
    PointSet &point_set(unsigned int i) { return sets_[known(i)]; }
    std::size_t n_point_sets() const { return sets_.size(); }
    const std::vector<PointSet> &point_sets() const { return sets_; }
    std::vector<PointSet> &point_sets() { return sets_; }

    /* Adds a set of n points of three numbers, which are read at the next search: whether they
     * move, whether they search in all sets, and whether all sets search in them. */
    unsigned int add_point_set(const Number *x, std::size_t n, bool is_dynamic = true,
                               bool search_neighbors = true, bool find_neighbors = true,
                               void *user_data = nullptr) {
        sets_.push_back(PointSet(x, n, is_dynamic, user_data));
        unsigned int number = 0;
        try {
            number = engine_.add_points(positions<Number>(nullptr, 0));
        } catch (...) {
            sets_.pop_back();
            throw;
        }
        for (PointSet &set : sets_) {
            set.lists_.resize(sets_.size());
        }
        for (unsigned int other = 0; other < number; ++other) {
            engine_.set_active(other, number, find_neighbors);
        }
        for (unsigned int other = 0; other <= number; ++other) {
            engine_.set_active(number, other, search_neighbors);
        }
        return number;
    }

    /* Gives a set another array and number of points. */
    void resize_point_set(unsigned int i, const Number *x, std::size_t n) {
        PointSet &set = sets_[known(i)];
        set.x_ = x;
        set.n_ = n;
        set.changed_ = true;
    }

    /* Finds the neighbours of all points of all active pairs of sets. */
    void find_neighbors(bool points_changed = true) {
        if (points_changed) {
            update_point_sets();
        }
        /* The old ones are written over, also by a search that fails. */
        for (PointSet &set : sets_) {
            std::fill(set.lists_.begin(), set.lists_.end(), detail::SetLists());
        }
        engine_.find_neighbors();
        for (unsigned int targets = 0; targets < sets_.size(); ++targets) {
            for (unsigned int sources = 0; sources < sets_.size(); ++sources) {
                if (is_active(targets, sources)) {
                    sets_[targets].lists_[sources] =
                        detail::SetLists(engine_.neighbors(targets, sources).raw());
                }
            }
        }
    }

    /* Finds the neighbours of one point in all sets that its set searches, set by set. Call
     * update_point_sets() first when points moved. */
    void find_neighbors(unsigned int point_set, unsigned int point,
                        std::vector<std::vector<unsigned int>> &neighbors) const {
        const PointSet &set = sets_[known(point_set)];
        if (point >= set.n_) {
            throw error(NF_STATUS_UNKNOWN_POINT, "point set " + std::to_string(point_set) +
                                                     " has no point " + std::to_string(point) +
                                                     ": it has " + std::to_string(set.n_));
        }
        neighbors.assign(sets_.size(), {});
        const Number *at = set.x_ + 3 * std::size_t(point);
        for (unsigned int sources = 0; sources < sets_.size(); ++sources) {
            if (!is_active(point_set, sources)) {
                continue;
            }
            std::vector<unsigned int> &found = neighbors[sources];
            at_position(at, sources, found);
            if (sources == point_set) {
                found.erase(std::remove(found.begin(), found.end(), point), found.end());
            }
        }
    }

    /* Finds the neighbours of a position in all sets, set by set. */
    void find_neighbors(const Number *x, std::vector<std::vector<unsigned int>> &neighbors) const {
        neighbors.assign(sets_.size(), {});
        for (unsigned int sources = 0; sources < sets_.size(); ++sources) {
            at_position(x, sources, neighbors[sources]);
        }
    }

    /* Reads the points of all dynamic sets, and of others that have to be read. */
    void update_point_sets() {
        for (unsigned int i = 0; i < sets_.size(); ++i) {
            if (sets_[i].dynamic_ || sets_[i].changed_) {
                read(i);
            }
        }
    }

    /* Reads the points of one set, which may be one that is not dynamic. */
    void update_point_set(int i) { read(known(static_cast<unsigned int>(i))); }

    /* Nothing is left to do for it here: set_active() takes effect at once. */
    void update_activation_table() {}

    /* Finds an order that makes every set local in memory, for PointSet::sort_field(), which the
     * caller applies to positions and all other arrays. */
    void z_sort() {
        for (PointSet &set : sets_) {
            set.changed_ = true;
        }
        update_point_sets();
        for (unsigned int i = 0; i < sets_.size(); ++i) {
            sets_[i].order_ = engine_.z_sort(i);
            sets_[i].is_sorted_ = true;
        }
        reread();
    }

    Number radius() const { return radius_; }

    void set_radius(Number radius) {
        engine_.set_radius(radius);
        radius_ = radius;
        reread();
    }

    /* Whether set i searches in set j. */
    void set_active(unsigned int i, unsigned int j, bool active) {
        engine_.set_active(i, j, active);
        reread();
    }

    /* Whether set i searches in all sets, and whether all sets search in it; in itself it searches
     * when both are so. */
    void set_active(unsigned int i, bool search_neighbors = true, bool find_neighbors = true) {
        for (unsigned int other = 0; other < sets_.size(); ++other) {
            engine_.set_active(other, i, find_neighbors);
            engine_.set_active(i, other, search_neighbors);
        }
        engine_.set_active(i, i, search_neighbors && find_neighbors);
        reread();
    }

    /* All pairs of sets. */
    void set_active(bool active) {
        engine_.set_all_active(active);
        reread();
    }

    bool is_active(unsigned int i, unsigned int j) const { return engine_.is_active(i, j); }

    /* The engine behind it, for what it can do beyond these calls. */
    nearfield::engine &engine() { return engine_; }

private:
    void read(unsigned int i) {
        PointSet &set = sets_[i];
        engine_.update(i, positions<Number>(set.x_, set.n_));
        set.changed_ = false;
    }

    void reread() {
        for (PointSet &set : sets_) {
            set.changed_ = true;
        }
    }

    /* The number of a set, where there is such a set. */
    unsigned int known(unsigned int i) const {
        if (i >= sets_.size()) {
            throw error(NF_STATUS_UNKNOWN_POINT_SET,
                        "there is no point set " + std::to_string(i) + ": there are " +
                            std::to_string(sets_.size()));
        }
        return i;
    }

    void at_position(const Number *x, unsigned int sources, std::vector<unsigned int> &found) const {
        const query_result result = engine_.query(positions<Number>(x, 1), sources);
        found.assign(result[0].begin(), result[0].end());
    }

    Number radius_;
    nearfield::engine engine_;
    std::vector<PointSet> sets_;
};

using PointSet = BasicPointSet<Real>;
using NeighborhoodSearch = BasicNeighborhoodSearch<Real>;

} // namespace compact_nsearch
} // namespace nearfield

#endif
