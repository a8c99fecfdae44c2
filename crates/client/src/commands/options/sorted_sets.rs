//! Options of the commands of the group `sorted-set`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::types;

/// Options of `BZMPOP`, see [`bzmpop`](crate::commands::bzmpop).
#[derive(Clone, Copy, Debug)]
pub struct Bzmpop(());

impl<C, T> Command<C, T, Bzmpop> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `ZADD`, see [`zadd`](crate::commands::zadd).
#[derive(Clone, Copy, Debug)]
pub struct Zadd(());

impl<C, T> Command<C, T, Zadd> {
    /// `NX`, since Redis 3.0.2.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 3.0.2.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`, since Redis 6.2.0.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`, since Redis 6.2.0.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }

    /// `CH`, since Redis 3.0.2.
    pub fn ch(self) -> Self {
        self.option(|request| request.arg("CH"))
    }
}

impl<C> Command<C, i64, Zadd> {
    /// `INCR`, since Redis 3.0.2.
    pub fn incr(self) -> Command<C, Option<f64>, Zadd> {
        self.option(|request| request.arg("INCR")).reply_as()
    }
}

/// Options of `ZDIFF`, see [`zdiff`](crate::commands::zdiff).
#[derive(Clone, Copy, Debug)]
pub struct Zdiff(());

impl<C, T> Command<C, T, Zdiff> {
    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

/// Options of `ZINTER`, see [`zinter`](crate::commands::zinter).
#[derive(Clone, Copy, Debug)]
pub struct Zinter(());

impl<C, T> Command<C, T, Zinter> {
    /// `WEIGHTS weight …`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("WEIGHTS");
            request.args(weights);
        })
    }

    /// `AGGREGATE <SUM | MIN | MAX>`.
    pub fn aggregate(self, aggregate: types::Aggregate) -> Self {
        self.option(|request| {
            request.arg("AGGREGATE");
            request.arg(aggregate);
        })
    }

    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

/// Options of `ZINTERCARD`, see [`zintercard`](crate::commands::zintercard).
#[derive(Clone, Copy, Debug)]
pub struct Zintercard(());

impl<C, T> Command<C, T, Zintercard> {
    /// `LIMIT limit`.
    pub fn limit(self, limit: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(limit);
        })
    }
}

/// Options of `ZINTERSTORE`, see [`zinterstore`](crate::commands::zinterstore).
#[derive(Clone, Copy, Debug)]
pub struct Zinterstore(());

impl<C, T> Command<C, T, Zinterstore> {
    /// `WEIGHTS weight …`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("WEIGHTS");
            request.args(weights);
        })
    }

    /// `AGGREGATE <SUM | MIN | MAX>`.
    pub fn aggregate(self, aggregate: types::Aggregate) -> Self {
        self.option(|request| {
            request.arg("AGGREGATE");
            request.arg(aggregate);
        })
    }
}

/// Options of `ZMPOP`, see [`zmpop`](crate::commands::zmpop).
#[derive(Clone, Copy, Debug)]
pub struct Zmpop(());

impl<C, T> Command<C, T, Zmpop> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `ZPOPMAX`, see [`zpopmax`](crate::commands::zpopmax).
#[derive(Clone, Copy, Debug)]
pub struct Zpopmax(());

impl<C, T> Command<C, T, Zpopmax> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| request.arg(count))
    }
}

/// Options of `ZPOPMIN`, see [`zpopmin`](crate::commands::zpopmin).
#[derive(Clone, Copy, Debug)]
pub struct Zpopmin(());

impl<C, T> Command<C, T, Zpopmin> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| request.arg(count))
    }
}

/// Options of `ZRANDMEMBER`, see [`zrandmember`](crate::commands::zrandmember).
#[derive(Clone, Copy, Debug)]
pub struct Zrandmember(());

impl<C, T> Command<C, T, Zrandmember> {
    /// `WITHSCORES`. Only after `count`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

impl<C, T> Command<C, Option<T>, Zrandmember> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Zrandmember> {
        self.option(|request| request.arg(count)).reply_as()
    }
}

/// Options of `ZRANGE`, see [`zrange`](crate::commands::zrange).
#[derive(Clone, Copy, Debug)]
pub struct Zrange(());

impl<C, T> Command<C, T, Zrange> {
    /// `BYSCORE`, since Redis 6.2.0.
    pub fn by_score(self) -> Self {
        self.option(|request| request.arg("BYSCORE"))
    }

    /// `BYLEX`, since Redis 6.2.0.
    pub fn by_lex(self) -> Self {
        self.option(|request| request.arg("BYLEX"))
    }

    /// `REV`, since Redis 6.2.0.
    pub fn rev(self) -> Self {
        self.option(|request| request.arg("REV"))
    }

