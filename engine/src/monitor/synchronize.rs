//! The second search, repaired: partitions that meet come to one island.
//!
//! ATraPos's Algorithm 2 ([`super::thesis`]) switches the contents of cores, and keeps the balance
//! of the first search only if every core has one partition of the same weight. Here a part moves
//! alone to the emptiest core of the island, or is exchanged for the part there that is nearest in
//! load, and *balance is checked again after every switch*: the imbalance may not rise above what
//! the first search left, or a small share of the load.

use super::model::{Hardware, Layout, Meeting, Trace, imbalance, islands_of, meeting_cost, synchronization};

/// Steps of one search.
const STEPS_MAX: usize = 128;
/// Meetings that are tried, dearest first.
const MEETINGS_MAX: usize = 64;
/// A step must save so much of what all meetings cost.
const SAVING_MIN: f64 = 0.01;

/// A layout whose meetings cost less, with an imbalance of at most `imbalance_max` (or of the
/// given layout, if that is more).
pub fn synchronize(hardware: &Hardware, trace: &Trace, layout: &Layout, imbalance_max: f64) -> Layout {
    let mut layout = layout.clone();
    let islands = hardware.cores.iter().map(|core| core.island).max().unwrap_or(0) + 1;
    if islands < 2 {
        return layout;
    }
    let mut assignment = layout.assignment();
    let imbalance_max = imbalance_max.max(imbalance(hardware, trace, &assignment));
    let mut cost = synchronization(hardware, trace, &assignment);
    'search: for _ in 0..STEPS_MAX {
        for meeting in dearest(hardware, trace, &assignment) {
            let mut tried: Option<(f64, Layout)> = None;
            for island in islands_of(hardware, meeting, &assignment) {
                let Some(next) = gathered(hardware, trace, &layout, meeting, island) else { continue };
                let assigned = next.assignment();
                let next_cost = synchronization(hardware, trace, &assigned);
                let fits = imbalance(hardware, trace, &assigned) <= imbalance_max + 1e-9;
                if fits && tried.as_ref().is_none_or(|(least, _)| next_cost < *least) {
                    tried = Some((next_cost, next));
                }
            }
            if let Some((next_cost, next)) = tried
                && next_cost < cost * (1.0 - SAVING_MIN)
            {
                (layout, cost) = (next, next_cost);
                assignment = layout.assignment();
                continue 'search;
            }
        }
        break;
    }
    layout.assert_covers(trace, hardware);
    layout
}

/// The meetings that cost most now.
fn dearest<'t>(hardware: &Hardware, trace: &'t Trace, assignment: &[usize]) -> Vec<&'t Meeting> {
    let mut costs: Vec<(f64, &Meeting)> = trace
        .meetings
        .iter()
        .map(|meeting| (meeting_cost(hardware, meeting, assignment), meeting))
        .filter(|(cost, _)| *cost > 0.0)
        .collect();
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    costs.into_iter().take(MEETINGS_MAX).map(|(_, meeting)| meeting).collect()
}

