/* Neighbour lists, as engines and queries hand them out. Included by nearfield.hpp. */

#ifndef NEARFIELD_LISTS_HPP
#define NEARFIELD_LISTS_HPP

#include "basics.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace nearfield {

/* Iterates over lists as spans; valid as long as the lists. */
class list_iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = span<const std::uint32_t>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    list_iterator() noexcept : raw_() {}
    list_iterator(const nf_lists &raw, std::size_t point) noexcept : raw_(raw), point_(point) {}

    value_type operator*() const noexcept {
        return {raw_.indices + raw_.start[point_], raw_.count[point_]};
    }
    list_iterator &operator++() noexcept { return ++point_, *this; }
    list_iterator operator++(int) noexcept {
        list_iterator before = *this;
        ++point_;
        return before;
    }
    bool operator==(const list_iterator &other) const noexcept { return point_ == other.point_; }
    bool operator!=(const list_iterator &other) const noexcept { return point_ != other.point_; }

private:
    nf_lists raw_;
    std::size_t point_ = 0;
};

/* Neighbour lists of an engine or a query, valid as long as theirs: lists[i] are the neighbours of
 * point i. */
class lists {
public:
    using iterator = list_iterator;

    lists() noexcept : raw_() {}
    explicit lists(const nf_lists &raw) noexcept : raw_(raw) {}

    std::size_t size() const noexcept { return raw_.points; }
    std::uint64_t pairs() const noexcept { return raw_.pairs; }

    span<const std::uint32_t> operator[](std::size_t point) const noexcept {
        return {raw_.indices + raw_.start[point], raw_.count[point]};
    }

    iterator begin() const noexcept { return {raw_, 0}; }
    iterator end() const noexcept { return {raw_, size()}; }

    const nf_lists &raw() const noexcept { return raw_; }

private:
    nf_lists raw_;
};

/* Neighbours of positions, or of some points of a set; owns its lists. */
class query_result {
public:
    query_result() noexcept = default;
    explicit query_result(nf_query *handle) noexcept : handle_(handle) {
        nf_lists raw;
        if (nf_query_lists(handle, &raw) == NF_STATUS_OK) {
            lists_ = lists(raw);
        }
    }
    query_result(query_result &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), lists_(std::exchange(other.lists_, {})) {}
    query_result &operator=(query_result &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(lists_, other.lists_);
        return *this;
    }
    ~query_result() { nf_query_free(handle_); }

    std::size_t size() const noexcept { return lists_.size(); }
    std::uint64_t pairs() const noexcept { return lists_.pairs(); }
    span<const std::uint32_t> operator[](std::size_t point) const noexcept { return lists_[point]; }
    lists::iterator begin() const noexcept { return lists_.begin(); }
    lists::iterator end() const noexcept { return lists_.end(); }

private:
    nf_query *handle_ = nullptr;
    lists lists_;
};

/* Copies of lists one behind the other, as sparse matrices have them. */
struct csr {
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> indices;
};

} // namespace nearfield

#endif /* NEARFIELD_LISTS_HPP */
