//! The `brisk-server` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: brisk_structures::alloc::Counting<tikv_jemallocator::Jemalloc> =
    brisk_structures::alloc::Counting(tikv_jemallocator::Jemalloc);

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: brisk_structures::alloc::Counting<mimalloc::MiMalloc> =
    brisk_structures::alloc::Counting(mimalloc::MiMalloc);

#[cfg(not(any(feature = "mimalloc", feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: brisk_structures::alloc::Counting<std::alloc::System> =
    brisk_structures::alloc::Counting(std::alloc::System);

fn main() -> ExitCode {
    brisk_server::boot::main()
}
