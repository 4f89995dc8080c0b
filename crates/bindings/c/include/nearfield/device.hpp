/* Data that live on a GPU: engines, lists with a skin and searches of many systems there.
 *
 *     nearfield::device_engine engine(nearfield::device_options(0.1));
 *     const auto fluid = engine.add_points({positions, n});      // a CUdeviceptr
 *     do {
 *         engine.find_neighbors(fluid, fluid);
 *     } while (!engine.finish());
 *     const nf_device_lists lists = engine.neighbors(fluid, fluid);
 *
 * Arrays of the device are addresses with a length; what they hold is said in nearfield.h at the
 * function of the same name. Arrays of the host are spans. */

#ifndef NEARFIELD_DEVICE_HPP
#define NEARFIELD_DEVICE_HPP

#include "../nearfield.hpp"

namespace nearfield {

/* `size` elements at `address` on the device, a CUdeviceptr: points, numbers or bytes, as the
 * function says that takes it. */
struct device_array {
    std::uint64_t address = 0;
    std::size_t size = 0;
};

/* Settings of an engine on a GPU; what they mean stands beside nf_device_options. */
class device_options {
public:
    explicit device_options(double radius) {
        throwing::done(nf_device_options_init(&raw_, sizeof raw_));
        raw_.radius = radius;
    }

    /* The GPU, counted from 0, and a stream of the engine's own. */
    device_options &gpu(std::uint32_t number) {
        raw_.use_stream = 0;
        return raw_.device = number, *this;
    }

    /* The GPU, and a CUstream of yours; null is the default stream. */
    device_options &stream(std::uint32_t gpu, void *stream) {
        raw_.device = gpu;
        raw_.use_stream = 1;
        return raw_.stream = stream, *this;
    }

    device_options &precision(nf_precision precision) { return raw_.precision = precision, *this; }
    device_options &lists(nf_list_kind kind) { return raw_.lists = kind, *this; }
    device_options &order(nf_list_order order) { return raw_.order = order, *this; }
    device_options &strictly_within(bool strict = true) { return raw_.strict = strict, *this; }
    device_options &radii(nf_radius_rule rule) { return raw_.radii = rule, *this; }
    device_options &nearest(std::uint32_t k) { return raw_.nearest = k, *this; }

    /* A cut-off for each pair of `types` types, as options::cutoffs() takes them. */
    device_options &cutoffs(std::uint32_t types, std::vector<double> matrix) {
        detail::check_cutoffs(types, matrix);
        raw_.types = types;
        return cutoffs_ = std::move(matrix), *this;
    }

    device_options &subdivision(std::uint32_t cells) { return raw_.subdivision = cells, *this; }
    device_options &memory_limit(std::uint64_t bytes) { return raw_.memory_limit = bytes, *this; }
    device_options &strategy(std::string name) { return strategy_ = std::move(name), *this; }

    /* An orthogonal box, as options::periodic() takes it. */
    device_options &periodic(double x, double y, double z) {
        return detail::set_periodic(raw_, x, y, z), *this;
    }

    /* A box that points are expected to stay in. */
    device_options &within(const std::array<float, 3> &low, const std::array<float, 3> &high) {
        raw_.use_within = 1;
        for (int axis = 0; axis < 3; ++axis) {
            raw_.within_low[axis] = low[axis];
            raw_.within_high[axis] = high[axis];
        }
        return *this;
    }

    /* The structure for the C functions, valid as long as the options. */
    nf_device_options raw() const noexcept {
        nf_device_options raw = raw_;
        raw.strategy = strategy_.empty() ? nullptr : strategy_.c_str();
        raw.cutoffs = cutoffs_.data();
        return raw;
    }

    /* The same to be changed by hand, such as for box vectors. */
    nf_device_options &settings() noexcept { return raw_; }

private:
    nf_device_options raw_;
    std::string strategy_;
    std::vector<double> cutoffs_;
};

/* An engine on a GPU; see nearfield.h for what its members do. */
template <class Policy>
class basic_device_engine : public owner<nf_device_engine, nf_device_engine_free> {
    template <class T> using result = typename Policy::template result<T>;

public:
    /* No engine: every member fails. */
    basic_device_engine() noexcept = default;

    /* Throws whatever the policy, because a constructor returns nothing; make() does not. */
    explicit basic_device_engine(const device_options &options) {
        const nf_device_options raw = options.raw();
        throwing::done(nf_device_engine_new(&raw, &handle_));
    }

