// What Luau's machine does otherwise than Lua 5.1 and what nothing in `prelude.luau` could change without a
// call more for each use. Compiled into Luau before each of its files (`LUAU_CXXFLAGS` in
// .cargo/config.toml). Cargo builds Luau anew when that line changes, not when this file does.
//
// Functions are replaced by macros that give their calls a third argument, by which they find the function
// here. Declaration and definition in Luau get a third parameter of another type, a function that returns
// `Lua51`.
#pragma once

#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>

struct Lua51
{
};

// Numbers as text: with 14 significant digits, where Luau writes as many as it takes to read the same number
// again. `..`, `tostring`, `table.concat` and all others come to one function:
//
//     char* luai_num2str(char* buf, double n)      writes into `buf`, returns the end

inline char* luai_num2str(char* buf, double n, Lua51)
{
    // Luau's buffers have 48 bytes; the longest text is sign, 14 digits, point and `e-308`.
    const int size = 32;
    // Integers below this have 14 digits at most, and are what most numbers in scripts are.
    const double plain = 1e14;
    if (n > -plain && n < plain && n == double((long long)n) && !(n == 0 && std::signbit(n)))
        return std::to_chars(buf, buf + size, (long long)n).ptr;
    return buf + snprintf(buf, size, "%.14g", n);
}

#define luai_num2str(buf, n) luai_num2str(buf, n, Lua51())
#define luaL_addvalueany(B, idx) luaL_addvalueany(B, idx, Lua51())

// The rest is about the machine itself; its compiler has not got these files.
#if __has_include("../src/lnumutils.h")
#include "lualib.h"

#include "../src/lnumutils.h"

// Integers that functions are given: `string.sub(text, 1, 2^32)`. Lua 5.1 makes 64 bits of the number first,
// and has a result without meaning for what these cannot hold. Luau would make 32 bits of it at once, and
// has that result, -2^31, for every number beyond. Here the nearest number of 32 bits stands for one that
// 64 bits can hold.
inline int lua51_integer(double n)
{
    const int made = int(n);
    if (made != INT_MIN)
        return made;
    return n > 0 && n < 0x1p63 ? INT_MAX : INT_MIN;
}

#undef luai_num2int
#define luai_num2int(i, d) ((i) = lua51_integer(d))

// `string.format` comes here for `%*`, which Lua 5.1 does not know.
inline void(luaL_addvalueany)(luaL_Strbuf* B, int, Lua51)
{
    luaL_error(B->L, "invalid option '%%*' to 'format'");
}
#endif
