/* Many systems of points in one search: molecules or crystals, each with a cell of its own. */

#ifndef NEARFIELD_SYSTEMS_HPP
#define NEARFIELD_SYSTEMS_HPP

#include "../nearfield.hpp"

#include <cstring>

namespace nearfield {

/* Searches many systems at once; see nf_systems_new(). */
template <class Policy> class basic_systems : public owner<nf_systems, nf_systems_free> {
public:
    template <class T> using result = typename Policy::template result<T>;

    /* Device, threads, kind and order of lists: defaults() and changes to it. */
    static nf_systems_options defaults() noexcept {
        nf_systems_options options = {};
        nf_systems_options_init(&options, sizeof options);
        return options;
    }

    static result<basic_systems> make(const nf_systems_options &options = defaults()) {
        basic_systems made;
        const nf_status status = nf_systems_new(&options, &made.handle_);
        return Policy::done(status, std::move(made));
    }

    /* Pairs of points, which are packed first where they are not; `quantities` is a sum of
     * nf_quantity. */
    template <class T>
    result<void> neighbors(positions<T> at, const nf_systems_input &input,
                           std::uint32_t quantities, pairs &found) {
        nf_status status = at.whole();
        if (status != NF_STATUS_OK) {
            return Policy::done(status);
        }
        std::vector<T> packed;
        if (at.points > 0 && at.stride != 3 * sizeof(T)) {
            try {
                packed.resize(3 * at.points);
            } catch (const std::exception &) {
                return Policy::done(NF_STATUS_OUT_OF_MEMORY);
            }
            const char *from = reinterpret_cast<const char *>(at.first);
            for (std::size_t point = 0; point < at.points; point++) {
                std::memcpy(&packed[3 * point], from + point * at.stride, 3 * sizeof(T));
            }
            at.first = packed.data();
        }
        if constexpr (std::is_same_v<T, float>) {
            status = nf_systems_neighbors_f32(handle_, at.first, at.points, &input, quantities,
                                              found.handle());
        } else {
            status = nf_systems_neighbors_f64(handle_, at.first, at.points, &input, quantities,
                                              found.handle());
        }
        return Policy::done(status);
    }

    /* How often the lists of a search with a skin were built. */
    result<std::uint64_t> builds() const {
        std::uint64_t builds = 0;
        const nf_status status = nf_systems_builds(handle_, &builds);
        return Policy::done(status, std::move(builds));
    }
};

using systems = basic_systems<throwing>;
using status_systems = basic_systems<returning>;

} // namespace nearfield

#endif /* NEARFIELD_SYSTEMS_HPP */
