//! The monitor's own thread of thought: sample, watch, decide, act, measure.
//!
//! ```text
//!            trigger                two windows agree          the last action is done
//!   Idle ───────────────► Watching ───────────────────► Acting ───────────────► Settling
//!    ▲                     ▲ │  kept, too small, too dear   one action at a time    │
//!    └─────────────────────┼─┴──────────────────────────────────────── Measuring ◄──┘
//!                          └───────────────────────────────────────────── │ trigger
//! ```
//!
//! Where the load lies together in a small part of what was told apart, nothing would follow from it: no
//! cut there is known. It is told apart more finely there first, for a few windows ([`REFINEMENTS_MAX`]).
//! Where it moves on to the end of a table, no cut behind it pays, and none is forecast.
//! What may be chance is watched for as long again, once. That cores are slower or faster by a tenth is
//! left out ([`DRIFT`]), unless a change of throughput alone began it: neither balance nor mix told of
//! another load, so it may be a core that has changed, and what follows only from how fast the cores
//! are is watched for as long again too. A change that comes while the last repartitioning is being
//! measured ends the measuring: it is followed first.
//!
//! Everything happens in [`tick`], which never waits: an action that is queued is looked at again
//! in the next tick. Given the clock, the counters and the routing table it does the same again,
//! so the simulator steps it like any other thread.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::compare::{Places, agree, same_load};
use super::decide::{Outcome, Terms, Verdict, costs, decide};
use super::decision::{Decision, Told};
use super::gather::{Gathered, actions, forget, gather, refine};
use super::islands::{IslandSize, apply};
use super::model::{DRIFT, Trace, overload};
use super::plan::{Action, plan};
use super::report::advice;
use super::settings::MonitorSettings;
use super::speed::Speeds;
use super::trigger::{PartitionSample, Reason, Sample, Trigger};
use crate::engine::{PARTITIONS_PER_EXECUTOR, Shared, SubmitOptions, submit_on};
use crate::id::{ExecutorId, GroupId};
use crate::partition::SAMPLE_EVERY;
use crate::storage::KeyBuf;
use crate::submission::Submission;
use crate::table::REFERENCE_GROUP;
use crate::txn::{Cut, RepartitionKind, Repartitioning};

/// Samples in a window of watching.
const WINDOW_SAMPLES: u64 = 3;
/// Pairs of neighbouring windows that may disagree before the load is called unstable.
const WINDOWS_MAX: u32 = 12;
/// How often sub-partitions are drawn anew within one watch. Each time a hot range becomes a tenth of
/// what it was: four find two hundred rows among millions.
const REFINEMENTS_MAX: u32 = 5;
/// A repartitioning that brought less than this part of its forecast was a poor one.
const POOR: f64 = 0.25;
const HOLD_OFF_NANOS: u64 = 8_000_000_000;
const HOLD_OFF_DOUBLINGS_MAX: u32 = 5;
/// How often to look while an action is queued.
const ACTION_LOOK: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Default)]
pub(crate) struct Watch {
    trigger: Trigger,
    /// Those that it was evaluated by.
    settings: Option<MonitorSettings>,
    phase: Phase,
    next_sample: u64,
    served: Vec<ExecutorId>,
    topology: u64,
    /// Bounds that the monitor drew and may take away.
    own_cuts: BTreeSet<(GroupId, KeyBuf)>,
    decisions: u64,
    /// Repartitionings in a row that brought little, and until when the next one waits.
    poor: u32,
    held_off_until: u64,
    /// Mean time of an action, as a moving average.
    action_nanos: Option<f64>,
    islands: IslandSize,
    speeds: Speeds,
}

#[derive(Default)]
enum Phase {
    #[default]
    Idle,
    Watching {
        trigger: Triggered,
        until: u64,
        windows: Windows,
    },
    Acting(Box<Acting>),
    Settling {
        until: u64,
        done: Done,
    },
    Measuring {
        until: u64,
        began: (u64, u64),
        done: Done,
    },
}

