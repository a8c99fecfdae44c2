// Numbers as text, as Lua 5.1 writes them: with 14 significant digits, where Luau writes as many as it
// takes to read the same number again. Compiled into Luau before each of its files (`LUAU_CXXFLAGS` in
// .cargo/config.toml), since `..`, `tostring`, `table.concat` and all others come to one function:
//
//     char* luai_num2str(char* buf, double n)      writes into `buf`, returns the end
//
// The macro gives its calls a third argument, by which they find the function here. The declaration and
// the definition in Luau get a third parameter of another type, a function that returns `Lua51`.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>

struct Lua51
{
};

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
