//! Freed when nobody can read it any more, and not before.