/// The windows of a watch. What is gathered is counted from its beginning on.
#[derive(Default)]
struct Windows {
    /// Pairs that disagreed.
    disagreed: u32,
    /// Gathered when the first window of the pair began; nothing: with the watch.
    begin: Option<Box<Gathered>>,
    /// Gathered when it ended.
    first: Option<Box<Gathered>>,
}

impl Windows {
    /// What came in the pair by now, and in its first window if that has ended; `None` if its parts
    /// have other slices and cannot be told apart.
    fn pair(&self, now: &Gathered) -> Option<(Gathered, Option<Gathered>)> {
        let since = |gathered: &Gathered| match &self.begin {
            Some(begin) => gathered.since(begin),
            None => Some(gathered.clone()),
        };
        let first = match &self.first {
            Some(first) => Some(since(first)?),
            None => None,
        };
        Some((since(now)?, first))
    }
}

/// What began a watch.
#[derive(Clone, Copy)]
struct Triggered {
    reason: Reason,
    since: u64,
    /// Of all partitions, ever, by then.
    actions: u64,
    /// What was found may be chance, or the machine's: windows are twice as long.
    longer: bool,
    /// How much slower or faster cores may be with nothing to follow from it.
    drift: f64,
    /// How often sub-partitions were drawn anew.
    refinements: u32,
}

impl Triggered {
    /// How long a window of watching is.
    fn window_nanos(self, settings: &MonitorSettings) -> u64 {
        WINDOW_SAMPLES * settings.sample_interval_nanos * if self.longer { 2 } else { 1 }
    }

    /// Watches for a window from now on.
    fn watch(self, settings: &MonitorSettings, now: u64, windows: Windows) -> Phase {
        Phase::Watching { trigger: self, until: now + self.window_nanos(settings), windows }
    }
}

/// A repartitioning on its way.
struct Acting {
    actions: VecDeque<Action>,
    current: Option<(Action, Submission<Repartitioning>)>,
    reason: Reason,
    began: u64,
    next: u64,
    done: Done,
}

/// What is remembered of a repartitioning until it is measured.
struct Done {
    decision: u64,
    time_before: f64,
    predicted: f64,
    accepted: f64,
    /// Where the load lay.
    places: Places,
    /// How long it was watched, and will be measured; and by what differences between cores.
    nanos: u64,
    drift: f64,
}

/// Takes the next step if it is due; when to look again.
pub(crate) fn tick(shared: &Arc<Shared>) -> Duration {
    // Somebody further down the stack of a simulation, or another caller, is at it.
    let Some(mut watch) = shared.monitor.watch.try_lock() else { return ACTION_LOOK };
    let settings = shared.monitor.settings();
    let now = shared.clock.monotonic_nanos();
    if !settings.measures && !matches!(watch.phase, Phase::Acting(_)) {
        // A choice that has not proved itself does so when runs are measured again.
        watch.islands.disturbed();
        *watch = Watch {
            decisions: watch.decisions,
            own_cuts: std::mem::take(&mut watch.own_cuts),
            islands: std::mem::take(&mut watch.islands),
            speeds: std::mem::take(&mut watch.speeds),
            ..Watch::default()
        };
        return Duration::from_nanos(settings.sample_interval_nanos);
    }
    if watch.settings.replace(settings) != Some(settings) {
        // What was accepted by other settings is looked at again.
        watch.trigger.restart();
    }
    if watch.speeds.tick(shared, &settings, now) {
        // Other hardware than before, as if cores had come or gone.
        watch.topology += 1;
    }
    let phase = std::mem::take(&mut watch.phase);
    watch.phase = match phase {
        Phase::Idle => watch.look(shared, &settings, now),
        Phase::Watching { until, .. } if now < until => phase,
        Phase::Watching { trigger, windows, .. } => watch.window(shared, &settings, now, trigger, windows),
        Phase::Acting(acting) => watch.act(shared, &settings, now, acting),
        Phase::Settling { until, .. } if now < until => phase,
        Phase::Settling { done, .. } => {
            forget(shared);
            Phase::Measuring { until: now + done.nanos, began: (now, actions(shared)), done }
        }
        Phase::Measuring { until, began, done } => {
            watch.measure(shared, &settings, now, (until, began), done)
        }
    };
    let due = match &watch.phase {
        Phase::Idle => watch.next_sample,
        Phase::Watching { until, .. } | Phase::Settling { until, .. } => *until,
        Phase::Measuring { until, .. } => watch.next_sample.min(*until),
        Phase::Acting(acting) if acting.current.is_some() => return ACTION_LOOK,
        Phase::Acting(acting) => acting.next,
    };
    Duration::from_nanos(due.saturating_sub(now).clamp(100_000, settings.sample_interval_nanos.max(100_000)))
}

