// Layout of Rust values in uniforms and channels, and the pair. Included after subset.cuh.
#ifndef NEARFIELD_VALUES
#define NEARFIELD_VALUES
namespace nf {

// Values as they lie in uniforms and channels, one float or its bits per number.
// Structs know theirs.
template <class T>
struct layout {
    static constexpr int COUNT = T::COUNT;
    static __forceinline__ T read(const float* at) { return T::read(at); }
    static __forceinline__ void write(float* at, const T& value) { T::write(at, value); }
};
template <>
struct layout<float> {
    static constexpr int COUNT = 1;
    static __forceinline__ float read(const float* at) { return at[0]; }
    static __forceinline__ void write(float* at, float value) { at[0] = value; }
};
template <class I>
struct layout<integer<I>> {
    typedef typename integer<I>::Bits Bits;
    static constexpr int COUNT = sizeof(I) / 4;
    static __forceinline__ integer<I> read(const float* at) {
        Bits bits = __float_as_uint(at[0]);
        if (COUNT == 2) bits |= static_cast<Bits>(static_cast<unsigned long long>(__float_as_uint(at[COUNT - 1])) << 32);
        return integer<I>::of(bits);
    }
    static __forceinline__ void write(float* at, integer<I> value) {
        at[0] = __uint_as_float(static_cast<unsigned>(value.bits()));
        if (COUNT == 2) {
            const unsigned long long bits = value.bits();
            at[COUNT - 1] = __uint_as_float(static_cast<unsigned>(bits >> 32));
        }
    }
};
template <>
struct layout<bool> {
    static constexpr int COUNT = 1;
    static __forceinline__ bool read(const float* at) { return __float_as_uint(at[0]) != 0; }
    static __forceinline__ void write(float* at, bool value) { at[0] = __uint_as_float(value ? 1u : 0u); }
};
template <>
struct layout<Vec2> {
    static constexpr int COUNT = 2;
    static __forceinline__ Vec2 read(const float* at) { return {at[0], at[1]}; }
    static __forceinline__ void write(float* at, Vec2 value) {
        at[0] = value.x;
        at[1] = value.y;
    }
};
template <>
struct layout<Vec3> {
    static constexpr int COUNT = 3;
    static __forceinline__ Vec3 read(const float* at) { return {at[0], at[1], at[2]}; }
    static __forceinline__ void write(float* at, Vec3 value) {
        at[0] = value.x;
        at[1] = value.y;
        at[2] = value.z;
    }
};
template <class T, int N>
struct layout<array<T, N>> {
    static constexpr int COUNT = N * layout<T>::COUNT;
    static __forceinline__ array<T, N> read(const float* at) {
        array<T, N> value;
        for (int k = 0; k < N; k++) value.values[k] = layout<T>::read(at + k * layout<T>::COUNT);
        return value;
    }
    static __forceinline__ void write(float* at, const array<T, N>& value) {
        for (int k = 0; k < N; k++) layout<T>::write(at + k * layout<T>::COUNT, value.values[k]);
    }
};
template <>
struct layout<tuple<>> {
    static constexpr int COUNT = 0;
    static __forceinline__ tuple<> read(const float*) { return {}; }
    static __forceinline__ void write(float*, tuple<>) {}
};
template <class A>
struct layout<tuple<A>> {
    static constexpr int COUNT = layout<A>::COUNT;
    static __forceinline__ tuple<A> read(const float* at) { return {layout<A>::read(at)}; }
    static __forceinline__ void write(float* at, const tuple<A>& value) { layout<A>::write(at, value._0); }
};
template <class A, class B>
struct layout<tuple<A, B>> {
    static constexpr int SECOND = layout<A>::COUNT, COUNT = SECOND + layout<B>::COUNT;
    static __forceinline__ tuple<A, B> read(const float* at) {
        return {layout<A>::read(at), layout<B>::read(at + SECOND)};
    }
    static __forceinline__ void write(float* at, const tuple<A, B>& value) {
        layout<A>::write(at, value._0);
        layout<B>::write(at + SECOND, value._1);
    }
};
template <class A, class B, class C>
struct layout<tuple<A, B, C>> {
    static constexpr int SECOND = layout<A>::COUNT, THIRD = SECOND + layout<B>::COUNT, COUNT = THIRD + layout<C>::COUNT;
    static __forceinline__ tuple<A, B, C> read(const float* at) {
        return {layout<A>::read(at), layout<B>::read(at + SECOND), layout<C>::read(at + THIRD)};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C>& value) {
        layout<A>::write(at, value._0);
        layout<B>::write(at + SECOND, value._1);
        layout<C>::write(at + THIRD, value._2);
    }
};
template <class A, class B, class C, class D>
struct layout<tuple<A, B, C, D>> {
    typedef tuple<A, B> First;
    typedef tuple<C, D> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, second._0, second._1};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D>& value) {
        layout<First>::write(at, {value._0, value._1});
        layout<Second>::write(at + MIDDLE, {value._2, value._3});
    }
};
template <class A, class B, class C, class D, class E>
struct layout<tuple<A, B, C, D, E>> {
    typedef tuple<A, B, C> First;
    typedef tuple<D, E> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D, E> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, first._2, second._0, second._1};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D, E>& value) {
        layout<First>::write(at, {value._0, value._1, value._2});
        layout<Second>::write(at + MIDDLE, {value._3, value._4});
    }
};
template <class A, class B, class C, class D, class E, class F>
struct layout<tuple<A, B, C, D, E, F>> {
    typedef tuple<A, B, C> First;
    typedef tuple<D, E, F> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D, E, F> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, first._2, second._0, second._1, second._2};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D, E, F>& value) {
        layout<First>::write(at, {value._0, value._1, value._2});
        layout<Second>::write(at + MIDDLE, {value._3, value._4, value._5});
    }
};

template <class T>
__forceinline__ T read(const float* at) { return layout<T>::read(at); }
template <class T>
__forceinline__ void write(float* at, const T& value) { layout<T>::write(at, value); }

// An array of uniforms that is indexed where it lies.
template <class A>
struct table;
template <class T, int N>
struct table<array<T, N>> {
    const float* at;
    __forceinline__ T operator[](usize index) const { return layout<T>::read(at + within(index, N) * layout<T>::COUNT); }
};

// The pair as the kernel sees it.
struct Pair {
    array<float, 3> d;
    float d2;
};
__forceinline__ constexpr Pair reversed(Pair p) {
    return {{{-p.d.values[0], -p.d.values[1], -p.d.values[2]}}, p.d2};
}

}  // namespace nf
#endif
