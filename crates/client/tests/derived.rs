//! Structs as hashes and as stream entries, enums and newtypes as arguments, and JSON. A derived type can read
//! everything that it writes, and an error names the field whose value cannot be converted.
#![cfg(all(feature = "derive", feature = "json"))]

use brisk::{Client, FromHash, FromReply, Json, Kind, ToArg, ToHash};
use brisk_testkit::server::{Launch, Server};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::marker::PhantomData;

#[derive(ToArg, FromReply, Debug, PartialEq, Clone, Copy)]
enum Level {
    #[word(rename = "low")]
    Low,
    High,
}

#[derive(ToArg, FromReply, Debug, PartialEq, Clone)]
struct Id<T>(T);

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Place {
    city: String,
    zip: Option<u32>,
}

#[derive(ToHash, FromHash, Debug, PartialEq, Clone)]
struct User<'a, T, const N: usize>
where
    T: Clone,
{
    id: Id<T>,
    name: Cow<'a, str>,
    #[hash(rename = "e-mail")]
    mail: Option<String>,
    age: u8,
    old_age: Option<u8>,
    level: Level,
    is_new: bool,
    #[hash(default)]
    visits: u64,
    #[hash(json)]
    places: Vec<Place>,
    #[hash(json)]
    home: Option<Place>,
    #[hash(json, default)]
    more: BTreeMap<String, i64>,
    #[hash(skip)]
    kind: PhantomData<(T, [(); 0])>,
    #[hash(skip)]
    scratch: u32,
    r#type: String,
}

fn ana() -> User<'static, u64, 3> {
    User {
        id: Id(7),
        name: "ana".into(),
        mail: None,
        age: 200,
        old_age: None,
        level: Level::Low,
        is_new: true,
        visits: 0,
        places: vec![Place { city: "Malmö".into(), zip: Some(1) }],
        home: None,
        more: BTreeMap::new(),
        kind: PhantomData,
        scratch: 0,
        r#type: "person".into(),
    }
}

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn each_way(work: impl AsyncFn(Client)) {
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let db = Client::builder(&server.address()).protocol(protocol).connect().await;
                let db = db.expect("it is there");
                db.flushall().await.expect("it does");
                work(db).await;
            });
        }
    }
}