impl Watch {
    /// Idle: a sample when it is due, and what it triggers.
    fn look(&mut self, shared: &Arc<Shared>, settings: &MonitorSettings, now: u64) -> Phase {
        if now < self.next_sample {
            return Phase::Idle;
        }
        self.look_at_islands(shared, settings, now);
        match self.triggered(shared, settings, now) {
            Some(reason) => self.begin(shared, settings, now, reason),
            None => Phase::Idle,
        }
    }

    /// A sample if it is due, and what it triggers.
    fn triggered(&mut self, shared: &Shared, settings: &MonitorSettings, now: u64) -> Option<Reason> {
        if now < self.next_sample {
            return None;
        }
        self.next_sample = now + settings.sample_interval_nanos;
        let sample = self.sample(shared, now);
        self.trigger.sample(sample, settings)
    }

    /// Begins to watch.
    fn begin(&mut self, shared: &Arc<Shared>, settings: &MonitorSettings, now: u64, reason: Reason) -> Phase {
        let trigger = Triggered {
            reason,
            since: now,
            actions: actions(shared),
            longer: false,
            drift: DRIFT,
            refinements: 0,
        };
        if reason == Reason::Topology {
            // Partitions may have no home: that does not wait for a trace.
            let gathered = gather(shared, &self.own_cuts, settings.hot_key_share, false);
            if gathered.homeless && !gathered.cores.is_empty() {
                let verdict = self.evaluate(shared, settings, trigger.drift, &gathered, None);
                return self.conclude(shared, settings, now, trigger, &gathered, &verdict);
            }
        }
        forget(shared);
        trigger.watch(settings, now, Windows::default())
    }

    /// Measures what a repartitioning brought, until that is known or the load changes again.
    fn measure(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        (until, began): (u64, (u64, u64)),
        done: Done,
    ) -> Phase {
        if let Some(reason) = self.triggered(shared, settings, now) {
            self.measured(shared, settings, now, began, done);
            return self.begin(shared, settings, now, reason);
        }
        if now < until {
            return Phase::Measuring { until, began, done };
        }
        self.measured(shared, settings, now, began, done);
        Phase::Idle
    }

    /// Idle: what the size of the islands should be.
    fn look_at_islands(&mut self, shared: &Arc<Shared>, settings: &MonitorSettings, now: u64) {
        if !self.islands.is_due(now) {
            return;
        }
        let own_cuts = &self.own_cuts;
        let gathered = || gather(shared, own_cuts, settings.hot_key_share, false);
        let numbers = (actions(shared), self.decisions + 1);
        let looked = self.islands.look(shared, settings, now, numbers, &gathered);
        let decisions = &shared.monitor.decisions;
        if let Some(proved) = looked.proved {
            decisions.change(proved.decision, |decision| {
                decision.measured_gain = Some(proved.gain);
                decision.throughput_after = Some(proved.throughput);
            });
        }
        if let Some(asked) = looked.asked {
            self.decisions += 1;
            decisions.add(asked.decision);
            if let Some(size) = asked.size {
                apply(shared, size);
            }
        }
    }

