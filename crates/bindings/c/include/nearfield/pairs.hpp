/* Pairs with their geometry, as engines and searches of systems find them. Included by
 * nearfield.hpp. */

#ifndef NEARFIELD_PAIRS_HPP
#define NEARFIELD_PAIRS_HPP

#include "basics.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace nearfield {

/* Pairs with their geometry, of an engine or of systems, and the memory that they are in: keep it
 * for the next search. Spans are valid until that; those that were not asked for are empty. */
class pairs : public owner<nf_pairs, nf_pairs_free> {
public:
    /* Without memory for a handle every search into it fails. */
    pairs() noexcept { nf_pairs_new(&handle_); }

    std::size_t size() const noexcept { return raw().pairs; }

    /* The first pair of every point, and behind them the number of pairs. */
    span<const std::uint64_t> offsets() const noexcept {
        const nf_pair_arrays found = raw();
        return {found.offsets, found.offsets ? found.points + 1 : 0};
    }

    span<const std::uint32_t> targets() const noexcept { return of(raw().targets, 1); }
    span<const std::uint32_t> sources() const noexcept { return of(raw().sources, 1); }

    /* Three counts a pair. */
    span<const std::int32_t> images() const noexcept { return of(raw().images, 3); }

    /* Three numbers a pair. T is that of the search, float or double; of the other there are
     * none. */
    template <class T> span<const T> displacements() const noexcept {
        return of(static_cast<const T *>(typed<T>(raw().displacements)), 3);
    }
    template <class T> span<const T> distances() const noexcept {
        return of(static_cast<const T *>(typed<T>(raw().distances)), 1);
    }

    /* Rows of `max_neighbors` numbers, one per point, padded with `fill`; see nf_pairs_padded(). */
    nf_status padded(std::size_t max_neighbors, std::uint32_t fill, span<std::uint32_t> indices,
                     span<std::uint32_t> counts, std::size_t &largest) const noexcept {
        return nf_pairs_padded(handle_, max_neighbors, fill, indices.data(), indices.size(),
                               counts.data(), counts.size(), &largest);
    }

private:
    nf_pair_arrays raw() const noexcept {
        nf_pair_arrays found = {};
        return nf_pairs_arrays(handle_, &found) == NF_STATUS_OK ? found : nf_pair_arrays{};
    }

    template <class T> const void *typed(const void *array) const noexcept {
        static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "float or double");
        const auto own = std::is_same_v<T, float> ? NF_PRECISION_F32 : NF_PRECISION_F64;
        return raw().precision == static_cast<std::uint32_t>(own) ? array : nullptr;
    }

    template <class T> span<const T> of(const T *array, std::size_t each) const noexcept {
        return {array, array ? each * size() : 0};
    }
};

} // namespace nearfield

#endif /* NEARFIELD_PAIRS_HPP */
