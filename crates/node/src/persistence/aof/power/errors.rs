//! Each call of a piece of work fails once.
