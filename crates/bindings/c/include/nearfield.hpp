/* Nearfield for C++17: handles that free themselves, spans, exceptions or statuses as you choose.
 *
 *     nearfield::engine engine(nearfield::options(0.1));
 *     auto fluid = engine.add_points(positions);     // std::vector<std::array<float, 3>>
 *     engine.find_neighbors();
 *     for (std::uint32_t j : engine.neighbors(fluid, fluid)[0]) { ... }
 *
 * `engine` throws nearfield::error; `status_engine` has the same members, which return a
 * nearfield::result instead and never throw. Everything else, threads above all, is as nearfield.h
 * says. Header-only; link the C library. */

#ifndef NEARFIELD_HPP
#define NEARFIELD_HPP

#include "nearfield.h"
#include "nearfield/basics.hpp"
#include "nearfield/lists.hpp"
#include "nearfield/pairs.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nearfield {

/* Coordinates where they are: `points` points of three T, `stride` bytes from one to the next. */
template <class T> struct positions {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "coordinates are float or double");

    positions(const T *first, std::size_t points, std::size_t stride = 3 * sizeof(T),
              std::size_t rest = 0) noexcept
        : first(first), points(points), stride(stride), rest(rest) {}

    /* Refuses numbers that are not whole points. */
    nf_status whole() const noexcept {
        std::size_t found = 0;
        return rest == 0 ? NF_STATUS_OK : nf_whole_points(3 * points + rest, &found);
    }

    const T *first;
    std::size_t points;
    std::size_t stride;
    /* Numbers behind the last whole point. */
    std::size_t rest;
};

/* One number for each of `points`, where they are: `stride` bytes from one to the next. */
struct field {
    field(const float *first, std::size_t points, std::size_t stride) noexcept
        : first(first), points(points), stride(stride) {}

    const float *first;
    std::size_t points;
    std::size_t stride;
};

namespace detail {

template <class T> constexpr bool is_number = std::is_same_v<T, float> || std::is_same_v<T, double>;

/* The numbers of a point of type V, and how many they are: those that lie inside of it, not those
 * that it points to. Nothing unless it is one of these. */
template <class V, class = void> struct point {
    using number = void;
    static constexpr bool is_known = false;
};

template <class T, std::size_t N> struct point<std::array<T, N>> {
    using number = T;
    static constexpr bool is_known = is_number<T> && N >= 3;
};

/* Vectors of Eigen whose size is fixed; neither maps, which point to their numbers, nor those that
 * have their size when the program runs. */
template <class V>
struct point<V, std::void_t<typename V::Scalar, typename V::PlainObject,
                            decltype(V::SizeAtCompileTime)>> {
    using number = typename V::Scalar;
    static constexpr bool is_known = is_number<number> &&
                                     std::is_same_v<typename V::PlainObject, V> &&
                                     int(V::SizeAtCompileTime) >= 3;
};

template <class V, class = void> struct has_data : std::false_type {};
template <class V>
struct has_data<V, std::void_t<decltype(std::declval<const V &>().data())>> : std::true_type {};
template <class V, class = void> struct has_begin : std::false_type {};
template <class V>
struct has_begin<V, std::void_t<decltype(std::declval<const V &>().begin())>> : std::true_type {};
template <class V, class = void> struct is_of_eigen : std::false_type {};
template <class V> struct is_of_eigen<V, std::void_t<typename V::PlainObject>> : std::true_type {};
template <class V> struct is_array : std::false_type {};
template <class T, std::size_t N> struct is_array<std::array<T, N>> : std::true_type {};

/* Plain vectors of other libraries, such as those of GLM: nothing but numbers. Containers and views
 * have data() or begin(). */
template <class V>
struct point<V, std::enable_if_t<is_number<typename V::value_type> && !is_of_eigen<V>::value &&
                                 !is_array<V>::value>> {
    using number = typename V::value_type;
    static constexpr bool is_known = std::is_trivially_copyable_v<V> &&
                                     std::is_standard_layout_v<V> && !has_data<V>::value &&
                                     !has_begin<V>::value && sizeof(V) >= 3 * sizeof(number) &&
                                     sizeof(V) % sizeof(number) == 0;
};

template <class C> using element_of = std::decay_t<decltype(*std::declval<const C &>().data())>;

/* The type of the coordinates; any, where there are none, for an assertion to say so. */
template <class E>
using number_of = std::conditional_t<
    is_number<E>, E,
    std::conditional_t<is_number<typename point<E>::number>, typename point<E>::number, float>>;

} // namespace detail