/// The layout with all parts of a meeting on one island; `None` if one of them may not move.
fn gathered(
    hardware: &Hardware,
    trace: &Trace,
    layout: &Layout,
    meeting: &Meeting,
    island: usize,
) -> Option<Layout> {
    let mut next = layout.clone();
    let stays: Vec<usize> = meeting.slices.iter().map(|&slice| layout.part_of(slice)).collect();
    for &part in &stays {
        let from = next.parts[part].core;
        if hardware.cores[from].island == island {
            continue;
        }
        if next.parts[part].pinned {
            return None;
        }
        // Alone to each core of the island, or for each part that is there: what keeps the
        // balance best.
        let mut best: Option<(f64, usize, Option<usize>)> = None;
        let there = (0..hardware.cores.len()).filter(|&core| hardware.cores[core].island == island);
        for to in there {
            let others = next
                .parts
                .iter()
                .enumerate()
                .filter(|(at, other)| other.core == to && !other.pinned && !stays.contains(at));
            let options = std::iter::once(None).chain(others.map(|(at, _)| Some(at)));
            for with in options.collect::<Vec<_>>() {
                let mut tried = next.clone();
                tried.parts[part].core = to;
                if let Some(with) = with {
                    tried.parts[with].core = from;
                }
                let found = imbalance(hardware, trace, &tried.assignment());
                if best.is_none_or(|(least, ..)| found < least - 1e-9) {
                    best = Some((found, to, with));
                }
            }
        }
        let (_, to, with) = best?;
        next.parts[part].core = to;
        if let Some(with) = with {
            next.parts[with].core = from;
        }
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::model::{Part, Slice};
    use crate::random::RandomStream;

    fn part(table: usize, at: usize, core: usize) -> Part {
        Part { table, slices: at..at + 1, core, pinned: false, frozen: false, joins: true }
    }

    fn trace(loads: &[f64], meetings: &[(&[usize], f64)]) -> Trace {
        Trace {
            slices: loads
                .iter()
                .enumerate()
                .map(|(table, &load)| Slice { table, load, runs: load })
                .collect(),
            meetings: meetings
                .iter()
                .map(|&(slices, bytes)| Meeting { class: 1, slices: slices.to_vec(), count: 1.0, bytes })
                .collect(),
        }
    }

    fn layout(cores: &[usize]) -> Layout {
        Layout { parts: cores.iter().enumerate().map(|(at, &core)| part(at, at, core)).collect() }
    }

    #[test]
    fn partitions_that_meet_are_exchanged_onto_one_island() {
        let hardware = Hardware::uniform(2, 2);
        let trace = trace(&[10.0; 4], &[(&[0, 2], 100.0), (&[1, 3], 100.0)]);
        let found = synchronize(&hardware, &trace, &layout(&[0, 1, 2, 3]), 0.0);
        assert_eq!(synchronization(&hardware, &trace, &found.assignment()), 0.0);
        assert_eq!(imbalance(&hardware, &trace, &found.assignment()), 0.0);
    }

    #[test]
    fn balance_is_not_given_up_for_a_meeting() {
        // The one partner would double its island's load.
        let hardware = Hardware::uniform(2, 1);
        let trace = trace(&[10.0, 10.0], &[(&[0, 1], 100.0)]);
        let before = layout(&[0, 1]);
        assert_eq!(synchronize(&hardware, &trace, &before, 0.0), before);
        let allowed = synchronize(&hardware, &trace, &before, 20.0);
        assert_eq!(synchronization(&hardware, &trace, &allowed.assignment()), 0.0);
    }

    #[test]
    fn pinned_partners_are_come_to() {
        let hardware = Hardware::uniform(2, 2);
        let trace = trace(&[10.0; 4], &[(&[0, 2], 100.0)]);
        let mut before = layout(&[0, 1, 2, 3]);
        before.parts[0].pinned = true;
        let found = synchronize(&hardware, &trace, &before, 0.0);
        assert_eq!(found.parts[0].core, 0);
        assert_eq!(hardware.cores[found.parts[2].core].island, 0);
        before.parts[2].pinned = true;
        assert_eq!(synchronize(&hardware, &trace, &before, 0.0), before);
    }

    #[test]
    fn the_search_is_near_the_best_there_is() {
        let mut random = RandomStream::new(3);
        const INSTANCES: usize = 60;
        let (mut left, mut best_left, mut before_left) = (0.0, 0.0, 0.0);
        for _ in 0..INSTANCES {
            let hardware = Hardware::uniform(2, 2);
            let loads: Vec<f64> = (0..6).map(|_| 1.0 + random.below(4) as f64).collect();
            let pairs: Vec<(Vec<usize>, f64)> = (0..5)
                .map(|_| {
                    let (one, other) = (random.below(6) as usize, random.below(6) as usize);
                    (if one == other { vec![one] } else { vec![one, other] }, 1.0 + random.below(50) as f64)
                })
                .collect();
            let pairs: Vec<(&[usize], f64)> = pairs.iter().map(|(at, bytes)| (&at[..], *bytes)).collect();
            let trace = trace(&loads, &pairs);
            let before = layout(&[0, 1, 2, 3, 0, 2]);
            let bound = imbalance(&hardware, &trace, &before.assignment());
            let found = synchronize(&hardware, &trace, &before, bound);
            assert!(imbalance(&hardware, &trace, &found.assignment()) <= bound + 1e-9);
            let best = (0..4_usize.pow(6))
                .map(|number| (0..6).map(|at| number / 4_usize.pow(at) % 4).collect::<Vec<_>>())
                .filter(|assignment| imbalance(&hardware, &trace, assignment) <= bound + 1e-9)
                .map(|assignment| synchronization(&hardware, &trace, &assignment))
                .fold(f64::MAX, f64::min);
            let cost = synchronization(&hardware, &trace, &found.assignment());
            assert!(cost >= best - 1e-9, "better than the best");
            left += cost;
            best_left += best;
            before_left += synchronization(&hardware, &trace, &before.assignment());
        }
        println!(
            "of what meetings cost before, synchronize leaves {:.1} %, the best placement within the same \
             balance {:.1} %, over {INSTANCES} instances",
            100.0 * left / before_left,
            100.0 * best_left / before_left
        );
        assert!(left <= best_left + 0.25 * before_left);
    }
}
