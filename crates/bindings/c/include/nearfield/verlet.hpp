/* Lists with a skin, which stay good while points move little. */

#ifndef NEARFIELD_VERLET_HPP
#define NEARFIELD_VERLET_HPP

#include "../nearfield.hpp"

namespace nearfield {

/* Lists with a skin; see nf_verlet_new(). */
template <class Policy> class basic_verlet_lists : public owner<nf_verlet, nf_verlet_free> {
public:
    template <class T> using result = typename Policy::template result<T>;

    /* `options` have the radius within which pairs are found. */
    static result<basic_verlet_lists> make(const options &options, float skin) {
        basic_verlet_lists made;
        const nf_options raw = options.raw();
        const nf_status status = nf_verlet_new(&raw, skin, &made.handle_);
        return Policy::done(status, std::move(made));
    }

    template <class T> result<std::uint32_t> add_points(positions<T> at) {
        std::uint32_t set = 0;
        nf_status status = at.whole();
        if (status != NF_STATUS_OK) {
            return Policy::done(status, std::move(set));
        }
        if constexpr (std::is_same_v<T, float>) {
            status = nf_verlet_add_points_f32(handle_, at.first, at.points, at.stride, &set);
        } else {
            status = nf_verlet_add_points_f64(handle_, at.first, at.points, at.stride, &set);
        }
        return Policy::done(status, std::move(set));
    }

    template <class C> auto add_points(const C &container)
        -> decltype(as_positions(container), result<std::uint32_t>()) {
        return add_points(as_positions(container));
    }

    template <class T> result<void> update(std::uint32_t set, positions<T> at) {
        nf_status status = at.whole();
        if (status != NF_STATUS_OK) {
            return Policy::done(status);
        }
        if constexpr (std::is_same_v<T, float>) {
            status = nf_verlet_update_f32(handle_, set, at.first, at.points, at.stride);
        } else {
            status = nf_verlet_update_f64(handle_, set, at.first, at.points, at.stride);
        }
        return Policy::done(status);
    }

    template <class C> auto update(std::uint32_t set, const C &container)
        -> decltype(as_positions(container), result<void>()) {
        return update(set, as_positions(container));
    }

    /* Builds the lists anew if a pair could be missing; 1 if they were built. */
    result<std::uint32_t> refresh() {
        std::uint32_t rebuilt = 0;
        const nf_status status = nf_verlet_refresh(handle_, &rebuilt);
        return Policy::done(status, std::move(rebuilt));
    }

    /* The pairs within the radius now; `quantities` is a sum of nf_quantity. */
    result<void> pair_geometry(std::uint32_t targets, std::uint32_t sources,
                               std::uint32_t quantities, pairs &found) const {
        return Policy::done(
            nf_verlet_pair_geometry(handle_, targets, sources, quantities, found.handle()));
    }

    result<void> set_active(std::uint32_t targets, std::uint32_t sources, bool active) {
        return Policy::done(nf_verlet_set_active(handle_, targets, sources, active ? 1 : 0));
    }

    result<void> remove_set(std::uint32_t set) {
        return Policy::done(nf_verlet_remove_set(handle_, set));
    }

    result<std::uint64_t> builds() const {
        std::uint64_t builds = 0;
        const nf_status status = nf_verlet_builds(handle_, &builds);
        return Policy::done(status, std::move(builds));
    }
};

using verlet_lists = basic_verlet_lists<throwing>;
using status_verlet_lists = basic_verlet_lists<returning>;

} // namespace nearfield

#endif /* NEARFIELD_VERLET_HPP */
