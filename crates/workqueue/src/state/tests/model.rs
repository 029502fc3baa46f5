//! Random operations against a naive model of the same rules.

use std::time::Duration;

use kubestrata_api_types::Tick;

use super::super::{AddOptions, Ageing, Refused, State};
use crate::limiter::ExponentialBackoff;

/// The rules, as a list of keys that is searched from end to end.
#[derive(Default)]
struct Model {
    keys: Vec<Key>,
    next: u64,
    limit: usize,
}

#[derive(Clone, Copy)]
struct Key {
    key: u8,
    /// Since when ready or due, with order and priority.
    queued: Option<(u64, u64, i32)>,
    running: bool,
}

impl Model {
    fn add(&mut self, now: u64, key: u8, delay: u64, priority: i32) -> bool {
        self.next += 1;
        let order = self.next;
        let due = now + delay;
        let full = self.keys.len() >= self.limit;
        let Some(known) = self.keys.iter_mut().find(|known| known.key == key) else {
            if !full {
                self.keys.push(Key { key, queued: Some((due, order, priority)), running: false });
            }
            return !full;
        };
        known.queued = Some(match known.queued {
            None => (due, order, priority),
            Some((old, old_order, old_priority)) => {
                let raised = priority.max(old_priority);
                if old <= now {
                    let order =
                        if raised > old_priority && !known.running { order } else { old_order };
                    (old, order, raised)
                } else if due < old {
                    (due, order, raised)
                } else {
                    (old, old_order, raised)
                }
            }
        });
        true
    }

    /// Gives keys whose time has come their order: by time, then by the order in which they were added.
    fn promote(&mut self, before: u64, now: u64) {
        let mut due: Vec<_> = (0..self.keys.len())
            .filter(|&index| {
                self.keys[index].queued.is_some_and(|(at, ..)| at > before && at <= now)
            })
            .collect();
        due.sort_by_key(|&index| self.keys[index].queued);
        for index in due {
            self.next += 1;
            if let Some((_, order, _)) = &mut self.keys[index].queued {
                *order = self.next;
            }
        }
    }

    fn pop(&mut self, now: u64) -> Option<(u8, i32)> {
        let next = self
            .keys
            .iter_mut()
            .filter(|key| !key.running && key.queued.is_some_and(|(at, ..)| at <= now))
            .min_by_key(|key| key.queued.map(|(_, order, priority)| (-priority, order)))?;
        next.running = true;
        let (_, _, priority) = next.queued.take()?;
        Some((next.key, priority))
    }

    fn done(&mut self, now: u64, key: u8) {
        self.next += 1;
        let order = self.next;
        for known in self.keys.iter_mut().filter(|known| known.key == key && known.running) {
            known.running = false;
            if let Some((at, old, _)) = &mut known.queued
                && *at <= now
            {
                *old = order;
            }
        }
        self.keys.retain(|key| key.running || key.queued.is_some());
    }
}

/// A small generator, so that a failing seed can be run again.
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 1..=300_u64 {
        let mut rng = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ageing = Ageing { one_in: 0, ..Ageing::default() };
        let mut queue = State::new(Box::new(ExponentialBackoff::default()), 6, ageing);
        let mut model = Model { limit: 6, ..Model::default() };
        let mut now = 0;
        let mut running = Vec::new();
        for step in 0..400 {
            let before = now;
            now += random(&mut rng, 4) * random(&mut rng, 3);
            let tick = Tick::from_origin(Duration::from_millis(now));
            queue.promote(tick);
            model.promote(before, now);
            let key = random(&mut rng, 8) as u8;
            match random(&mut rng, 5) {
                0 | 1 => {
                    let delay = random(&mut rng, 3) * random(&mut rng, 9);
                    let priority = random(&mut rng, 3) as i32 - 1;
                    let options =
                        AddOptions::new().after(Duration::from_millis(delay)).priority(priority);
                    let added = queue.add(tick, &key, options);
                    let expected = model.add(now, key, delay, priority);
                    assert_eq!(added != Err(Refused::Full), expected, "seed {seed} step {step}");
                }
                2 | 3 => {
                    let popped = queue.pop(tick).map(|popped| (popped.key, popped.priority));
                    assert_eq!(popped, model.pop(now), "seed {seed} step {step}");
                    running.extend(popped.map(|(key, _)| key));
                }
                _ if running.is_empty() => {
                    assert_eq!(queue.done(tick, &key), None);
                }
                _ => {
                    let index = random(&mut rng, running.len() as u64) as usize;
                    let key = running.swap_remove(index);
                    assert!(queue.done(tick, &key).is_some());
                    model.done(now, key);
                }
            }
            assert_eq!(queue.total(), model.keys.len(), "seed {seed} step {step}");
            assert_eq!(queue.running(), running.len(), "seed {seed} step {step}");
        }
    }
}
