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

// Luau calls its interrupt at each step of a script: a call, a return, a turn of a loop, an attempt to match a
// pattern. mlua's interrupt takes about 10 ns, so Luau calls it once in `LUA51_STEPS` steps. After an
// interrupt that raised an error, Luau calls it at the next step: a script that is stopped must not go on by
// catching the error. Interrupts of the garbage collector, which mlua ignores, are left out.
//
// The macro replaces calls only: everywhere else in Luau, no parenthesis follows the name.
inline thread_local int lua51_steps_left = LUA51_STEPS;

inline void lua51_interrupt(void (*call)(lua_State*, int), lua_State* L, int gc)
{
    if (gc >= 0 || --lua51_steps_left > 0)
        return;
    lua51_steps_left = 1;
    call(L, gc);
    lua51_steps_left = LUA51_STEPS;
}

#define interrupt(L, gc) lua51_interrupt(interrupt, L, gc)

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