    fn sample(&mut self, shared: &Shared, now: u64) -> Sample {
        let served: Vec<ExecutorId> = shared
            .executors()
            .iter()
            .map(|executor| executor.id)
            .filter(|id| shared.is_served(*id))
            .collect();
        if served != self.served {
            self.topology += 1;
            self.served = served;
        }
        let routing = shared.load_routing();
        // Of a group that is gone there is nothing to take away.
        self.own_cuts.retain(|(group, _)| !routing.routes(*group).is_empty());
        let groups = routing.groups().into_iter().filter(|group| *group != REFERENCE_GROUP);
        let mut partitions: Vec<PartitionSample> = groups
            .flat_map(|group| routing.routes(group))
            .map(|route| {
                let partition = route.partition;
                let actions = partition.actions.load(Ordering::Relaxed);
                let nanos = partition.sampled_nanos.load(Ordering::Relaxed) * SAMPLE_EVERY;
                PartitionSample {
                    partition: partition.id,
                    core: self.served.iter().position(|id| *id == partition.home()).unwrap_or(0),
                    actions,
                    nanos_each: (nanos as f64 / actions.max(1) as f64).max(1.0),
                }
            })
            .collect();
        partitions.sort_unstable_by_key(|sample| sample.partition);
        Sample { at_nanos: now, partitions, cores: self.served.len(), topology: self.topology }
    }

    /// The end of a window of watching.
    fn window(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        mut trigger: Triggered,
        mut windows: Windows,
    ) -> Phase {
        let all = gather(shared, &self.own_cuts, settings.hot_key_share, false);
        let Some((mut gathered, first)) = windows.pair(&all) else {
            forget(shared);
            return trigger.watch(
                settings,
                now,
                Windows { disagreed: windows.disagreed, ..Windows::default() },
            );
        };
        if gathered.cores.is_empty() {
            return Phase::Idle;
        }
        if gathered.homeless {
            let verdict = self.evaluate(shared, settings, trigger.drift, &gathered, None);
            return self.conclude(shared, settings, now, trigger, &gathered, &verdict);
        }
        let Some(first) = first else {
            windows.first = Some(Box::new(all));
            return trigger.watch(settings, now, windows);
        };
        if gathered.measured.samples < settings.samples_min {
            // The load has gone, or was hardly there.
            self.trigger.evaluated(settings, 0.0, false);
            return Phase::Idle;
        }
        if agree(&first.loads(), &gathered.loads(), gathered.measured.samples, settings) {
            let share_max = self.share_max(shared, &gathered);
            let coarse = gathered.coarse(share_max);
            if !coarse.is_empty() && trigger.refinements < REFINEMENTS_MAX {
                trigger.refinements += 1;
                let partitions: Vec<_> =
                    coarse.into_iter().map(|slice| gathered.partition_of(slice)).collect();
                refine(shared, &partitions);
                forget(shared);
                return trigger.watch(settings, now, Windows::default());
            }
            let mut both = gathered.windows(&first);
            if let Some(windows) = &mut both {
                gathered.settle_ends(windows);
            }
            let by = |drift| self.evaluate(shared, settings, drift, &gathered, both.as_ref());
            let acts = |drift| by(drift).outcome == Outcome::Repartition;
            let verdict = by(trigger.drift);
            let unsure = match verdict.outcome {
                Outcome::Chance => true,
                // The machine may be what has changed: on one with neighbours a core is slower for a
                // second or two. Where runs come is the load's, whatever they take.
                _ if trigger.reason != Reason::Throughput => false,
                Outcome::Repartition => !acts(f64::INFINITY),
                _ => acts(0.0),
            };
            if unsure && !trigger.longer {
                // Both together are the first window of a longer pair.
                trigger.longer = true;
                if trigger.reason == Reason::Throughput {
                    // What lasts as long as that is followed.
                    trigger.drift = 0.0;
                }
                windows.first = Some(Box::new(all));
                return trigger.watch(settings, now, windows);
            }
            return self.conclude(shared, settings, now, trigger, &gathered, &verdict);
        }
        if windows.disagreed < WINDOWS_MAX {
            // The load may have become another one in the first window: the second begins a pair.
            (trigger.longer, trigger.drift) = (false, DRIFT);
            let (disagreed, begin) = (windows.disagreed + 1, windows.first.take());
            return trigger.watch(settings, now, Windows { disagreed, begin, first: Some(Box::new(all)) });
        }
        let verdict = self.evaluate(shared, settings, trigger.drift, &gathered, None);
        self.tell(shared, now, trigger, &gathered, &verdict, Told::Unstable);
        self.trigger.evaluated(settings, overload_of(&gathered), true);
        Phase::Idle
    }