    static result<basic_device_engine> make(const device_options &options) {
        basic_device_engine engine;
        const nf_device_options raw = options.raw();
        const nf_status status = nf_device_engine_new(&raw, &engine.handle_);
        return Policy::done(status, std::move(engine));
    }

    /* The CUstream on which everything is done. */
    result<void *> stream() const {
        void *stream = nullptr;
        const nf_status status = nf_device_engine_stream(handle_, &stream);
        return Policy::done(status, std::move(stream));
    }

    /* `positions` has so many points, of three numbers in the precision of the engine. */
    result<std::uint32_t> add_points(device_array positions) {
        std::uint32_t set = 0;
        const nf_status status =
            nf_device_engine_add_points(handle_, positions.address, positions.size, &set);
        return Policy::done(status, std::move(set));
    }

    result<void> update(std::uint32_t set, device_array positions) {
        return Policy::done(
            nf_device_engine_update(handle_, set, positions.address, positions.size));
    }

    result<void> remove_set(std::uint32_t set) {
        return Policy::done(nf_device_engine_remove_set(handle_, set));
    }

    /* Waits for the device. False: repeat what was computed since the updates. */
    result<bool> finish() {
        std::uint32_t valid = 0;
        const nf_status status = nf_device_engine_finish(handle_, &valid);
        return Policy::done(status, valid != 0);
    }

    /* One radius per point, of the host or the device. */
    result<void> set_radii(std::uint32_t set, span<const float> radii) {
        return Policy::done(
            nf_device_engine_set_radii(handle_, set, radii.data(), radii.size()));
    }

    result<void> set_radii(std::uint32_t set, device_array radii) {
        return Policy::done(nf_device_engine_set_radii_from_device(handle_, set,
                                                                   radii.address, radii.size));
    }

    /* The type of every point. */
    result<void> set_types(std::uint32_t set, span<const std::uint32_t> types) {
        return Policy::done(
            nf_device_engine_set_types(handle_, set, types.data(), types.size()));
    }

    result<void> set_types(std::uint32_t set, const nf_device_integers &types) {
        return Policy::done(nf_device_engine_set_types_from_device(handle_, set, types));
    }

    /* Pairs that are left out. */
    result<void> exclude_pairs(std::uint32_t set,
                               span<const std::array<std::uint32_t, 2>> pairs) {
        const std::uint32_t *points = pairs.empty() ? nullptr : pairs.data()->data();
        return Policy::done(
            nf_device_engine_exclude_pairs(handle_, set, points, pairs.size()));
    }

    /* Lists of exclusions, `offsets` one longer than there are points. */
    result<void> set_exclusions(std::uint32_t set, span<const std::uint64_t> offsets,
                                span<const std::uint32_t> indices) {
        const std::size_t points = offsets.empty() ? std::size_t(-1) : offsets.size() - 1;
        return Policy::done(nf_device_engine_set_exclusions(handle_, set, offsets.data(),
                                                            points, indices.data(),
                                                            indices.size()));
    }

    /* The molecule of every point. */
    result<void> set_molecules(std::uint32_t set, span<const std::uint32_t> molecules) {
        return Policy::done(nf_device_engine_set_molecules(handle_, set, molecules.data(),
                                                           molecules.size()));
    }

    result<void> set_molecules(std::uint32_t set, const nf_device_integers &molecules) {
        return Policy::done(
            nf_device_engine_set_molecules_from_device(handle_, set, molecules));
    }

    result<void> clear_exclusions(std::uint32_t set) {
        return Policy::done(nf_device_engine_clear_exclusions(handle_, set));
    }

    /* The points that are searched for. */
    result<void> set_targets(std::uint32_t set, span<const std::uint32_t> indices) {
        return Policy::done(
            nf_device_engine_set_targets(handle_, set, indices.data(), indices.size()));
    }

    /* The same by a byte a point, of the host or the device. */
    result<void> set_target_mask(std::uint32_t set, span<const std::uint8_t> mask) {
        return Policy::done(
            nf_device_engine_set_target_mask(handle_, set, mask.data(), mask.size()));
    }

    result<void> set_target_mask(std::uint32_t set, device_array mask) {
        return Policy::done(nf_device_engine_set_target_mask_from_device(
            handle_, set, mask.address, mask.size));
    }

    result<void> clear_targets(std::uint32_t set) {
        return Policy::done(nf_device_engine_clear_targets(handle_, set));
    }

