/* What members of the classes in nearfield.hpp return: errors, results, and spans of elements that
 * another object owns. Included by nearfield.hpp. */

#ifndef NEARFIELD_BASICS_HPP
#define NEARFIELD_BASICS_HPP

#include "../nearfield.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nearfield {

/* What a call that failed has to say. */
class error : public std::runtime_error {
public:
    error(nf_status status, const std::string &text) : std::runtime_error(text), status_(status) {}

    nf_status status() const noexcept { return status_; }

private:
    nf_status status_;
};

/* A value, or why there is none. */
template <class T> struct result {
    nf_status status;
    T value;

    explicit operator bool() const noexcept { return status == NF_STATUS_OK; }
};

template <> struct result<void> {
    nf_status status;

    explicit operator bool() const noexcept { return status == NF_STATUS_OK; }
};

/* Members return their value and throw when there is none. */
struct throwing {
    template <class T> using result = T;

    static void done(nf_status status) {
        if (status != NF_STATUS_OK) {
            throw error(status, nf_last_error());
        }
    }

    template <class T> static T done(nf_status status, T &&value) {
        done(status);
        return std::forward<T>(value);
    }
};

/* Members return their value with a status. */
struct returning {
    template <class T> using result = nearfield::result<T>;

    static result<void> done(nf_status status) { return {status}; }

    template <class T> static result<T> done(nf_status status, T &&value) {
        return {status, std::forward<T>(value)};
    }
};

/* Owns what a handle names and frees it by `Free`; moved, not copied. */
template <class Handle, nf_status (*Free)(Handle *)> class owner {
public:
    owner() noexcept = default;
    explicit owner(Handle *handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    owner &operator=(owner &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owner() { Free(handle_); }

    /* For the C functions; stays the owner's. */
    Handle *handle() const noexcept { return handle_; }

protected:
    Handle *handle_ = nullptr;
};

/* Elements that lie side by side, owned by another object. */
template <class T> class span {
public:
    span() noexcept = default;
    span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    /* From anything with data() and size(), of elements that are T and not made from it. */
    template <class C, class = std::enable_if_t<std::is_convertible_v<
                           std::remove_pointer_t<decltype(std::declval<C &>().data())> (*)[],
                           T (*)[]>>>
    span(C &&container) noexcept : data_(container.data()), size_(container.size()) {}

    /* A copy, where a vector is wanted. */
    operator std::vector<std::remove_const_t<T>>() const {
        return std::vector<std::remove_const_t<T>>(begin(), end());
    }

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace nearfield

#endif /* NEARFIELD_BASICS_HPP */
