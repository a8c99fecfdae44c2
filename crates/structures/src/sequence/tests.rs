//! Compares sequences with a vector of parts.

use super::*;

impl Part for Vec<u32> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

#[test]
fn random_changes_agree_with_a_vector_and_clones_do_not_notice() {
    let mut seed = 17u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
        (seed >> 33) as usize % bound
    };
    let mut list: Sequence<Vec<u32>> = Sequence::new();
    let mut model: Vec<Vec<u32>> = vec![];
    let mut kept = (list.clone(), model.clone());
    for step in 0..if cfg!(miri) { 200 } else { 5_000u32 } {
        let growing = step / 500 % 2 == 0;
        let place = below(model.len() + 1);
        let front = below(2) == 0;
        let ended = list.update_end(front, |part| part.push(step));
        let end = if front { model.first_mut() } else { model.last_mut() };
        assert_eq!(ended.is_some(), end.is_some());
        end.into_iter().for_each(|part| part.push(step));
        match below(10) {
            0..=2 => {
                let part = vec![step; below(4)];
                list.insert(place, part.clone());
                model.insert(place, part);
            }
            3 => {
                list.push_back(vec![step]);
                model.push(vec![step]);
            }
            4 if growing => {
                list.insert(0, vec![step]);
                model.insert(0, vec![step]);
            }
            5 | 6 if place < model.len() => {
                list.update(place, |part| part.push(step));
                model[place].push(step);
            }
            _ if place < model.len() && !growing => {
                assert_eq!(*list.remove(place), model.remove(place));
            }
            _ => {}
        }
        if below(50) == 0 {
            kept.0.check(|_| ());
            assert!(kept.0.iter().map(|part| &**part).eq(kept.1.iter()));
            kept = (list.clone(), model.clone());
        }
        list.check(|_| ());
        assert!(list.iter().map(|part| &**part).eq(model.iter()));
        let index = below(list.elements() + 2);
        let mut rest = index;
        let want = model.iter().enumerate().find_map(|(place, part)| {
            let found = (rest < part.len()).then_some((place, rest));
            rest = rest.saturating_sub(part.len());
            found
        });
        assert_eq!(list.locate(index), want);
        let before: usize = model[..place.min(model.len())].iter().map(Vec::len).sum();
        assert_eq!(list.elements_before(place.min(model.len())), before);
    }
}

#[test]
fn a_queue_stays_shallow() {
    let mut list: Sequence<Vec<u32>> = Sequence::new();
    for n in 0..2_000 {
        list.push_back(vec![n]);
        if n >= 20 {
            assert_eq!(list.remove(0)[0], n - 20);
        }
    }
    list.check(|_| ());
    assert!(list.allocated_bytes() < 3_000, "{}", list.allocated_bytes());
    while list.parts() > 0 {
        list.remove(list.parts() - 1);
    }
    list.check(|_| ());
}
