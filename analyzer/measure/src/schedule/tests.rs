use super::*;

fn arms(slots: &[Slot]) -> Vec<usize> {
    slots.iter().map(|slot| slot.arm).collect()
}

#[test]
fn warmups_come_first_and_every_slot_has_its_block() {
    let size = Size {
        arms: 1,
        warmups: 1,
        runs: 2,
    };
    let slot = |index, phase| Slot {
        index,
        block: index,
        arm: 0,
        place: Place::Alone,
        phase,
    };
    assert_eq!(
        lay_out(&[size], 3),
        [
            slot(0, Phase::Warmup),
            slot(1, Phase::Measured),
            slot(2, Phase::Measured)
        ]
    );
    assert_eq!(Place::Alone.name(), None);
}

#[test]
fn pairs_are_balanced_in_every_four() {
    for seed in 0..50 {
        let slots = lay_out(
            &[Size {
                arms: 2,
                warmups: 0,
                runs: 12,
            }],
            seed,
        );
        let orders: Vec<Place> = slots.iter().step_by(2).map(|slot| slot.place).collect();
        for four in orders.chunks(4) {
            let ab = four.iter().filter(|&&place| place == Place::Ab).count();
            assert_eq!(ab, 2, "seed {seed}: {orders:?}");
        }
        for pair in slots.chunks(2) {
            let expected = match pair[0].place {
                Place::Ab => [0, 1],
                _ => [1, 0],
            };
            assert_eq!(arms(pair), expected);
            assert_eq!(pair[0].place, pair[1].place);
            assert_eq!(pair[0].block, pair[1].block);
        }
    }
}

#[test]
fn a_short_last_group_differs_by_one_at_most() {
    for (runs, seed) in (1..8).flat_map(|runs| (0..20).map(move |seed| (runs, seed))) {
        let slots = lay_out(
            &[Size {
                arms: 2,
                warmups: 0,
                runs,
            }],
            seed,
        );
        let ab = slots
            .iter()
            .step_by(2)
            .filter(|slot| slot.place == Place::Ab)
            .count();
        assert!(ab.abs_diff(runs - ab) <= 1, "{runs} pairs, seed {seed}");
    }
}

#[test]
fn a_seed_fixes_the_order() {
    // Worked out by a Python script of the published generator and the rule.
    let size = Size {
        arms: 2,
        warmups: 0,
        runs: 10,
    };
    let orders: Vec<String> = lay_out(&[size], 42)
        .iter()
        .step_by(2)
        .filter_map(|slot| slot.place.name())
        .collect();
    assert_eq!(orders.join(" "), "ab ba ba ab ba ab ba ab ab ba");
    assert_ne!(lay_out(&[size], 1), lay_out(&[size], 5));
}

#[test]
fn more_arms_stand_once_in_every_block_and_in_every_place() {
    let slots = lay_out(
        &[Size {
            arms: 3,
            warmups: 1,
            runs: 60,
        }],
        9,
    );
    let mut leads = [0; 3];
    for (number, block) in slots.chunks(3).enumerate() {
        let mut sorted = arms(block);
        leads[sorted[0]] += 1;
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        assert!(block.iter().all(|slot| slot.block == number));
        let places: Vec<_> = block.iter().map(|slot| slot.place).collect();
        assert_eq!(places, [Place::Nth(0), Place::Nth(1), Place::Nth(2)]);
    }
    assert!(leads.iter().all(|&count| count > 5), "{leads:?}");
    assert_eq!(Place::Nth(2).name().as_deref(), Some("2"));
}

#[test]
fn sets_of_different_size_are_dealt_out_evenly_and_never_mixed_in_a_block() {
    let set = |arms, runs| Size {
        arms,
        warmups: 1,
        runs,
    };
    for seed in 0..20 {
        let slots = lay_out(&[set(2, 60), set(2, 30), set(3, 7)], seed);
        assert_eq!(slots.len(), 2 * 61 + 2 * 31 + 3 * 8);
        assert!(slots.iter().enumerate().all(|(at, slot)| slot.index == at));
        let warm = slots.iter().take_while(|slot| slot.phase == Phase::Warmup);
        assert_eq!(warm.count(), 7, "warm-ups of every set come first");
        let measured: Vec<&Slot> = slots[7..].iter().collect();
        // Every half holds half of each set, give or take one block.
        let half = |arm| {
            let half = &measured[..measured.len() / 2];
            half.iter().filter(|slot| slot.arm == arm).count()
        };
        assert!(half(0).abs_diff(30) <= 2, "seed {seed}: {}", half(0));
        assert!(half(2).abs_diff(15) <= 2, "seed {seed}: {}", half(2));
        for slot in &slots {
            let set = |arm: usize| [0, 0, 1, 1, 2, 2, 2][arm];
            let block = slots.iter().filter(|other| other.block == slot.block);
            assert!(block.clone().all(|other| set(other.arm) == set(slot.arm)));
            assert_eq!(block.count(), [2, 2, 3][set(slot.arm)]);
        }
        // Balance holds inside each set, whatever stands between its blocks.
        let of_second = measured.iter().filter(|slot| slot.arm == 2);
        let ab = of_second.filter(|slot| slot.place == Place::Ab).count();
        assert_eq!(ab, 15, "seed {seed}");
    }
}
