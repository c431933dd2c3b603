//! PostgreSQL's match of a regular expression, and what its groups have matched.
//!
//! The library finds where the leftmost match begins, about which all agree. Where it ends, and where its
//! pieces do ([`super::regex_preference`]), is found here: an automaton of each piece tells all the places
//! where a match of it may end, or, backwards, begin; of those that leave the rest a match the preferred one
//! is taken. As there are no back-references, what fits the automata fits, and no choice has to be taken
//! back. So each piece costs two walks over what it is fitted to, whatever it is.
//!
//! The automata of an expression are kept for its next match, as long as they are not too large together: the
//! rest of an expression behind each of its groups is a piece, so that all of them may have the square of its
//! states.

use std::ops::Range;
use std::sync::Mutex;

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use super::regex_pace::Pace;
use super::regex_preference::{Kind, Piece, take_apart};
use crate::error::Result;
use crate::interrupt;
use crate::memory;

/// What a walk and the making of an automaton count as ([`interrupt::steps`]).
const STEPS_PER_WALK: usize = 64;
const STEPS_PER_AUTOMATON: usize = 1 << 12;

/// What an automaton keeps of the states that it has made.
const STATES_BYTES: usize = 1 << 18;

/// What the automata of an expression hold together between walks, unless one alone holds more.
const KEPT_BYTES_MAX: usize = 1 << 24;

/// See the module.
pub(super) struct Dissection {
    pieces: Vec<Piece>,
    expression: String,
    syntax: syntax::Config,
    kept: Mutex<Kept>,
}

/// The automata that no walk has taken.
struct Kept {
    /// What goes forwards over each piece, and backwards.
    automata: Vec<[Option<Box<Automaton>>; 2]>,
    /// What they hold.
    bytes: usize,
}

/// What tells all the matches of a piece that begin, or end, at one place.
struct Automaton {
    dfa: DFA,
    /// The states that walks have made so far.
    made: dfa::Cache,
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
        let automata = pieces.iter().map(|_| [None, None]).collect();
        let kept = Mutex::new(Kept { automata, bytes: 0 });
        Some(Box::new(Dissection { pieces, expression: expression.to_owned(), syntax, kept }))
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
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.take(piece, direction));
        let mut automaton = match kept {
            Some(kept) => kept,
            None => {
                interrupt::steps(STEPS_PER_AUTOMATON + 16 * self.pieces[piece].source.len())?;
                let made = Automaton::new(&self.written(piece), self.syntax, direction);
                let Some(made) = made else { return Ok(false) };
                interrupt::steps(made.bytes() / 4)?;
                made
            }
        };
        let walked = automaton.walk(direction, text, span, take);
        if let Ok(mut kept) = self.kept.lock() {
            kept.put(piece, direction, automaton);
        }
        walked
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

impl Kept {
    fn take(&mut self, piece: usize, direction: Direction) -> Option<Box<Automaton>> {
        let taken = self.automata[piece][direction as usize].take()?;
        self.bytes -= taken.bytes();
        Some(taken)
    }

    /// Keeps an automaton, and those that are there as far as all are not too large together.
    fn put(&mut self, piece: usize, direction: Direction, automaton: Box<Automaton>) {
        // Two walks at once have made one each.
        drop(self.take(piece, direction));
        let bytes = automaton.bytes();
        if self.bytes + bytes > KEPT_BYTES_MAX {
            self.automata.fill_with(|| [None, None]);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.automata[piece][direction as usize] = Some(automaton);
    }
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
        let made = dfa.create_cache();
        Some(Box::new(Automaton { dfa, made }))
    }

    /// What it holds.
    fn bytes(&self) -> usize {
        self.dfa.get_nfa().memory_usage() + self.made.memory_usage()
    }

    /// As [`Dissection::walk`] says.
    fn walk(
        &mut self,
        direction: Direction,
        text: &str,
        span: Range<usize>,
        mut take: impl FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        let Automaton { dfa, made } = self;
        let bytes = text.as_bytes();
        let input = Input::new(bytes).range(span.clone()).anchored(Anchored::Yes);
        let forwards = matches!(direction, Direction::Forwards);
        let start = match direction {
            Direction::Forwards => dfa.start_state_forward(made, &input),
            Direction::Backwards => dfa.start_state_reverse(made, &input),
        };
        let Ok(mut state) = start else { return Ok(false) };
        let mut pace = Pace::of(dfa, made);
        for done in 0..span.len() {
            pace.byte(made)?;
            // Between this byte and the one before it on the way.
            let place = if forwards { span.start + done } else { span.end - done };
            let byte = if forwards { bytes[place] } else { bytes[place - 1] };
            let Ok(next) = dfa.next_state(made, state, byte) else { return Ok(false) };
            state = next;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // States tell of a match one byte late.
                if text.is_char_boundary(place) && !take(place)? {
                    return Ok(true);
                }
            } else if state.is_dead() {
                return Ok(true);
            } else if state.is_quit() {
                return Ok(false);
            }
        }
        let (end, behind) = match direction {
            Direction::Forwards => (span.end, bytes.get(span.end)),
            Direction::Backwards => (span.start, span.start.checked_sub(1).map(|before| &bytes[before])),
        };
        let last = match behind {
            Some(byte) => dfa.next_state(made, state, *byte),
            None => dfa.next_eoi_state(made, state),
        };
        let Ok(state) = last else { return Ok(false) };
        if state.is_match() {
            take(end)?;
        }
        Ok(!state.is_quit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automata_hold_no_more_than_they_may() {
        // Each group has all the groups behind it as a piece of its own, with 250 states and more for each.
        const GROUPS: usize = 60;
        let expression = "(a{0,250}|b|ab)".repeat(GROUPS);
        let dissection = Dissection::of(&expression, syntax::Config::new()).unwrap();
        let text = "ab".repeat(GROUPS + 5);
        for _ in 0..2 {
            let end = dissection.end(&text, 0).unwrap().unwrap();
            assert_eq!(end, 2 * GROUPS);
            let groups = dissection.groups(&text, 0..end, GROUPS + 1).unwrap().unwrap();
            let pairs = (0..GROUPS).map(|number| Some(2 * number..2 * number + 2));
            assert_eq!(groups, std::iter::once(Some(0..end)).chain(pairs).collect::<Places>());
            let kept = dissection.kept.lock().unwrap();
            let held = kept.automata.iter().flatten().flatten().map(|automaton| automaton.bytes());
            assert_eq!(kept.bytes, held.sum::<usize>());
            assert!((1..=KEPT_BYTES_MAX).contains(&kept.bytes), "{}", kept.bytes);
        }
    }
}
