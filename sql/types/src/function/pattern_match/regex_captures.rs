//! PostgreSQL's match of a regular expression, and what its groups have matched.
//!
//! The library finds where the leftmost match begins, about which all agree. Where it ends, and where its
//! pieces do ([`super::regex_preference`]), is found here: an automaton of each piece tells all the places
//! where a match of it may end, or, backwards, begin; of those that leave the rest a match the preferred one
//! is taken. As there are no back-references, what fits the automata fits, and no choice has to be taken
//! back. So each piece costs two walks over what it is fitted to, whatever it is.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use super::regex_preference::{Kind, Piece, take_apart};
use crate::error::Result;
use crate::interrupt;
use crate::memory;

/// Bytes between two looks whether to go on.
const BYTES_PER_LOOK: usize = 1 << 12;

/// What a byte, a walk and the making of an automaton count as ([`interrupt::steps`]).
const STEPS_PER_BYTE: usize = 8;
const STEPS_PER_WALK: usize = 64;
const STEPS_PER_AUTOMATON: usize = 1 << 12;

/// What an automaton keeps of the states that it has made.
const STATES_BYTES: usize = 1 << 18;

/// See the module.
pub(super) struct Dissection {
    pieces: Vec<Piece>,
    expression: String,
    syntax: syntax::Config,
    /// What goes forwards over each piece, and backwards; `None` inside where it cannot be made.
    automata: Vec<[OnceLock<Option<Box<Automaton>>>; 2]>,
}

/// What tells all the matches of a piece that begin, or end, at one place.
struct Automaton {
    dfa: DFA,
    /// The states that walks have made so far.
    made: Mutex<Option<dfa::Cache>>,
}

#[derive(Clone, Copy)]
enum Direction {
    Forwards,
    Backwards,
}

/// Where every group, and the whole match as the first of them, has matched.
type Places = Vec<Option<Range<usize>>>;

impl Dissection {
    /// Of an expression that `syntax` reads; `None` where the library's matches are PostgreSQL's.
    pub fn of(expression: &str, syntax: syntax::Config) -> Option<Box<Dissection>> {
        let pieces = take_apart(expression, syntax.get_nest_limit())?;
        let automata = pieces.iter().map(|_| [OnceLock::new(), OnceLock::new()]).collect();
        Some(Box::new(Dissection { pieces, expression: expression.to_owned(), syntax, automata }))
    }

    /// The whole expression.
    fn whole(&self) -> usize {
        self.pieces.len() - 1
    }

    /// Where the match that begins at `from` ends; `None` where that cannot be told.
    pub fn end(&self, text: &str, from: usize) -> Result<Option<usize>> {
        let shorter = self.pieces[self.whole()].traits.prefers_shorter();
        let mut end = None;
        let told = self.walk(self.whole(), Direction::Forwards, text, from..text.len(), |at| {
            end = Some(at);
            Ok(!shorter)
        })?;
        Ok(end.filter(|_| told))
    }

    /// What the groups of a match have matched, of which there are `count` with the whole; `None` where that
    /// cannot be told.
    pub fn groups(&self, text: &str, found: Range<usize>, count: usize) -> Result<Option<Places>> {
        let mut groups: Places = vec![None; count];
        if let Some(whole) = groups.first_mut() {
            *whole = Some(found.clone());
        }
        let mut left = vec![(self.whole(), found)];
        while let Some((number, span)) = left.pop() {
            let piece = &self.pieces[number];
            if !piece.traits.captures() {
                continue;
            }
            if let Some(place) = piece.group.and_then(|group| groups.get_mut(group)) {
                *place = Some(span.clone());
            }
            match &piece.kind {
                Kind::Plain => {}
                Kind::Around(inner) => left.push((*inner, span)),
                Kind::Sequence(first, second) => {
                    let Some(middle) = self.middle(*first, *second, text, &span)? else { return Ok(None) };
                    left.push((*first, span.start..middle));
                    left.push((*second, middle..span.end));
                }
                Kind::Alternatives(branches) => {
                    let Some(branch) = self.branch(branches, text, &span)? else { return Ok(None) };
                    left.push((branch, span));
                }
                // Nothing is one round of nothing, if it can be and the body does not prefer the shortest.
                Kind::Rounds(body, _) if span.is_empty() => {
                    if !self.pieces[*body].traits.prefers_shorter()
                        && let Some(body) = self.branch(&[*body], text, &span)?
                    {
                        left.push((body, span));
                    }
                }
                Kind::Rounds(body, most) => {
                    let Some(last) = self.last_round(number, *body, *most, text, &span)? else {
                        return Ok(None);
                    };
                    left.push((*body, last));
                }
            }
        }
        Ok(Some(groups))
    }