    /// What a trace says; `windows` are the two that it is made of, if they can be told apart.
    fn evaluate(
        &self,
        shared: &Shared,
        settings: &MonitorSettings,
        drift: f64,
        gathered: &Gathered,
        windows: Option<&[Trace; 2]>,
    ) -> Verdict {
        let terms = self.terms(shared, settings, gathered, drift);
        decide(&gathered.hardware, &gathered.trace, windows, &gathered.layout, &terms)
    }

    /// What part of the load one partition should have at most.
    fn share_max(&self, shared: &Shared, gathered: &Gathered) -> f64 {
        self.terms(shared, &shared.monitor.settings(), gathered, DRIFT).limits.share_max
    }

    fn terms(&self, shared: &Shared, settings: &MonitorSettings, gathered: &Gathered, drift: f64) -> Terms {
        let wanted = PARTITIONS_PER_EXECUTOR * shared.active_count();
        let runs = (gathered.measured.samples, gathered.evidence());
        let terms = Terms::of(gathered.cores.len(), wanted, settings, runs, drift);
        let action_nanos = self.action_nanos.unwrap_or(terms.action_nanos);
        Terms { action_nanos, homeless: gathered.homeless, ..terms }
    }

    /// Two windows agree, or nothing waits for them: what follows from what they say.
    fn conclude(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        trigger: Triggered,
        gathered: &Gathered,
        verdict: &Verdict,
    ) -> Phase {
        let told = match verdict.outcome {
            Outcome::Repartition if !settings.adapts => Told::Static,
            Outcome::Repartition if now < self.held_off_until && !gathered.homeless => Told::HeldOff,
            outcome => Told::Decided(outcome),
        };
        let decision = self.tell(shared, now, trigger, gathered, verdict, told);
        if told != Told::Decided(Outcome::Repartition) {
            self.trigger.evaluated(settings, overload_of(gathered), true);
            return Phase::Idle;
        }
        let accepted = overload(&gathered.hardware, &gathered.trace, &verdict.after.assignment());
        self.islands.disturbed();
        let done = Done {
            decision,
            time_before: verdict.costs_before.time,
            predicted: verdict.gain,
            accepted,
            places: gathered.places(),
            nanos: 2 * trigger.window_nanos(settings),
            drift: trigger.drift,
        };
        Phase::Acting(Box::new(Acting {
            actions: plan(gathered, &verdict.after).into(),
            current: None,
            reason: trigger.reason,
            began: now,
            next: now,
            done,
        }))
    }

    fn tell(
        &mut self,
        shared: &Shared,
        now: u64,
        trigger: Triggered,
        gathered: &Gathered,
        verdict: &Verdict,
        told: Told,
    ) -> u64 {
        self.decisions += 1;
        shared.monitor.show(gathered);
        let (reason, watched_nanos) = (trigger.reason, now.saturating_sub(trigger.since));
        let throughput = match actions(shared).saturating_sub(trigger.actions) {
            // Nothing was watched.
            0 => self.trigger.throughput(),
            done => done as f64 / (watched_nanos.max(1) as f64 / 1e9),
        };
        let decision = Decision {
            watched_nanos,
            interval_nanos: self.trigger.interval_nanos(),
            throughput,
            samples: gathered.measured.samples,
            before: verdict.costs_before,
            after: verdict.costs_after,
            predicted_gain: verdict.gain,
            noise: verdict.noise,
            price_nanos: verdict.price_nanos,
            advice: advice(gathered, self.share_max(shared, gathered)),
            ..Decision::new(self.decisions, shared.clock.wall_micros(), reason, told)
        };
        tracing::info!(
            decision = decision.id,
            reason = reason.name(),
            throughput = throughput.round(),
            imbalance = verdict.costs_before.imbalance,
            imbalance_after = verdict.costs_after.imbalance,
            synchronization = verdict.costs_before.synchronization,
            predicted_gain = verdict.gain,
            "monitor: {}",
            told.name()
        );
        shared.monitor.decisions.add(decision);
        self.decisions
    }

