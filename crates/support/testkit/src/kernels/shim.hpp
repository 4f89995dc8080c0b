// Functions that CUDA has and C++ has not, for texts of pair kernels that are compiled for the CPU.
#include <algorithm>
#include <cmath>
#include <cstring>
#define __forceinline__ inline
struct Pair { float d[3]; float d2; };
inline unsigned __float_as_uint(float x) { unsigned y; std::memcpy(&y, &x, 4); return y; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline float __uint_as_float(unsigned x) { float y; std::memcpy(&y, &x, 4); return y; }
// The C library makes a quiet NaN of a signalling one here; a GPU gives the other number.
inline float least(float a, float b) { return a != a ? b : b < a ? b : a; }
inline float largest(float a, float b) { return a != a ? b : b > a ? b : a; }
#define fminf least
#define fmaxf largest
inline float fast_sqrt(float x) { return std::sqrt(x); }
inline float fast_saturate(float x) { return std::fmax(x, 0.0f); }
inline float fast_rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline float fast_recip(float x) { return 1.0f / x; }
inline float fast_mul_add(float a, float b, float c) { return a * b + c; }
inline int __float2int_rz(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : static_cast<int>(x);
}
inline unsigned __float2uint_rz(float x) {
    return x >= 4294967296.0f ? 0xffffffffu : x > 0.0f ? static_cast<unsigned>(x) : 0u;
}
inline unsigned long long __float2ull_rz(float x) {
    return x >= 18446744073709551616.0f ? ~0ull : static_cast<unsigned long long>(x);
}
inline long long __float2ll_rz(float x) {
    return x >= 9223372036854775808.0f ? 9223372036854775807ll
        : x < -9223372036854775808.0f ? -9223372036854775807ll - 1 : static_cast<long long>(x);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
using std::max;
using std::min;