    /// Where the first of two pieces ends that match a span.
    fn middle(&self, first: usize, second: usize, text: &str, span: &Range<usize>) -> Result<Option<usize>> {
        let Some(mut begins) = self.begins(second, text, span)? else { return Ok(None) };
        let shorter = self.pieces[first].traits.prefers_shorter();
        let mut middle = None;
        let told = self.walk(first, Direction::Forwards, text, span.clone(), |at| {
            while begins.last().is_some_and(|begin| *begin < at) {
                begins.pop();
            }
            if begins.last() == Some(&at) {
                middle = Some(at);
                return Ok(!shorter);
            }
            Ok(!begins.is_empty())
        })?;
        Ok(middle.filter(|_| told))
    }

    /// The first of some alternatives that matches a span.
    fn branch(&self, branches: &[usize], text: &str, span: &Range<usize>) -> Result<Option<usize>> {
        for branch in branches {
            let mut fits = false;
            let told = self.walk(*branch, Direction::Forwards, text, span.clone(), |at| {
                fits = at == span.end;
                Ok(true)
            })?;
            if !told {
                return Ok(None);
            }
            if fits {
                return Ok(Some(*branch));
            }
        }
        Ok(None)
    }

    /// The last of the rounds that match a span, which is not empty. None of them is empty, and each is what
    /// the body prefers, as long as the rest can be matched in the rounds that are left.
    fn last_round(
        &self,
        number: usize,
        body: usize,
        most: Option<u32>,
        text: &str,
        span: &Range<usize>,
    ) -> Result<Option<Range<usize>>> {
        let Some(begins) = self.begins(number, text, span)? else { return Ok(None) };
        let needed = match most {
            None => None,
            Some(most) => {
                let Some(needed) = self.rounds_needed(body, &begins, text, span)? else { return Ok(None) };
                Some((most, needed))
            }
        };
        let shorter = self.pieces[body].traits.prefers_shorter();
        let (mut at, mut done) = (span.start, 0_u32);
        while at < span.end {
            let mut next = None;
            let told = self.walk(body, Direction::Forwards, text, at..span.end, |end| {
                if end == at {
                    return Ok(true);
                }
                let Some(place) = place_in(&begins, end) else { return Ok(true) };
                let fits = match &needed {
                    None => true,
                    Some((most, needed)) => needed[place].saturating_add(done) < *most,
                };
                if fits {
                    next = Some(end);
                }
                Ok(!fits || !shorter)
            })?;
            let Some(end) = next.filter(|_| told) else { return Ok(None) };
            if end == span.end {
                return Ok(Some(at..end));
            }
            at = end;
            done = done.saturating_add(1);
        }
        Ok(None)
    }

    /// How many rounds of a body each of these places needs at least to come to the end of the span.
    fn rounds_needed(
        &self,
        body: usize,
        begins: &[usize],
        text: &str,
        span: &Range<usize>,
    ) -> Result<Option<Vec<u32>>> {
        let mut needed: Vec<u32> = Vec::new();
        for begin in begins {
            let mut fewest = if *begin == span.end { 0 } else { u32::MAX };
            let told = self.walk(body, Direction::Forwards, text, *begin..span.end, |end| {
                // Places further behind have their numbers already.
                if let Some(more) = place_in(begins, end).and_then(|place| needed.get(place)) {
                    fewest = fewest.min(more.saturating_add(1));
                }
                Ok(true)
            })?;
            if !told {
                return Ok(None);
            }
            memory::push(&mut needed, fewest)?;
        }
        Ok(Some(needed))
    }

    /// Where the matches of a piece begin that end where the span does, the last first.
    fn begins(&self, piece: usize, text: &str, span: &Range<usize>) -> Result<Option<Vec<usize>>> {
        let mut begins = Vec::new();
        let told = self.walk(piece, Direction::Backwards, text, span.clone(), |at| {
            memory::push(&mut begins, at)?;
            Ok(true)
        })?;
        Ok(told.then_some(begins))
    }

    /// Calls `take` with each place where a match of a piece ends that begins where the span does, or the other
    /// way around, in the walk's order, until it says that this is enough. False where something stays unknown.
    fn walk(
        &self,
        piece: usize,
        direction: Direction,
        text: &str,
        span: Range<usize>,
        take: impl FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        interrupt::steps(STEPS_PER_WALK)?;
        let automaton = &self.automata[piece][direction as usize];
        if automaton.get().is_none() {
            interrupt::steps(STEPS_PER_AUTOMATON + 16 * self.pieces[piece].source.len())?;
        }
        let made = automaton.get_or_init(|| Automaton::new(&self.written(piece), self.syntax, direction));
        match made {
            Some(automaton) => automaton.walk(direction, text, span, take),
            None => Ok(false),
        }
    }

