//! The code in the "Features" table of the README compiles as it is written there.

/// The README.
const README: &str = include_str!("../README.md");
/// The code of this file, which the compiler checks.
const COMPILED: &str = include_str!("readme.rs");
/// The table has at least this number of code spans that can be compiled.
const SPANS_MIN: usize = 25;

#[expect(dead_code, unused_variables, reason = "the code is compiled, and never run")]
#[rustfmt::skip]
mod compiled {
    use brisk::{
        Builder, Bytes, CacheOptions, Client, Lanes, Login, Message, ReadFrom, Rotating, Script, commands,
    };
    use std::task::Context;

    static ADD: Script = Script::new("return 1");

    #[cfg(feature = "derive")]
    #[derive(brisk::ToHash, brisk::FromHash)]
    struct User { name: String }

    async fn commands(db: Client) -> brisk::Result<()> {
        db.batch((commands::get::<String>("a"), commands::incr("n"))).await?;
        db.bulk().get::<Bytes>("image:7").await?;
        ADD.run::<i64>(&db, ["n"], [5]).await?;
        db.stream(commands::get::<Bytes>("video")).await?;
        let mut keys = db.scan_keys::<String>().pattern("user:*");
        keys.next().await?;
        db.raw::<i64>("NAME").key("k").arg(1).await?;
        let session = db.session().await?;
        let _ = db.primaries();
        let _ = db.statistics();
        let cache = db.cache(CacheOptions::default()).await?;
        commands::get::<String>("k").on(&cache).await?;
        Ok(())
    }

    #[cfg(feature = "derive")]
    async fn structs(db: Client, user: User) -> brisk::Result<()> {
        drop(db.hset("user:1", &user));
        let user: User = db.hgetall("user:1").await?;
        Ok(())
    }

    #[cfg(feature = "json")]
    fn json(value: Vec<String>) {
        use brisk::Json;
        let _ = Json(value);
    }

    async fn messages(db: Client, cx: &mut Context<'_>, message: Message) -> brisk::Result<()> {
        let mut news = db.subscriber().await?;
        news.next().await;
        let _ = news.poll_next(cx);
        news.keyspace_events(0, "user:*").await?;
        let _ = message.keyspace_event();
        Ok(())
    }

    fn builders(url: &str, builder: fn() -> Builder) {
        let _ = Client::builder(url).lanes(Lanes::Pool(50));
        let _ = Client::builder(url).lazy();
        drop(Client::connect("redis-cluster://h1:7000,h2:7000"));
        let _ = Client::builder("redis://h1").seed("h2:6379").read_from(ReadFrom::PreferReplica);
        let builder = builder();
        let builder = builder.credentials(Rotating::new(Login::new("app", "first")));
        #[cfg(feature = "tracing")]
        let builder = builder.observer(brisk::Tracing::new());
        #[cfg(feature = "tls")]
        use brisk::Tls;
        #[cfg(feature = "tls")]
        let builder = builder.tls(Tls::new().ca_file("ca.crt").client_files("c.crt", "c.key"));
    }

    #[cfg(feature = "mock")]
    fn mock() -> Result<(), Box<dyn std::error::Error>> {
        let mock = brisk::mock::Mock::start()?;
        mock.expect(["GET", "k"]).reply("v");
        mock.finish()?;
        Ok(())
    }
}

/// The code spans of the table. Spans with an ellipsis, names of items, parts of URLs and method calls without a
/// receiver are not whole expressions.
fn spans() -> Vec<&'static str> {
    let table = README.split("\n## Features\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.expect("the section").lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit(" | ").next());
    let is_whole =
        |span: &&str| span.contains('(') && !span.contains('…') && !span.starts_with(['.', '?']);
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(is_whole).collect()
}

#[test]
fn the_code_in_the_features_table_compiles_as_written() {
    let spans = spans();
    assert!(spans.len() >= SPANS_MIN, "{} spans: {spans:?}", spans.len());
    for span in spans {
        assert!(COMPILED.contains(span), "not compiled: {span}");
    }
}