    result<void> find_neighbors(std::uint32_t targets, std::uint32_t sources) {
        return Policy::done(nf_device_engine_find_neighbors(handle_, targets, sources));
    }

    result<nf_device_lists> neighbors(std::uint32_t targets, std::uint32_t sources) const {
        nf_device_lists lists = {};
        const nf_status status =
            nf_device_engine_neighbors(handle_, targets, sources, &lists);
        return Policy::done(status, std::move(lists));
    }

    /* Lists with numbers of every pair; `quantities` is a sum of nf_quantity. */
    result<void> pair_geometry(std::uint32_t targets, std::uint32_t sources,
                               std::uint32_t quantities) {
        return Policy::done(
            nf_device_engine_pair_geometry(handle_, targets, sources, quantities));
    }

    result<nf_device_pairs> geometry(std::uint32_t targets, std::uint32_t sources) const {
        nf_device_pairs pairs = {};
        const nf_status status =
            nf_device_engine_geometry(handle_, targets, sources, &pairs);
        return Policy::done(status, std::move(pairs));
    }

    /* Writes the pairs of two sets to arrays of the caller, those that have room; see
       nf_device_engine_write_pairs(). */
    result<void> write_pairs(std::uint32_t targets, std::uint32_t sources,
                             const nf_device_columns &columns) {
        return Policy::done(nf_device_engine_write_pairs(handle_, targets, sources, &columns));
    }

    /* The number of pairs of two sets, also of those that had no room. */
    result<std::uint64_t> pair_count(std::uint32_t targets, std::uint32_t sources) const {
        std::uint64_t pairs = 0;
        const nf_status status =
            nf_device_engine_pair_count(handle_, targets, sources, &pairs);
        return Policy::done(status, std::move(pairs));
    }

    /* Neighbours of free positions; returns the set that they are. */
    result<std::uint32_t> query(device_array positions, std::uint32_t sources) {
        std::uint32_t set = 0;
        const nf_status status = nf_device_engine_query(handle_, positions.address,
                                                        positions.size, sources, &set);
        return Policy::done(status, std::move(set));
    }

    /* With a radius for each position, of the host. */
    result<std::uint32_t> query(device_array positions, span<const float> radii,
                                std::uint32_t sources) {
        std::uint32_t set = 0;
        const nf_status status =
            nf_device_engine_query_radii(handle_, positions.address, positions.size,
                                         radii.data(), radii.size(), sources, &set);
        return Policy::done(status, std::move(set));
    }

    /* The neighbours of some points, by their indices. */
    result<void> find_neighbors_of(std::uint32_t targets, std::uint32_t sources,
                                   const nf_device_integers &points) {
        return Policy::done(
            nf_device_engine_find_neighbors_of(handle_, targets, sources, points));
    }

    result<nf_device_lists> neighbors_of(std::uint32_t targets, std::uint32_t sources) const {
        nf_device_lists lists = {};
        const nf_status status =
            nf_device_engine_neighbors_of(handle_, targets, sources, &lists);
        return Policy::done(status, std::move(lists));
    }

    /* All lists in chunks of at most `memory_limit` bytes, 0 for that of the options: `function`
     * gets every chunk, a const nf_device_chunk &, which the next overwrites in the order of the
     * stream. */
    template <class F>
    result<void> for_each_chunk(std::uint32_t targets, std::uint32_t sources,
                                std::uint32_t quantities, std::uint64_t memory_limit,
                                F &&function) {
        nf_device_chunks *begun = nullptr;
        nf_status status = nf_device_chunks_new(handle_, targets, sources, quantities,
                                                memory_limit, nullptr, &begun);
        const owner<nf_device_chunks, nf_device_chunks_free> chunks(begun);
        while (status == NF_STATUS_OK) {
            nf_device_chunk chunk;
            status = nf_device_chunks_next(handle_, begun, &chunk);
            if (status != NF_STATUS_OK || chunk.target_count == 0) {
                break;
            }
            function(static_cast<const nf_device_chunk &>(chunk));
        }
        return Policy::done(status);
    }

    result<void> count_neighbors(std::uint32_t targets, std::uint32_t sources,
                                 device_array counts) const {
        return Policy::done(nf_device_engine_count_neighbors(handle_, targets, sources,
                                                             counts.address, counts.size));
    }

    result<void> order(std::uint32_t set, device_array order) const {
        return Policy::done(
            nf_device_engine_order(handle_, set, order.address, order.size));
    }