    /// One action after another, each through the queues of its partitions.
    fn act(
        &mut self,
        shared: &Arc<Shared>,
        settings: &MonitorSettings,
        now: u64,
        mut acting: Box<Acting>,
    ) -> Phase {
        let decisions = &shared.monitor.decisions;
        let id = acting.done.decision;
        if let Some((action, mut submission)) = acting.current.take() {
            let Some(completed) = submission.try_take() else {
                acting.current = Some((action, submission));
                return Phase::Acting(acting);
            };
            let worked = completed.outcome.result.is_ok() && completed.program.result.is_ok();
            if worked {
                self.did(shared, &action);
            }
            decisions.change(id, |decision| match action.kind() {
                _ if !worked => decision.refused += 1,
                RepartitionKind::Split => decision.splits += 1,
                RepartitionKind::Merge => decision.merges += 1,
                RepartitionKind::Move => decision.moves += 1,
                RepartitionKind::Regroup => {}
            });
            acting.next = now + settings.action_delay_nanos;
        }
        if now < acting.next {
            return Phase::Acting(acting);
        }
        while let Some(action) = acting.actions.pop_front() {
            // What somebody else has done meanwhile is done.
            let Some(change) = action.resolve(&shared.load_routing()) else { continue };
            let mut program = Repartitioning::new(change, acting.reason.name());
            program.decision = id;
            let submission = submit_on(shared, program, SubmitOptions::default());
            acting.current = Some((action, submission));
            return Phase::Acting(acting);
        }
        decisions.change(id, |decision| decision.acted_nanos = Some(now - acting.began));
        self.trigger.evaluated(settings, acting.done.accepted, true);
        self.next_sample = now + settings.sample_interval_nanos;
        Phase::Settling { until: now + settings.sample_interval_nanos, done: acting.done }
    }

    fn did(&mut self, shared: &Shared, action: &Action) {
        match action {
            Action::Cut { group, at: Cut::At(key), .. } => {
                self.own_cuts.insert((*group, key.clone()));
            }
            Action::Merge { group, at } => {
                self.own_cuts.remove(&(*group, at.clone()));
            }
            Action::Cut { .. } | Action::Move { .. } => {}
        }
        if let Some(last) = shared.repartitions.last() {
            let nanos = last.duration_nanos as f64;
            self.action_nanos = Some(self.action_nanos.map_or(nanos, |mean| 0.9 * mean + 0.1 * nanos));
        }
    }

    /// What a repartitioning brought, by a trace of afterwards.
    fn measured(
        &mut self,
        shared: &Shared,
        settings: &MonitorSettings,
        now: u64,
        (began, actions_before): (u64, u64),
        done: Done,
    ) {
        let gathered = gather(shared, &self.own_cuts, settings.hot_key_share, true);
        if gathered.hardware.cores.is_empty() {
            // The last thread is about to end.
            return;
        }
        shared.monitor.show(&gathered);
        let samples = gathered.measured.samples;
        if samples < settings.samples_min || !same_load(&done.places, &gathered.places(), samples, settings) {
            tracing::info!(decision = done.decision, "monitor: the load changed before that was measured");
            return;
        }
        let trace = gathered.trace.levelled(&gathered.hardware, &gathered.layout, done.drift);
        let found = costs(&gathered.hardware, &trace, &gathered.layout);
        let gain = done.time_before / found.time - 1.0;
        let seconds = now.saturating_sub(began).max(1) as f64 / 1e9;
        let throughput = actions(shared).saturating_sub(actions_before) as f64 / seconds;
        shared.monitor.decisions.change(done.decision, |decision| {
            decision.measured = Some(found);
            decision.measured_gain = Some(gain);
            decision.throughput_after = Some(throughput);
        });
        tracing::info!(
            decision = done.decision,
            predicted_gain = done.predicted,
            measured_gain = gain,
            throughput = throughput.round(),
            "monitor: measured"
        );
        if gain < done.predicted * POOR {
            self.poor = (self.poor + 1).min(HOLD_OFF_DOUBLINGS_MAX);
            if self.poor > 1 {
                self.held_off_until = now + (HOLD_OFF_NANOS << (self.poor - 2));
            }
        } else {
            self.poor = 0;
        }
    }
}

fn overload_of(gathered: &Gathered) -> f64 {
    overload(&gathered.hardware, &gathered.trace, &gathered.layout.assignment())
}
