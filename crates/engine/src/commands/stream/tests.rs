//! Streams against answers, effects and events recorded from a real server.

use crate::testing::Db;