    /* With `over_lists`, over the lists of these sets that were found. */
    result<void> sph_density(std::uint32_t targets, std::uint32_t sources, float support,
                             const nf_device_field &mass, device_array density,
                             bool over_lists = false, nf_deliver deliver = NF_DELIVER_WRITE,
                             std::uint32_t dimensions = 3) const {
        return Policy::done(nf_device_engine_sph_density(handle_, targets, sources, support,
                                                         dimensions, mass, density.address,
                                                         density.size, over_lists, deliver));
    }

    result<void> traverse(const nf_device_kernel &kernel, std::uint32_t targets,
                          std::uint32_t sources, const nf_device_field &of_targets,
                          const nf_device_field &of_sources, device_array results,
                          bool over_lists = false, nf_deliver deliver = NF_DELIVER_WRITE) const {
        return Policy::done(nf_device_engine_traverse(handle_, &kernel, targets, sources,
                                                      of_targets, of_sources, results.address,
                                                      results.size, over_lists, deliver));
    }
};

/* Lists with a skin on a GPU; see nf_device_verlet_new(). */
template <class Policy>
class basic_device_verlet_lists : public owner<nf_device_verlet, nf_device_verlet_free> {
    template <class T> using result = typename Policy::template result<T>;

public:
    /* `options` have the radius within which pairs are found. */
    static result<basic_device_verlet_lists> make(const device_options &options, float skin) {
        basic_device_verlet_lists made;
        const nf_device_options raw = options.raw();
        const nf_status status = nf_device_verlet_new(&raw, skin, &made.handle_);
        return Policy::done(status, std::move(made));
    }

    result<void *> stream() const {
        void *stream = nullptr;
        const nf_status status = nf_device_verlet_stream(handle_, &stream);
        return Policy::done(status, std::move(stream));
    }

    result<std::uint32_t> add_points(device_array positions) {
        std::uint32_t set = 0;
        const nf_status status =
            nf_device_verlet_add_points(handle_, positions.address, positions.size, &set);
        return Policy::done(status, std::move(set));
    }

    result<void> update(std::uint32_t set, device_array positions) {
        return Policy::done(
            nf_device_verlet_update(handle_, set, positions.address, positions.size));
    }

    /* Other points, or the same in another order. */
    result<void> replace(std::uint32_t set, device_array positions) {
        return Policy::done(
            nf_device_verlet_replace(handle_, set, positions.address, positions.size));
    }

    result<void> remove_set(std::uint32_t set) {
        return Policy::done(nf_device_verlet_remove_set(handle_, set));
    }

    result<void> set_active(std::uint32_t targets, std::uint32_t sources, bool active) {
        return Policy::done(nf_device_verlet_set_active(handle_, targets, sources, active));
    }

    result<void> set_types(std::uint32_t set, span<const std::uint32_t> types) {
        return Policy::done(
            nf_device_verlet_set_types(handle_, set, types.data(), types.size()));
    }

    result<void> set_types(std::uint32_t set, const nf_device_integers &types) {
        return Policy::done(nf_device_verlet_set_types_from_device(handle_, set, types));
    }

    result<void> exclude_pairs(std::uint32_t set,
                               span<const std::array<std::uint32_t, 2>> pairs) {
        const std::uint32_t *points = pairs.empty() ? nullptr : pairs.data()->data();
        return Policy::done(
            nf_device_verlet_exclude_pairs(handle_, set, points, pairs.size()));
    }

    result<void> set_exclusions(std::uint32_t set, span<const std::uint64_t> offsets,
                                span<const std::uint32_t> indices) {
        const std::size_t points = offsets.empty() ? std::size_t(-1) : offsets.size() - 1;
        return Policy::done(nf_device_verlet_set_exclusions(handle_, set, offsets.data(),
                                                            points, indices.data(),
                                                            indices.size()));
    }

    result<void> set_molecules(std::uint32_t set, span<const std::uint32_t> molecules) {
        return Policy::done(nf_device_verlet_set_molecules(handle_, set, molecules.data(),
                                                           molecules.size()));
    }

    result<void> set_molecules(std::uint32_t set, const nf_device_integers &molecules) {
        return Policy::done(
            nf_device_verlet_set_molecules_from_device(handle_, set, molecules));
    }

    result<void> clear_exclusions(std::uint32_t set) {
        return Policy::done(nf_device_verlet_clear_exclusions(handle_, set));
    }