    /// `LIMIT offset count`, since Redis 6.2.0.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }

    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

/// Options of `ZRANGEBYLEX`, see [`zrangebylex`](crate::commands::zrangebylex).
#[derive(Clone, Copy, Debug)]
pub struct Zrangebylex(());

impl<C, T> Command<C, T, Zrangebylex> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }
}

/// Options of `ZRANGEBYSCORE`, see [`zrangebyscore`](crate::commands::zrangebyscore).
#[derive(Clone, Copy, Debug)]
pub struct Zrangebyscore(());

impl<C, T> Command<C, T, Zrangebyscore> {
    /// `WITHSCORES`, since Redis 2.0.0.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }
}

/// Options of `ZRANGESTORE`, see [`zrangestore`](crate::commands::zrangestore).
#[derive(Clone, Copy, Debug)]
pub struct Zrangestore(());

impl<C, T> Command<C, T, Zrangestore> {
    /// `BYSCORE`.
    pub fn by_score(self) -> Self {
        self.option(|request| request.arg("BYSCORE"))
    }

    /// `BYLEX`.
    pub fn by_lex(self) -> Self {
        self.option(|request| request.arg("BYLEX"))
    }

    /// `REV`.
    pub fn rev(self) -> Self {
        self.option(|request| request.arg("REV"))
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }
}

/// Options of `ZRANK`, see [`zrank`](crate::commands::zrank).
#[derive(Clone, Copy, Debug)]
pub struct Zrank(());

impl<C> Command<C, Option<i64>, Zrank> {
    /// `WITHSCORE`.
    pub fn with_score(self) -> Command<C, Option<(i64, f64)>, Zrank> {
        self.option(|request| request.arg("WITHSCORE")).reply_as()
    }
}

/// Options of `ZREVRANGE`, see [`zrevrange`](crate::commands::zrevrange).
#[derive(Clone, Copy, Debug)]
pub struct Zrevrange(());

impl<C, T> Command<C, T, Zrevrange> {
    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

/// Options of `ZREVRANGEBYLEX`, see [`zrevrangebylex`](crate::commands::zrevrangebylex).
#[derive(Clone, Copy, Debug)]
pub struct Zrevrangebylex(());

impl<C, T> Command<C, T, Zrevrangebylex> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }
}

/// Options of `ZREVRANGEBYSCORE`, see [`zrevrangebyscore`](crate::commands::zrevrangebyscore).
#[derive(Clone, Copy, Debug)]
pub struct Zrevrangebyscore(());

impl<C, T> Command<C, T, Zrevrangebyscore> {
    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }
}

/// Options of `ZREVRANK`, see [`zrevrank`](crate::commands::zrevrank).
#[derive(Clone, Copy, Debug)]
pub struct Zrevrank(());

impl<C> Command<C, Option<i64>, Zrevrank> {
    /// `WITHSCORE`.
    pub fn with_score(self) -> Command<C, Option<(i64, f64)>, Zrevrank> {
        self.option(|request| request.arg("WITHSCORE")).reply_as()
    }
}

/// Options of `ZSCAN`, see [`zscan`](crate::commands::zscan).
#[derive(Clone, Copy, Debug)]
pub struct Zscan(());

impl<C, T> Command<C, T, Zscan> {
    /// `MATCH pattern`.
    pub fn matching(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MATCH");
            request.arg(pattern);
        })
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `NOSCORES`, since Redis 8.0.0.
    pub fn no_scores(self) -> Self {
        self.option(|request| request.arg("NOSCORES"))
    }
}

/// Options of `ZUNION`, see [`zunion`](crate::commands::zunion).
#[derive(Clone, Copy, Debug)]
pub struct Zunion(());

impl<C, T> Command<C, T, Zunion> {
    /// `WEIGHTS weight …`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("WEIGHTS");
            request.args(weights);
        })
    }

    /// `AGGREGATE <SUM | MIN | MAX>`.
    pub fn aggregate(self, aggregate: types::Aggregate) -> Self {
        self.option(|request| {
            request.arg("AGGREGATE");
            request.arg(aggregate);
        })
    }

    /// `WITHSCORES`.
    pub fn with_scores(self) -> Self {
        self.option(|request| request.arg("WITHSCORES"))
    }
}

/// Options of `ZUNIONSTORE`, see [`zunionstore`](crate::commands::zunionstore).
#[derive(Clone, Copy, Debug)]
pub struct Zunionstore(());

impl<C, T> Command<C, T, Zunionstore> {
    /// `WEIGHTS weight …`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("WEIGHTS");
            request.args(weights);
        })
    }

    /// `AGGREGATE <SUM | MIN | MAX>`.
    pub fn aggregate(self, aggregate: types::Aggregate) -> Self {
        self.option(|request| {
            request.arg("AGGREGATE");
            request.arg(aggregate);
        })
    }
}