#[test]
fn a_struct_is_read_as_it_was_written() {
    each_way(async |db| {
        let mut user = ana();
        user.scratch = 5;
        assert_eq!(db.hset("user", &user).await.unwrap(), 9);
        user.scratch = 0;
        assert_eq!(db.hgetall::<User<'_, u64, 3>>("user").await.unwrap(), user);
        let raw: HashMap<String, String> = db.hgetall("user").await.unwrap();
        assert_eq!(raw["places"], r#"[{"city":"Malmö","zip":1}]"#);
        assert_eq!((&*raw["level"], &*raw["is_new"], &*raw["age"]), ("low", "1", "200"));
        assert!(!raw.contains_key("e-mail") && !raw.contains_key("home"), "{raw:?}");
        // All fields exist, and so does one that the struct does not have.
        user.mail = Some(String::new());
        user.old_age = Some(255);
        user.home = Some(Place { city: "Lund".into(), zip: None });
        user.more.insert("a".into(), -1);
        db.hset("user", &user).await.unwrap();
        db.hset("user", ("unknown", "x")).await.unwrap();
        assert_eq!(db.hgetall::<Option<User<'_, u64, 3>>>("user").await.unwrap(), Some(user));
    });
}

#[derive(FromHash, Debug, PartialEq)]
struct Loose {
    a: Option<String>,
    #[hash(default)]
    b: Vec<u8>,
}

#[test]
fn a_missing_key_is_none_or_an_error_that_names_the_missing_field() {
    each_way(async |db| {
        assert_eq!(db.hgetall::<Option<User<'_, u64, 3>>>("none").await.unwrap(), None);
        assert_eq!(db.hgetall::<Option<Loose>>("none").await.unwrap(), None);
        let loose: Loose = db.hgetall("none").await.unwrap();
        assert_eq!(loose, Loose { a: None, b: vec![] });
        let error = db.hgetall::<User<'_, u64, 3>>("none").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Missing);
        assert_eq!(error.message(), "field 'id' of User: the field is missing");
        db.set("text", "x").await.unwrap();
        let error = db.hgetall::<Option<Loose>>("text").await.unwrap_err();
        assert_eq!(error.code(), Some(brisk::Code::WrongType));
    });
}

#[test]
fn an_error_names_the_field() {
    each_way(async |db| {
        let error = async |field: &str, value: &str| {
            db.hset("user", ana()).await.unwrap();
            db.hset("user", (field, value)).await.unwrap();
            let error = db.hgetall::<User<'_, u64, 3>>("user").await.unwrap_err();
            assert_eq!(error.kind(), Kind::UnexpectedReply);
            error.message().to_owned()
        };
        let text = error("age", "256").await;
        assert!(text.starts_with("field 'age' of User: expected u8"), "{text}");
        let text = error("level", "middle").await;
        assert_eq!(text, "field 'level' of User: Level has no variant for a string of 6 bytes");
        db.del("user").await.unwrap();
        let text = error("places", "[1").await;
        assert!(text.starts_with("field 'places' of User: the reply is not JSON"), "{text}");
        db.del("user").await.unwrap();
        let text = error("id", "x").await;
        assert!(text.starts_with("field 'id' of User: expected u64"), "{text}");
    });
}

#[derive(ToHash, FromHash, Debug, PartialEq, Clone)]
struct Order {
    item: String,
    count: u32,
    note: Option<String>,
}

#[test]
fn entries_of_a_stream_are_structs() {
    each_way(async |db| {
        let orders = [
            Order { item: "tea".into(), count: 2, note: None },
            Order { item: "rice".into(), count: 1, note: Some("now".into()) },
        ];
        for order in &orders {
            db.xadd("orders", "*", order).await.unwrap();
        }
        let read: Vec<(String, Order)> = db.xrange("orders", "-", "+").await.unwrap();
        assert!(read.iter().map(|(_, order)| order).eq(&orders));
        // In a batch, a reply that cannot be converted does not affect the replies after it.
        let (bad, good) = db
            .batch((
                brisk::commands::xrange::<(String, Loose2)>("orders", "-", "+")
                    .reply_as::<brisk::Result<Vec<(String, Loose2)>>>(),
                brisk::commands::xlen("orders"),
            ))
            .await
            .unwrap();
        assert_eq!(bad.unwrap_err().message(), "field 'price' of Loose2: the field is missing");
        assert_eq!(good, 2);
    });
}

#[derive(FromHash, Debug)]
struct Loose2 {
    #[expect(dead_code, reason = "it is never read")]
    price: f64,
}

#[test]
fn enums_and_json_are_arguments_and_replies() {
    each_way(async |db| {
        db.set(Id("k"), Level::High).await.unwrap();
        assert_eq!(db.get::<Level>("k").await.unwrap(), Some(Level::High));
        assert_eq!(db.get::<Id<String>>("k").await.unwrap(), Some(Id("High".into())));
        db.rpush("levels", [Level::Low, Level::High]).await.unwrap();
        let levels: Vec<Level> = db.lrange("levels", 0, -1).await.unwrap();
        assert_eq!(levels, [Level::Low, Level::High]);
        let place = Place { city: "x".into(), zip: None };
        db.set("place", Json(&place)).await.unwrap();
        assert_eq!(db.get::<Json<Place>>("place").await.unwrap(), Some(Json(place)));
        assert_eq!(db.get::<Json<Place>>("none").await.unwrap(), None);
        let error = db.get::<Json<u8>>("place").await.unwrap_err();
        assert_eq!(error.kind(), Kind::UnexpectedReply);
    });
}

#[derive(ToHash)]
struct Keyed {
    #[hash(json)]
    map: HashMap<(u8, u8), u8>,
}

#[test]
fn a_value_that_json_cannot_represent_is_an_error_and_is_not_sent() {
    each_way(async |db| {
        let map = HashMap::from([((1, 2), 3)]);
        let error = db.set("k", Json(&map)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(!error.maybe_applied());
        let error = db.hset("k", Keyed { map }).await.unwrap_err();
        assert!(
            error.message().starts_with("field 'map': the value cannot be converted to JSON"),
            "{error}"
        );
        let session = db.session().await.unwrap();
        let error = session.set("k", Json(HashMap::from([((1, 2), 3)]))).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert_eq!(db.exists("k").await.unwrap(), 0);
    });
}

#[test]
fn the_number_of_fields_is_sent_where_the_server_needs_it() {
    use brisk::ToArgs;
    let mut user = ana();
    assert_eq!(user.count(), 9);
    user.mail = Some("a".into());
    user.home = Some(Place { city: "x".into(), zip: None });
    assert_eq!(user.count(), 11);
    let command = brisk::commands::hsetex("user", &user);
    let words: Vec<_> = command.request().arguments().collect();
    assert_eq!(words[3], b"11");
    assert_eq!(words.len(), 4 + 22);
}