    /* Builds the lists anew if a pair could be missing; true if they were built. */
    result<bool> refresh() {
        std::uint32_t rebuilt = 0;
        const nf_status status = nf_device_verlet_refresh(handle_, &rebuilt);
        return Policy::done(status, rebuilt != 0);
    }

    /* False: the kernels since the last updates did nothing, and are to be started again. */
    result<bool> finish() {
        std::uint32_t valid = 0;
        const nf_status status = nf_device_verlet_finish(handle_, &valid);
        return Policy::done(status, valid != 0);
    }

    result<void> traverse(const nf_device_kernel &kernel, std::uint32_t targets,
                          std::uint32_t sources, const nf_device_field &of_targets,
                          const nf_device_field &of_sources, device_array results,
                          nf_deliver deliver = NF_DELIVER_WRITE) const {
        return Policy::done(nf_device_verlet_traverse(handle_, &kernel, targets, sources,
                                                      of_targets, of_sources, results.address,
                                                      results.size, deliver));
    }

    /* The lists as they were built, within radius + skin. */
    result<nf_device_lists> candidates(std::uint32_t targets, std::uint32_t sources) const {
        nf_device_lists lists = {};
        const nf_status status =
            nf_device_verlet_candidates(handle_, targets, sources, &lists);
        return Policy::done(status, std::move(lists));
    }

    result<double> displacement(std::uint32_t set) {
        double found = 0;
        const nf_status status = nf_device_verlet_displacement(handle_, set, &found);
        return Policy::done(status, std::move(found));
    }

    result<std::uint64_t> builds() const {
        std::uint64_t builds = 0;
        const nf_status status = nf_device_verlet_builds(handle_, &builds);
        return Policy::done(status, std::move(builds));
    }
};

/* Searches many systems at once on a GPU; see nf_device_systems_new(). */
template <class Policy>
class basic_device_systems : public owner<nf_device_systems, nf_device_systems_free> {
    template <class T> using result = typename Policy::template result<T>;

public:
    /* GPU, stream, precision, kind of lists and type of indices: defaults() and changes to it. */
    static nf_device_systems_options defaults() noexcept {
        nf_device_systems_options options = {};
        nf_device_systems_options_init(&options, sizeof options);
        return options;
    }

    static result<basic_device_systems>
    make(const nf_device_systems_options &options = defaults()) {
        basic_device_systems made;
        const nf_status status = nf_device_systems_new(&options, &made.handle_);
        return Policy::done(status, std::move(made));
    }

    result<void *> stream() const {
        void *stream = nullptr;
        const nf_status status = nf_device_systems_stream(handle_, &stream);
        return Policy::done(status, std::move(stream));
    }

    /* Starts a search; `quantities` is a sum of nf_quantity. */
    result<void> neighbors(const nf_device_systems_input &input, std::uint32_t quantities) {
        return Policy::done(nf_device_systems_neighbors(handle_, &input, quantities));
    }

    /* Waits for it. False: repeat the search. */
    result<bool> finish() {
        std::uint32_t valid = 0;
        const nf_status status = nf_device_systems_finish(handle_, &valid);
        return Policy::done(status, valid != 0);
    }

    /* Finds the pairs, writes them to arrays of the caller, and waits; returns their number. All
       are written if it is at most columns.capacity. */
    result<std::uint64_t> neighbors_into(const nf_device_systems_input &input,
                                         const nf_device_columns &columns) {
        std::uint64_t pairs = 0;
        const nf_status status =
            nf_device_systems_neighbors_into(handle_, &input, &columns, &pairs);
        return Policy::done(status, std::move(pairs));
    }

    /* How often the lists of a search with a skin were built. */
    result<std::uint64_t> builds() const {
        std::uint64_t builds = 0;
        const nf_status status = nf_device_systems_builds(handle_, &builds);
        return Policy::done(status, std::move(builds));
    }

    result<nf_device_system_pairs> pairs() const {
        nf_device_system_pairs pairs = {};
        const nf_status status = nf_device_systems_pairs(handle_, &pairs);
        return Policy::done(status, std::move(pairs));
    }
};

/* Throw nearfield::error. */
using device_engine = basic_device_engine<throwing>;
using device_verlet_lists = basic_device_verlet_lists<throwing>;
using device_systems = basic_device_systems<throwing>;
/* Return nearfield::result. */
using status_device_engine = basic_device_engine<returning>;
using status_device_verlet_lists = basic_device_verlet_lists<returning>;
using status_device_systems = basic_device_systems<returning>;

} // namespace nearfield

#endif /* NEARFIELD_DEVICE_HPP */