/* The coordinates of a container of points that hold three numbers or more themselves (std::array,
 * Eigen's vectors of fixed size, GLM): anything with data() and size(). Points of other types are
 * passed as nearfield::positions. */
template <class C>
positions<detail::number_of<detail::element_of<C>>> as_positions(const C &container) {
    using element = detail::element_of<C>;
    using number = detail::number_of<element>;
    if constexpr (detail::is_number<element>) {
        /* Bare numbers, three a point. whole() refuses a number that is not a multiple of 3. */
        return {container.data(), container.size() / 3, 3 * sizeof(number), container.size() % 3};
    } else {
        static_assert(detail::point<element>::is_known,
                      "nearfield: the elements of this container are not points: a point holds at "
                      "least three float or double itself, as std::array<float, 3> does, and does "
                      "not point to them; pass others as nearfield::positions");
        return {reinterpret_cast<const number *>(container.data()), container.size(),
                sizeof(element)};
    }
}

namespace detail {

/* Throws where the cut-offs are not one for each pair of types. */
inline void check_cutoffs(std::uint32_t types, const std::vector<double> &matrix) {
    if (matrix.size() != std::size_t(types) * types) {
        throw error(NF_STATUS_BAD_ARGUMENT, "cut-offs of " + std::to_string(types) +
                                                " types are as many numbers as their square");
    }
}

/* Makes the box of options an orthogonal one of these lengths, 0 where an axis is open; throws
 * where a length is negative or not finite. */
template <class Options> void set_periodic(Options &raw, double x, double y, double z) {
    const double lengths[3] = {x, y, z};
    for (int axis = 0; axis < 3; ++axis) {
        if (!std::isfinite(lengths[axis]) || lengths[axis] < 0) {
            throw error(NF_STATUS_SETUP, std::string("the length of the box along ") +
                                             "xyz"[axis] + " is " +
                                             std::to_string(lengths[axis]) +
                                             ": it must be positive, or 0 for an open axis");
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        raw.periodic[axis] = lengths[axis] != 0;
        for (double &component : raw.box_vectors[axis]) {
            component = 0;
        }
        raw.box_vectors[axis][axis] = lengths[axis];
    }
}

} // namespace detail

/* Settings of an engine; what they mean stands beside nf_options. */
class options {
public:
    explicit options(double radius) {
        throwing::done(nf_options_init(&raw_, sizeof raw_));
        raw_.radius = radius;
    }

    options &precision(nf_precision precision) { return raw_.precision = precision, *this; }
    options &lists(nf_list_kind kind) { return raw_.lists = kind, *this; }
    options &order(nf_list_order order) { return raw_.order = order, *this; }
    options &strictly_within(bool strict = true) { return raw_.strict = strict, *this; }
    options &radii(nf_radius_rule rule) { return raw_.radii = rule, *this; }
    options &nearest(std::uint32_t k) { return raw_.nearest = k, *this; }

    /* A cut-off for each pair of `types` types, row by row; throws where they are not that many. */
    options &cutoffs(std::uint32_t types, std::vector<double> matrix) {
        detail::check_cutoffs(types, matrix);
        raw_.types = types;
        return cutoffs_ = std::move(matrix), *this;
    }

    options &threads(std::uint32_t threads) { return raw_.threads = threads, *this; }
    options &subdivision(std::uint32_t cells) { return raw_.subdivision = cells, *this; }
    options &memory_limit(std::uint64_t bytes) { return raw_.memory_limit = bytes, *this; }
    options &device(std::string name) { return device_ = std::move(name), *this; }
    options &strategy(std::string name) { return strategy_ = std::move(name), *this; }

