//! DEBUG DIGEST-VALUE of the values that this crate reads: the digest that a real server computes
//! for the same data.

use brisk_persist::rdb::Value;
use brisk_persist::rdb::value::{
    HashValue, ListNode, SetValue, SortedSetValue, StreamBlock, StreamId, StreamValue, StringValue,
};
use brisk_structures::listpack::{Item, ListPack};
use brisk_structures::sha1::sha1;

/// Adds data without order (`xor`) and with order (`mix`), as servers do.
#[derive(Default)]
struct Digest([u8; 20]);

impl Digest {
    fn xor(&mut self, data: &[u8]) {
        for (byte, other) in self.0.iter_mut().zip(sha1(data)) {
            *byte ^= other;
        }
    }

    fn mix(&mut self, data: &[u8]) {
        self.xor(data);
        self.0 = sha1(&self.0);
    }

    /// Adds the parts of one element, and a mark if there is one, without order.
    fn xor_parts(&mut self, parts: [&[u8]; 2], mark: Option<&[u8]>) {
        let mut element = Digest::default();
        parts.iter().for_each(|part| element.mix(part));
        if let Some(mark) = mark {
            element.xor(mark);
        }
        self.xor(&element.0);
    }
}

/// Returns the digest of a value, with or without an expiry time, as 40 hexadecimal digits.
pub(crate) fn of(value: &Value, expires: bool) -> String {
    let mut digest = Digest::default();
    let number: u32 = match value {
        Value::String(_) => 0,
        Value::List(_) => 1,
        Value::Set(_) => 2,
        Value::SortedSet(_) => 3,
        Value::Hash(_) => 4,
        Value::Stream(_) => 6,
    };
    digest.mix(&number.to_be_bytes());
    match value {
        Value::String(StringValue::Bytes(bytes)) => digest.mix(bytes),
        Value::String(StringValue::Int(number)) => digest.mix(number.to_string().as_bytes()),
        Value::List(_) => elements(value).iter().for_each(|element| digest.mix(element)),
        Value::Set(_) => elements(value).iter().for_each(|member| digest.xor(member)),
        Value::SortedSet(_) => {
            for (member, score) in scored(value) {
                digest.xor_parts([&member, general(score).as_bytes()], None);
            }
        }
        Value::Hash(_) => {
            for (field, text, expire_time) in fields(value) {
                let mark = expire_time.map(|_| &b"!!hexpire!!"[..]);
                digest.xor_parts([&field, &text], mark);
            }
        }
        Value::Stream(stream) => {
            for (id, fields) in entries(stream) {
                digest.mix(format!("{}.{}", id.ms, id.seq).as_bytes());
                fields.iter().for_each(|text| digest.mix(text));
            }
        }
    }
    if expires {
        digest.xor(b"!!expire!!");
    }
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(pack: &ListPack) -> Vec<Vec<u8>> {
    pack.iter().map(Item::to_vec).collect()
}

/// Elements of a list in order, or members of a set.
pub(crate) fn elements(value: &Value) -> Vec<Vec<u8>> {
    match value {
        Value::List(nodes) => nodes
            .iter()
            .flat_map(|node| match node {
                ListNode::Packed(pack) => texts(pack),
                ListNode::Elements(all) => all.iter().map(<[u8]>::to_vec).collect(),
                ListNode::Plain(element) => vec![element.clone()],
            })
            .collect(),
        Value::Set(SetValue::Ints(ints)) => {
            ints.iter().map(|int| int.to_string().into_bytes()).collect()
        }
        Value::Set(SetValue::Packed(pack)) => texts(pack),
        Value::Set(SetValue::Members(members)) => members.iter().map(<[u8]>::to_vec).collect(),
        _ => panic!("no list or set: {value:?}"),
    }
}

/// Fields with value and expiry time.
pub(crate) fn fields(value: &Value) -> Vec<(Vec<u8>, Vec<u8>, Option<u64>)> {
    let Value::Hash(hash) = value else { panic!("no hash: {value:?}") };
    match hash {
        HashValue::Packed(pack) => {
            texts(pack).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone(), None)).collect()
        }
        HashValue::PackedExpiry(pack) => texts(pack)
            .chunks(3)
            .map(|three| {
                let expire_time: u64 = String::from_utf8_lossy(&three[2]).parse().unwrap();
                (three[0].clone(), three[1].clone(), (expire_time != 0).then_some(expire_time))
            })
            .collect(),
        HashValue::Fields(all) => {
            all.pairs().map(|(field, text)| (field.to_vec(), text.to_vec(), None)).collect()
        }
        HashValue::FieldsExpiry(all, expire_times) => all
            .pairs()
            .zip(expire_times)
            .map(|((field, text), ms)| (field.to_vec(), text.to_vec(), ms.map(u64::from)))
            .collect(),
    }
}

/// Members with their scores.
pub(crate) fn scored(value: &Value) -> Vec<(Vec<u8>, f64)> {
    match value {
        Value::SortedSet(SortedSetValue::Packed(pack)) => texts(pack)
            .chunks(2)
            .map(|pair| (pair[0].clone(), String::from_utf8_lossy(&pair[1]).parse().unwrap()))
            .collect(),
        Value::SortedSet(SortedSetValue::Members(members, scores)) => {
            members.iter().map(<[u8]>::to_vec).zip(scores.iter().copied()).collect()
        }
        _ => panic!("no sorted set: {value:?}"),
    }
}

/// Live entries: the id, then alternating fields and values.
pub(crate) fn entries(stream: &StreamValue) -> Vec<(StreamId, Vec<Vec<u8>>)> {
    stream.blocks.iter().flat_map(block_entries).collect()
}

fn block_entries(block: &StreamBlock) -> Vec<(StreamId, Vec<Vec<u8>>)> {
    let items: Vec<Item<'_>> = block.entries.iter().collect();
    let int = |at: usize| items[at].int().expect("expected a number");
    let fields = int(2) as usize;
    let mut at = 3 + fields + 1;
    let mut all = vec![];
    while at < items.len() {
        let flags = int(at);
        let id = StreamId {
            ms: block.id.ms.wrapping_add_signed(int(at + 1)),
            seq: block.id.seq.wrapping_add_signed(int(at + 2)),
        };
        at += 3;
        let mut texts = vec![];
        if flags & 2 != 0 {
            for field in 0..fields {
                texts.push(items[3 + field].to_vec());
                texts.push(items[at + field].to_vec());
            }
            at += fields;
        } else {
            let own = int(at) as usize;
            texts.extend(items[at + 1..at + 1 + own * 2].iter().map(|item| item.to_vec()));
            at += 1 + own * 2;
        }
        at += 1;
        if flags & 1 == 0 {
            all.push((id, texts));
        }
    }
    all
}

/// C's `%.17g`.
fn general(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:.16e}");
    let (digits, exponent) = scientific.split_once('e').expect("this format has an exponent");
    let exponent: i32 = exponent.parse().expect("a whole number");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..17).contains(&exponent) {
        trimmed(&format!("{number:.*}", (16 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
    }
}