    /// A piece as an expression of its own.
    fn written(&self, piece: usize) -> String {
        let piece = &self.pieces[piece];
        let source = &self.expression[piece.source.clone()];
        match piece.times {
            None => source.to_owned(),
            Some((least, None)) => format!("(?:{source}){{{least},}}"),
            Some((least, Some(most))) => format!("(?:{source}){{{least},{most}}}"),
        }
    }
}

/// The number of a place in a list that goes from the last to the first.
fn place_in(begins: &[usize], place: usize) -> Option<usize> {
    begins.binary_search_by(|begin| place.cmp(begin)).ok()
}

impl Automaton {
    fn new(expression: &str, syntax: syntax::Config, direction: Direction) -> Option<Box<Automaton>> {
        let config = dfa::Config::new()
            .match_kind(MatchKind::All)
            .cache_capacity(STATES_BYTES)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder()
            .syntax(syntax)
            .thompson(thompson::Config::new().reverse(matches!(direction, Direction::Backwards)))
            .configure(config)
            .build(expression)
            .ok()?;
        Some(Box::new(Automaton { dfa, made: Mutex::new(None) }))
    }

    /// As [`Dissection::walk`] says; lends the walk the states that are made already.
    fn walk(
        &self,
        direction: Direction,
        text: &str,
        span: Range<usize>,
        take: impl FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        let kept = self.made.lock().ok().and_then(|mut made| made.take());
        let mut made = kept.unwrap_or_else(|| self.dfa.create_cache());
        let walked = match direction {
            Direction::Forwards => self.forwards(&mut made, text, span, take),
            Direction::Backwards => self.backwards(&mut made, text, span, take),
        };
        if let Ok(mut kept) = self.made.lock() {
            *kept = Some(made);
        }
        walked
    }

    fn forwards(
        &self,
        made: &mut dfa::Cache,
        text: &str,
        span: Range<usize>,
        mut take: impl FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        let bytes = text.as_bytes();
        let input = Input::new(bytes).range(span.clone()).anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state_forward(made, &input) else { return Ok(false) };
        let mut left = BYTES_PER_LOOK;
        for at in span.clone() {
            look(&mut left)?;
            let Ok(next) = self.dfa.next_state(made, state, bytes[at]) else { return Ok(false) };
            state = next;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // States tell of a match one byte late.
                if text.is_char_boundary(at) && !take(at)? {
                    return Ok(true);
                }
            } else if state.is_dead() {
                return Ok(true);
            } else if state.is_quit() {
                return Ok(false);
            }
        }
        let last = match bytes.get(span.end) {
            Some(byte) => self.dfa.next_state(made, state, *byte),
            None => self.dfa.next_eoi_state(made, state),
        };
        let Ok(state) = last else { return Ok(false) };
        if state.is_match() {
            take(span.end)?;
        }
        Ok(!state.is_quit())
    }

    fn backwards(
        &self,
        made: &mut dfa::Cache,
        text: &str,
        span: Range<usize>,
        mut take: impl FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        let bytes = text.as_bytes();
        let input = Input::new(bytes).range(span.clone()).anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state_reverse(made, &input) else { return Ok(false) };
        let mut left = BYTES_PER_LOOK;
        for at in span.clone().rev() {
            look(&mut left)?;
            let Ok(next) = self.dfa.next_state(made, state, bytes[at]) else { return Ok(false) };
            state = next;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                if text.is_char_boundary(at + 1) && !take(at + 1)? {
                    return Ok(true);
                }
            } else if state.is_dead() {
                return Ok(true);
            } else if state.is_quit() {
                return Ok(false);
            }
        }
        let last = match span.start.checked_sub(1) {
            Some(before) => self.dfa.next_state(made, state, bytes[before]),
            None => self.dfa.next_eoi_state(made, state),
        };
        let Ok(state) = last else { return Ok(false) };
        if state.is_match() {
            take(span.start)?;
        }
        Ok(!state.is_quit())
    }
}

/// Now and then, whether to go on.
fn look(left: &mut usize) -> Result<()> {
    *left -= 1;
    if *left == 0 {
        *left = BYTES_PER_LOOK;
        interrupt::steps(BYTES_PER_LOOK * STEPS_PER_BYTE)?;
    }
    Ok(())
}