    /* An orthogonal box: its length along an axis, 0 where the axis is open. Throws where a length
     * is negative or not finite. */
    options &periodic(double x, double y, double z) {
        detail::set_periodic(raw_, x, y, z);
        return *this;
    }

    /* The structure for the C functions, valid as long as the options and their texts. */
    nf_options raw() const noexcept {
        nf_options raw = raw_;
        raw.device = device_.empty() ? nullptr : device_.c_str();
        raw.strategy = strategy_.empty() ? nullptr : strategy_.c_str();
        raw.cutoffs = cutoffs_.data();
        return raw;
    }

private:
    nf_options raw_;
    std::string device_;
    std::string strategy_;
    std::vector<double> cutoffs_;
};

/* An engine; see nearfield.h for what its members do. */
template <class Policy> class basic_engine : public owner<nf_engine, nf_engine_free> {
    template <class T> using result = typename Policy::template result<T>;

public:
    /* No engine: every member fails. */
    basic_engine() noexcept = default;

    /* Throws whatever the policy, because a constructor returns nothing; make() does not. */
    explicit basic_engine(const options &options) {
        const nf_options raw = options.raw();
        throwing::done(nf_engine_new(&raw, &handle_));
    }

    static result<basic_engine> make(const options &options) {
        basic_engine engine;
        const nf_options raw = options.raw();
        const nf_status status = nf_engine_new(&raw, &engine.handle_);
        return Policy::done(status, std::move(engine));
    }

    template <class T> result<std::uint32_t> add_points(positions<T> at) {
        std::uint32_t set = 0;
        const nf_status status = add(at, &set);
        return Policy::done(status, std::move(set));
    }

    template <class C> auto add_points(const C &container)
        -> decltype(as_positions(container), result<std::uint32_t>()) {
        return add_points(as_positions(container));
    }

    template <class T> result<void> update(std::uint32_t set, positions<T> at) {
        if (const nf_status status = at.whole(); status != NF_STATUS_OK) {
            return Policy::done(status);
        }
        if constexpr (std::is_same_v<T, float>) {
            return Policy::done(nf_update_f32(handle_, set, at.first, at.points, at.stride));
        } else {
            return Policy::done(nf_update_f64(handle_, set, at.first, at.points, at.stride));
        }
    }

    template <class C> auto update(std::uint32_t set, const C &container)
        -> decltype(as_positions(container), Policy::done(NF_STATUS_OK)) {
        return update(set, as_positions(container));
    }

    /* One radius per point, for engines with a rule of radii; see nf_set_radii(). */
    result<void> set_radii(std::uint32_t set, span<const float> radii) {
        return Policy::done(nf_set_radii(handle_, set, radii.data(), radii.size()));
    }

    /* The same in double precision. */
    result<void> set_radii(std::uint32_t set, span<const double> radii) {
        return Policy::done(nf_set_radii_f64(handle_, set, radii.data(), radii.size()));
    }

    /* The type of every point; see nf_set_types(). */
    result<void> set_types(std::uint32_t set, span<const std::uint32_t> types) {
        return Policy::done(nf_set_types(handle_, set, types.data(), types.size()));
    }

    /* Pairs that are left out; see nf_exclude_pairs(). */
    result<void> exclude_pairs(std::uint32_t set,
                               span<const std::array<std::uint32_t, 2>> pairs) {
        const std::uint32_t *points = pairs.empty() ? nullptr : pairs.data()->data();
        return Policy::done(nf_exclude_pairs(handle_, set, points, pairs.size()));
    }

    /* Lists of exclusions, `offsets` one longer than there are points; see nf_set_exclusions(). */
    result<void> set_exclusions(std::uint32_t set, span<const std::uint64_t> offsets,
                                span<const std::uint32_t> indices) {
        const std::size_t points = offsets.empty() ? std::size_t(-1) : offsets.size() - 1;
        return Policy::done(nf_set_exclusions(handle_, set, offsets.data(), points, indices.data(),
                                              indices.size()));
    }

    /* The molecule of every point; see nf_set_molecules(). */
    result<void> set_molecules(std::uint32_t set, span<const std::uint32_t> molecules) {
        return Policy::done(
            nf_set_molecules(handle_, set, molecules.data(), molecules.size()));
    }

    result<void> clear_exclusions(std::uint32_t set) {
        return Policy::done(nf_clear_exclusions(handle_, set));
    }

    /* The points that are searched for; see nf_set_targets(). */
    result<void> set_targets(std::uint32_t set, span<const std::uint32_t> indices) {
        return Policy::done(nf_set_targets(handle_, set, indices.data(), indices.size()));
    }

    /* The same by a byte a point. */
    result<void> set_target_mask(std::uint32_t set, span<const std::uint8_t> mask) {
        return Policy::done(nf_set_target_mask(handle_, set, mask.data(), mask.size()));
    }

    result<void> clear_targets(std::uint32_t set) {
        return Policy::done(nf_clear_targets(handle_, set));
    }

    result<void> remove_set(std::uint32_t set) {
        return Policy::done(nf_remove_set(handle_, set));
    }

    /* `keep` has one byte a point, 0 for the points that are removed. */
    result<void> retain_points(std::uint32_t set, span<const std::uint8_t> keep) {
        return Policy::done(nf_retain_points(handle_, set, keep.data(), keep.size()));
    }

    result<std::size_t> point_sets() const {
        std::size_t sets = 0;
        const nf_status status = nf_point_sets(handle_, &sets);
        return Policy::done(status, std::move(sets));
    }

    result<std::size_t> points(std::uint32_t set) const {
        std::size_t points = 0;
        const nf_status status = nf_points(handle_, set, &points);
        return Policy::done(status, std::move(points));
    }

    result<void> set_active(std::uint32_t targets, std::uint32_t sources, bool active) {
        return Policy::done(nf_set_active(handle_, targets, sources, active));
    }

    result<void> set_all_active(bool active) {
        return Policy::done(nf_set_all_active(handle_, active));
    }

    result<bool> is_active(std::uint32_t targets, std::uint32_t sources) const {
        std::uint32_t active = 0;
        const nf_status status = nf_is_active(handle_, targets, sources, &active);
        return Policy::done(status, active != 0);
    }

    result<void> set_radius(double radius) { return Policy::done(nf_set_radius(handle_, radius)); }

    result<double> radius() const {
        double radius = 0;
        const nf_status status = nf_radius(handle_, &radius);
        return Policy::done(status, std::move(radius));
    }

    result<void> find_neighbors() { return Policy::done(nf_find_neighbors(handle_)); }

    /* Makes ready now what later steps would otherwise make when they first need it. */
    result<void> warm_up() { return Policy::done(nf_warm_up(handle_)); }

    result<lists> neighbors(std::uint32_t targets, std::uint32_t sources) const {
        nf_lists raw = {};
        const nf_status status = nf_neighbors(handle_, targets, sources, &raw);
        return Policy::done(status, lists(raw));
    }

    /* Of a set in itself. */
    result<lists> neighbors(std::uint32_t set) const { return neighbors(set, set); }

    /* The neighbours of one point; refused when the lists are out of date. */
    result<span<const std::uint32_t>> neighbors_of(const lists &of, std::size_t point) const {
        const std::uint32_t *first = nullptr;
        std::size_t count = 0;
        const nf_status status = nf_neighbors_of(handle_, &of.raw(), point, &first, &count);
        return Policy::done(status, span<const std::uint32_t>(first, count));
    }

    result<csr> to_csr(std::uint32_t targets, std::uint32_t sources) const {
        nf_lists raw = {};
        csr copy;
        nf_status status = nf_neighbors(handle_, targets, sources, &raw);
        if (status == NF_STATUS_OK) {
            copy.offsets.resize(raw.points + 1);
            copy.indices.resize(static_cast<std::size_t>(raw.pairs));
            status = nf_neighbors_csr(handle_, targets, sources, copy.offsets.data(),
                                      copy.offsets.size(), copy.indices.data(),
                                      copy.indices.size());
        }
        return Policy::done(status, std::move(copy));
    }

    result<csr> to_csr(std::uint32_t set) const { return to_csr(set, set); }

    /* Pairs of two sets with their geometry; `quantities` is a sum of nf_quantity. */
    result<void> pair_geometry(std::uint32_t targets, std::uint32_t sources,
                               std::uint32_t quantities, pairs &found) const {
        return Policy::done(
            nf_pair_geometry(handle_, targets, sources, quantities, found.handle()));
    }

    /* Any number of threads may do this at the same time. */
    template <class T> result<query_result> query(positions<T> at, std::uint32_t sources) const {
        nf_query *found = nullptr;
        nf_status status = at.whole();
        if (status != NF_STATUS_OK) {
            return Policy::done(status, query_result());
        }
        if constexpr (std::is_same_v<T, float>) {
            status = nf_query_f32(handle_, at.first, at.points, at.stride, sources, &found);
        } else {
            status = nf_query_f64(handle_, at.first, at.points, at.stride, sources, &found);
        }
        return Policy::done(status, status == NF_STATUS_OK ? query_result(found) : query_result());
    }

    template <class C> auto query(const C &container, std::uint32_t sources) const
        -> decltype(as_positions(container), result<query_result>()) {
        return query(as_positions(container), sources);
    }

    /* With a radius for each position; as many as there are positions. */
    result<query_result> query(positions<float> at, span<const float> radii,
                               std::uint32_t sources) const {
        nf_query *found = nullptr;
        nf_status status = at.whole();
        if (status == NF_STATUS_OK) {
            status = nf_query_radii_f32(handle_, at.first, at.points, at.stride, radii.data(),
                                        radii.size(), sources, &found);
        }
        return Policy::done(status, status == NF_STATUS_OK ? query_result(found) : query_result());
    }

    /* The same in double precision. */
    result<query_result> query(positions<double> at, span<const double> radii,
                               std::uint32_t sources) const {
        nf_query *found = nullptr;
        nf_status status = at.whole();
        if (status == NF_STATUS_OK) {
            status = nf_query_radii_f64(handle_, at.first, at.points, at.stride, radii.data(),
                                        radii.size(), sources, &found);
        }
        return Policy::done(status, status == NF_STATUS_OK ? query_result(found) : query_result());
    }

    /* The neighbours of some points of a set, by their indices: a list for each of these. */
    result<query_result> query_points(std::uint32_t targets, std::uint32_t sources,
                                      span<const std::uint32_t> points) const {
        nf_query *found = nullptr;
        const nf_status status = nf_query_points(handle_, targets, sources, points.data(),
                                                 points.size(), &found);
        return Policy::done(status, status == NF_STATUS_OK ? query_result(found) : query_result());
    }

    /* All lists in chunks of at most `memory_limit` bytes, 0 for that of the options: `function`
     * gets every chunk, a const nf_chunk &, which is valid during the call. */
    template <class F>
    result<void> for_each_chunk(std::uint32_t targets, std::uint32_t sources,
                                std::uint64_t memory_limit, F &&function) const {
        nf_chunks *begun = nullptr;
        nf_status status = nf_chunks_new(handle_, targets, sources, memory_limit, nullptr, &begun);
        const owner<nf_chunks, nf_chunks_free> chunks(begun);
        while (status == NF_STATUS_OK) {
            nf_chunk chunk;
            status = nf_chunks_next(handle_, begun, &chunk);
            if (status != NF_STATUS_OK || chunk.target_count == 0) {
                break;
            }
            function(static_cast<const nf_chunk &>(chunk));
        }
        return Policy::done(status);
    }

    result<void> count_neighbors(std::uint32_t targets, std::uint32_t sources,
                                 span<std::uint32_t> counts) const {
        return Policy::done(
            nf_count_neighbors(handle_, targets, sources, counts.data(), counts.size()));
    }

    /* Of a set in itself. */
    result<void> count_neighbors(std::uint32_t set, span<std::uint32_t> counts) const {
        return count_neighbors(set, set, counts);
    }

    /* With dimensions of 2 the kernel is normalised for points in a plane. */
    result<void> sph_density(std::uint32_t targets, std::uint32_t sources, float support,
                             span<const float> mass, span<float> density,
                             nf_deliver deliver = NF_DELIVER_WRITE,
                             std::uint32_t dimensions = 3) const {
        return sph_density(targets, sources, support, field(mass.data(), mass.size(), sizeof(float)),
                           density, deliver, dimensions);
    }

    /* The same, of masses that lie inside your own structures. */
    result<void> sph_density(std::uint32_t targets, std::uint32_t sources, float support,
                             const field &mass, span<float> density,
                             nf_deliver deliver = NF_DELIVER_WRITE,
                             std::uint32_t dimensions = 3) const {
        return Policy::done(nf_sph_density(handle_, targets, sources, support, dimensions,
                                           mass.first, mass.points, mass.stride, density.data(),
                                           density.size(), deliver));
    }

    /* `acceleration` holds three numbers per target. */
    result<void> sph_force(std::uint32_t targets, std::uint32_t sources,
                           const nf_sph_force_parameters &parameters,
                           const nf_sph_points &of_targets, const nf_sph_points &of_sources,
                           span<float> acceleration, nf_deliver deliver = NF_DELIVER_WRITE) const {
        std::size_t points = 0;
        const nf_status status = nf_whole_points(acceleration.size(), &points);
        if (status != NF_STATUS_OK) {
            return Policy::done(status);
        }
        return Policy::done(nf_sph_force(handle_, targets, sources, &parameters, &of_targets,
                                         &of_sources, acceleration.data(), points, deliver));
    }

    /* Calls `visit(const nf_batch &)` from several threads at a time. An exception of
     * `visit` ends the job and is thrown from here, whatever the policy. */
    template <class F> result<void> for_each_batch(std::uint32_t targets, std::uint32_t sources,
                                                   F &&visit) const {
        visitor<std::remove_reference_t<F>> state{visit, {}, nullptr};
        const nf_status status =
            nf_for_each_batch(handle_, targets, sources, &decltype(state)::call, &state);
        if (state.thrown) {
            std::rethrow_exception(state.thrown);
        }
        return Policy::done(status);
    }

    result<std::vector<std::uint32_t>> z_sort(std::uint32_t set) const {
        std::size_t points = 0;
        std::vector<std::uint32_t> order;
        nf_status status = nf_points(handle_, set, &points);
        if (status == NF_STATUS_OK) {
            order.resize(points);
            status = nf_z_sort(handle_, set, order.data(), order.size());
        }
        return Policy::done(status, std::move(order));
    }

    /* What the engine did last, as JSON. */
    result<std::string> report() const {
        std::string text;
        std::size_t needed = 0;
        nf_status status = nf_report(handle_, nullptr, 0, &needed);
        /* Other threads may work meanwhile, and so make it longer. */
        while (status == NF_STATUS_OK && needed > text.size()) {
            text.resize(needed + 64);
            status = nf_report(handle_, &text[0], text.size(), &needed);
            if (status == NF_STATUS_BAD_ARGUMENT && needed > text.size()) {
                status = NF_STATUS_OK;
            }
        }
        text.resize(status == NF_STATUS_OK && needed > 0 ? needed - 1 : 0);
        return Policy::done(status, std::move(text));
    }

private:
    template <class F> struct visitor {
        F &visit;
        std::mutex mutex;
        std::exception_ptr thrown;

        static std::int32_t call(void *user, const nf_batch *batch) {
            visitor &self = *static_cast<visitor *>(user);
            try {
                self.visit(*batch);
                return 0;
            } catch (...) {
                const std::lock_guard<std::mutex> lock(self.mutex);
                if (!self.thrown) {
                    self.thrown = std::current_exception();
                }
                return 1;
            }
        }
    };

    template <class T> nf_status add(positions<T> at, std::uint32_t *set) {
        if (const nf_status status = at.whole(); status != NF_STATUS_OK) {
            return status;
        }
        if constexpr (std::is_same_v<T, float>) {
            return nf_add_points_f32(handle_, at.first, at.points, at.stride, set);
        } else {
            return nf_add_points_f64(handle_, at.first, at.points, at.stride, set);
        }
    }
};

/* Throws nearfield::error. */
using engine = basic_engine<throwing>;
/* Returns nearfield::result. */
using status_engine = basic_engine<returning>;

} // namespace nearfield

#endif
