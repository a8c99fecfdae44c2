//! Compares HyperLogLogs with a model of their registers, and tests invalid bytes.

use super::*;

const SPARSE_MAX: usize = 3000;

/// A HyperLogLog, together with a model of its registers.
struct Model {
    bytes: Vec<u8>,
    registers: Box<Registers>,
}

impl Model {
    fn new() -> Model {
        Model { bytes: empty(), registers: Box::new([0; REGISTERS]) }
    }

    fn add(&mut self, element: &[u8], sparse_max: usize) {
        let wanted = Mark::of(element);
        let register = &mut self.registers[wanted.index];
        let changes = *register < wanted.rank;
        *register = wanted.rank.max(*register);
        assert_eq!(would_change(&self.bytes, wanted), Ok(changes));
        assert_eq!(mark(&mut self.bytes, wanted, sparse_max), Ok(changes));
    }

    fn check(&self) {
        let mut registers = [0; REGISTERS];
        merge(&self.bytes, &mut registers).unwrap();
        assert!(registers == *self.registers);
        let mut dense = self.bytes.clone();
        make_dense(&mut dense).unwrap();
        assert!(with_registers(&self.bytes, &registers) == dense);
        let one_by_one = (0..REGISTERS).map(|index| register(&dense[HEADER_LEN..], index));
        assert!(one_by_one.eq(registers));
        assert_eq!(count(&self.bytes).unwrap(), count_registers(&registers));
    }
}

#[test]
fn both_forms_hold_what_the_elements_say() {
    let mut sparse = Model::new();
    let mut dense = Model::new();
    make_dense(&mut dense.bytes).unwrap();
    for number in 0u64..6000 {
        let element = number.to_le_bytes();
        sparse.add(&element, SPARSE_MAX);
        dense.add(&element, SPARSE_MAX);
        if number % 500 == 0 {
            sparse.check();
            dense.check();
        }
    }
    assert_eq!(form(&sparse.bytes), Some(Form::Dense));
    assert_eq!(sparse.bytes[HEADER_LEN..], dense.bytes[HEADER_LEN..]);
}

#[test]
fn merging_keeps_the_higher_of_two_registers() {
    let (mut one, mut two) = (Model::new(), Model::new());
    for number in 0u64..20_000 {
        let model = if number % 3 == 0 { &mut one } else { &mut two };
        model.add(&number.to_le_bytes(), SPARSE_MAX);
    }
    let mut registers = *one.registers;
    merge(&two.bytes, &mut registers).unwrap();
    let higher = one.registers.iter().zip(*two.registers).map(|(a, b)| b.max(*a));
    assert!(higher.eq(registers));
    // The highest value that a register can hold, in all registers.
    let full = with_registers(&one.bytes, &[63; REGISTERS]);
    assert!(full[HEADER_LEN..].iter().all(|byte| *byte == 0xff));
    merge(&full, &mut registers).unwrap();
    assert!(registers == [63; REGISTERS]);
}

#[test]
fn the_sparse_form_becomes_dense_when_it_grows_too_long() {
    let mut model = Model::new();
    let mut longest = 0;
    for number in 0u64..1000 {
        model.add(&number.to_le_bytes(), 200);
        if form(&model.bytes) == Some(Form::Sparse) {
            longest = longest.max(model.bytes.len());
        }
        model.check();
    }
    assert!((190..=200).contains(&longest));
    assert_eq!(form(&model.bytes), Some(Form::Dense));
}

#[test]
fn counts_are_near_the_truth() {
    let mut model = Model::new();
    let mut seen = 0u64;
    for target in [1u64, 10, 100, 1_000, 10_000, 100_000] {
        while seen < target {
            model.add(&seen.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes(), SPARSE_MAX);
            seen += 1;
        }
        let counted = count(&model.bytes).unwrap();
        assert!(counted.abs_diff(target) * 100 <= target * 3, "{counted} for {target}");
    }
}

#[test]
fn incomplete_sparse_forms_are_rejected() {
    let form_of = |opcodes: &[u8]| [&header(Form::Sparse)[..], opcodes].concat();
    for opcodes in [&b""[..], b"\x00", b"\x7f", b"\x7f\xff\x00", b"\x7f\xfe", b"\x80"] {
        let bytes = form_of(opcodes);
        assert_eq!(count(&bytes), Err(Corrupt), "{opcodes:?}");
        assert_eq!(merge(&bytes, &mut [0; REGISTERS]), Err(Corrupt));
        assert_eq!(make_dense(&mut bytes.clone()), Err(Corrupt));
    }
    assert_eq!(count(&form_of(b"\x7f\xff")), Ok(0));
}

#[test]
fn strings_that_are_not_hyperloglogs_have_no_form() {
    assert_eq!(form(b""), None);
    assert_eq!(form(b"HYLL\x01"), None);
    let mut bytes = empty();
    assert_eq!(form(&bytes), Some(Form::Sparse));
    bytes[ENCODING_AT] = 0;
    assert_eq!(form(&bytes), None);
    bytes[ENCODING_AT] = 2;
    assert_eq!(form(&bytes), None);
}

#[test]
fn the_self_test_finds_nothing() {
    assert_eq!(self_test(), Ok(()));
}
