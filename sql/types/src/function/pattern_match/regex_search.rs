//! A compiled regular expression, and searches with it that can be ended on their way.
//!
//! The `regex` crate searches a text in one piece, and where an expression has more states than its
//! automaton's cache holds, each byte takes as long as there are states: megabytes of text are a minute
//! in which nobody is heard, as are kilobytes where the states are very many. So texts that are long for
//! their expression are gone through here, byte by byte, with the lazy automata of the same library: forwards
//! to where the leftmost match ends, then backwards to where it begins. Only the groups of that match are
//! asked of the library in one piece.
//!
//! These automata cannot tell empty matches within a character: the library takes such a search from the
//! beginning, in one piece.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use regex::Regex;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::hybrid::regex as lazy;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, meta};

use super::regex_captures::Dissection;
use super::regex_pace::Pace;
use crate::error::Result;

/// Texts with more bytes left than this are never searched in one piece.
const IN_ONE_PIECE: usize = 1 << 16;

/// Texts with no more left than this always are.
const SHORT: usize = 1 << 8;

/// So are those whose bytes, each by the states of the expression, are no more than this: a third of a second.
const WORK_IN_ONE_PIECE: usize = 1 << 25;

/// Expressions that are written in no more bytes than this and count nothing have few states.
const SMALL_EXPRESSION: usize = 1 << 10;

/// See the module.
pub struct Pattern {
    regex: Regex,
    translated: String,
    syntax: syntax::Config,
    /// What long texts are searched with; `None` inside where it cannot be made.
    long: OnceLock<Option<Box<Long>>>,
    /// What says where matches end; `None` inside where the library does.
    dissection: OnceLock<Option<Box<Dissection>>>,
}

struct Long {
    automata: lazy::Regex,
    groups: meta::Regex,
    /// The states that searches have made so far.
    made: Mutex<Option<lazy::Cache>>,
}

/// Where a walk over a text has led.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walked {
    /// No match.
    Past,
    /// The match ends, or begins, here.
    To(usize),
    /// To what the automaton cannot tell.
    Lost,
}

/// A match and its groups.
pub(super) enum Found<'t> {
    Whole { text: &'t str, captures: regex::Captures<'t> },
    Walked { text: &'t str, groups: Vec<Option<Range<usize>>> },
}

/// What a group, or the whole match, has matched.
#[derive(Clone, Copy)]
pub(in crate::function) struct Group<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Group<'t> {
    pub fn as_str(&self) -> &'t str {
        &self.text[self.start..self.end]
    }

    pub fn start(&self) -> usize {
        self.start
    }

    pub fn end(&self) -> usize {
        self.end
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Where PostgreSQL looks for the next match: at the end of this one, or a character behind it if it
    /// is empty.
    pub fn next_from(&self) -> Option<usize> {
        match self.is_empty() {
            true => self.text[self.end..].chars().next().map(|passed| self.end + passed.len_utf8()),
            false => Some(self.end),
        }
    }
}

impl<'t> Found<'t> {
    /// The groups and the whole match.
    pub fn count(&self) -> usize {
        match self {
            Found::Whole { captures, .. } => captures.len(),
            Found::Walked { groups, .. } => groups.len(),
        }
    }

    /// A group; 0 is the whole match.
    pub fn get(&self, number: usize) -> Option<Group<'t>> {
        let (text, range) = match self {
            Found::Whole { text, captures } => (*text, captures.get(number)?.range()),
            Found::Walked { text, groups } => (*text, groups.get(number)?.clone()?),
        };
        Some(Group { text, start: range.start, end: range.end })
    }
}

impl Pattern {
    /// `regex` is `translated` read by `syntax`.
    pub(in crate::function) fn new(regex: Regex, translated: String, syntax: syntax::Config) -> Pattern {
        Pattern { regex, translated, syntax, long: OnceLock::new(), dissection: OnceLock::new() }
    }

    /// The groups and the whole match.
    pub(super) fn groups_len(&self) -> usize {
        self.regex.captures_len()
    }

    /// Whether it matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        if let Some(long) = self.long(text.len()) {
            let end = long.walk(|long, made| long.forwards(made.forward_mut(), text, 0, true))?;
            if end != Walked::Lost {
                return Ok(end != Walked::Past);
            }
        }
        Ok(self.regex.is_match(text))
    }

    /// What the first group of the first match has matched: nothing where the match goes without it.
    /// `None`: there is no match.
    pub fn first_group<'t>(&self, text: &'t str) -> Result<Option<Option<&'t str>>> {
        Ok(self.captures_at(text, 0)?.map(|found| found.get(1).map(|group| group.as_str())))
    }

    /// The first match from a place on.
    pub(super) fn find_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Group<'t>>> {
        let Some(found) = self.library_finds_at(text, from)? else { return Ok(None) };
        let end = match self.dissection() {
            Some(dissection) => dissection.end(text, found.start)?,
            None => None,
        };
        Ok(Some(Group { end: end.unwrap_or(found.end), ..found }))
    }

    /// The library's first match from a place on: it begins where PostgreSQL's does.
    fn library_finds_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Group<'t>>> {
        if let Some(long) = self.long(text.len() - from)
            && let Some(found) = long.find(text, from)?
        {
            return Ok(found.map(|range| Group { text, start: range.start, end: range.end }));
        }
        let found = self.regex.find_at(text, from);
        Ok(found.map(|found| Group { text, start: found.start(), end: found.end() }))
    }

    /// The first match from a place on, with its groups.
    pub(super) fn captures_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Found<'t>>> {
        if let Some(dissection) = self.dissection() {
            let Some(begins) = self.library_finds_at(text, from)? else { return Ok(None) };
            if let Some(end) = dissection.end(text, begins.start)?
                && let Some(groups) = dissection.groups(text, begins.start..end, self.groups_len())?
            {
                return Ok(Some(Found::Walked { text, groups }));
            }
        }
        if let Some(long) = self.long(text.len() - from)
            && let Some(found) = long.find(text, from)?
        {
            let Some(range) = found else { return Ok(None) };
            if let Some(groups) = long.groups_of(text, range) {
                return Ok(Some(Found::Walked { text, groups }));
            }
        }
        let found = self.regex.captures_at(text, from);
        Ok(found.map(|captures| Found::Whole { text, captures }))
    }

    fn dissection(&self) -> Option<&Dissection> {
        self.dissection.get_or_init(|| Dissection::of(&self.translated, self.syntax)).as_deref()
    }

    /// What a text of which so many bytes are left is searched with, if not in one piece.
    fn long(&self, left_bytes: usize) -> Option<&Long> {
        let fits = left_bytes <= IN_ONE_PIECE;
        if left_bytes <= SHORT || fits && !self.may_have_many_states() {
            return None;
        }
        let long = self.long.get_or_init(|| Long::new(&self.translated, self.syntax)).as_deref()?;
        let work = long.automata.forward().get_nfa().states().len().saturating_mul(left_bytes);
        (!fits || work > WORK_IN_ONE_PIECE).then_some(long)
    }

    fn may_have_many_states(&self) -> bool {
        self.translated.len() > SMALL_EXPRESSION || self.translated.contains('{')
    }
}

impl Long {
    fn new(translated: &str, syntax: syntax::Config) -> Option<Box<Long>> {
        let config = dfa::Config::new().skip_cache_capacity_check(true);
        let automata = lazy::Regex::builder().syntax(syntax).dfa(config).build(translated).ok()?;
        let groups = meta::Regex::builder().syntax(syntax).build(translated).ok()?;
        Some(Box::new(Long { automata, groups, made: Mutex::new(None) }))
    }

    /// Lends a walk the states that are made already.
    fn walk<T>(&self, walk: impl FnOnce(&Long, &mut lazy::Cache) -> T) -> T {
        let kept = self.made.lock().ok().and_then(|mut made| made.take());
        let mut made = kept.unwrap_or_else(|| self.automata.create_cache());
        let walked = walk(self, &mut made);
        if let Ok(mut kept) = self.made.lock() {
            *kept = Some(made);
        }
        walked
    }

    /// The first match from a place on; nothing is known where a walk is lost.
    fn find(&self, text: &str, from: usize) -> Result<Option<Option<Range<usize>>>> {
        self.walk(|long, made| {
            let end = match long.forwards(made.forward_mut(), text, from, false)? {
                Walked::Past => return Ok(Some(None)),
                Walked::To(end) => end,
                Walked::Lost => return Ok(None),
            };
            Ok(match long.backwards(made.reverse_mut(), text, from, end)? {
                Walked::To(begin) => Some(Some(begin..end)),
                Walked::Past | Walked::Lost => None,
            })
        })
    }

    /// Where the leftmost match ends, or, if that is enough, where some match is seen to end first.
    fn forwards(&self, made: &mut dfa::Cache, text: &str, from: usize, first: bool) -> Result<Walked> {
        let (automaton, bytes) = (self.automata.forward(), text.as_bytes());
        let Ok(mut state) = automaton.start_state_forward(made, &Input::new(bytes).range(from..)) else {
            return Ok(Walked::Lost);
        };
        let mut found = Walked::Past;
        let mut pace = Pace::of(automaton, made);
        for (at, byte) in bytes.iter().enumerate().skip(from) {
            pace.byte(made)?;
            let Ok(next) = automaton.next_state(made, state, *byte) else { return Ok(Walked::Lost) };
            state = next;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // States tell of a match one byte late.
                found = whole(text, at);
                if first {
                    return Ok(found);
                }
            } else if state.is_dead() {
                return Ok(found);
            } else if state.is_quit() {
                return Ok(Walked::Lost);
            }
        }
        Ok(match automaton.next_eoi_state(made, state) {
            Ok(state) if state.is_match() => Walked::To(bytes.len()),
            Ok(_) => found,
            Err(_) => Walked::Lost,
        })
    }

    /// Where the match that ends at `end` begins.
    fn backwards(&self, made: &mut dfa::Cache, text: &str, from: usize, end: usize) -> Result<Walked> {
        let (automaton, bytes) = (self.automata.reverse(), text.as_bytes());
        let input = Input::new(bytes).range(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = automaton.start_state_reverse(made, &input) else { return Ok(Walked::Lost) };
        let mut found = Walked::Past;
        let mut pace = Pace::of(automaton, made);
        for at in (from..end).rev() {
            pace.byte(made)?;
            let Ok(next) = automaton.next_state(made, state, bytes[at]) else { return Ok(Walked::Lost) };
            state = next;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                found = Walked::To(at + 1);
            } else if state.is_dead() {
                return Ok(found);
            } else if state.is_quit() {
                return Ok(Walked::Lost);
            }
        }
        Ok(match last_step(automaton, made, state, bytes, from) {
            Some(state) if state.is_match() => Walked::To(from),
            Some(state) if state.is_quit() => Walked::Lost,
            Some(_) => found,
            None => Walked::Lost,
        })
    }

    /// The groups of a match that has been found.
    fn groups_of(&self, text: &str, found: Range<usize>) -> Option<Vec<Option<Range<usize>>>> {
        if self.groups.captures_len() == 1 {
            return Some(vec![Some(found)]);
        }
        let mut captures = self.groups.create_captures();
        self.groups.search_captures(&Input::new(text).range(found).anchored(Anchored::Yes), &mut captures);
        let groups =
            (0..captures.group_len()).map(|number| captures.get_group(number).map(|span| span.range()));
        captures.is_match().then(|| groups.collect())
    }
}

/// A match that ends here, unless this is within a character.
fn whole(text: &str, at: usize) -> Walked {
    if text.is_char_boundary(at) { Walked::To(at) } else { Walked::Lost }
}

/// A walk backwards ends with what stands before it, which assertions look at.
fn last_step(
    automaton: &DFA,
    made: &mut dfa::Cache,
    state: regex_automata::hybrid::LazyStateID,
    bytes: &[u8],
    from: usize,
) -> Option<regex_automata::hybrid::LazyStateID> {
    match from.checked_sub(1) {
        Some(before) => automaton.next_state(made, state, bytes[before]).ok(),
        None => automaton.next_eoi_state(made, state).ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::SqlState;
    use crate::function::SessionHost;
    use crate::function::pattern_match::pattern::regular_expression;
    use crate::interrupt::Watch;

    /// A session whose statement was cancelled.
    struct Cancelled;

    impl SessionHost for Cancelled {
        fn interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_search_with_very_many_states_is_ended_on_its_way() {
        // The text is short for any other expression: of this one a byte may cost all the states.
        let text = "ab".repeat(4_000);
        let compiled = regular_expression("((?:a|ab|b){0,250}){0,20}z", "").unwrap();
        let plain = regular_expression("((?:a|ab|b)*)*z", "").unwrap();
        let _watch = Watch::of(Arc::new(Cancelled));
        let ended = compiled.is_match(&text).unwrap_err();
        assert_eq!(ended.state(), SqlState::QUERY_CANCELED);
        assert!(compiled.captures_at(&text, 0).is_err() && compiled.find_at(&text, 0).is_err());
        assert_eq!(plain.is_match(&text), Ok(false));
    }

    /// A long text with a few words at its end.
    fn text(words: &str) -> String {
        format!("{}{words}", "lorem ipsum ".repeat(IN_ONE_PIECE / 8))
    }

    #[test]
    fn long_texts_have_the_matches_of_the_library() {
        let patterns = [
            "x(y+)(z)?",
            "^x",
            "z$",
            "[^a-z ]+",
            "ipsum x",
            "(é|y)(y*)",
            "q*",
            "nothing here",
            "\\mxyy",
            "y\\M",
            "m x.*",
            "(x|lorem)",
            "\\Z",
            "z\\s*$",
        ];
        for words in ["xyyz abcd", "é xyéy\nz", "", "abc\u{1F600}xyz é"] {
            let text = text(words);
            for pattern in patterns {
                let compiled = regular_expression(pattern, "").unwrap();
                assert_eq!(compiled.is_match(&text), Ok(compiled.regex.is_match(&text)), "{pattern} {words}");
                for from in [0, 5, text.len() - words.len(), 12 * (IN_ONE_PIECE / 100)] {
                    let ours = compiled.captures_at(&text, from).unwrap();
                    let theirs = compiled.regex.captures_at(&text, from);
                    let ours = ours.map(|found| {
                        (0..found.count())
                            .map(|number| found.get(number).map(|group| (group.start(), group.end())))
                            .collect::<Vec<_>>()
                    });
                    let theirs = theirs.map(|found| {
                        found
                            .iter()
                            .map(|group| group.map(|group| (group.start(), group.end())))
                            .collect::<Vec<_>>()
                    });
                    assert_eq!(ours, theirs, "{pattern} {words} from {from}");
                }
            }
        }
    }

    #[test]
    fn a_match_over_all_of_a_long_text_has_its_groups() {
        let text = text("xyz");
        let compiled = regular_expression("^(.*)(y)z", "").unwrap();
        let found = compiled.captures_at(&text, 0).unwrap().unwrap();
        let group = found.get(1).unwrap();
        assert_eq!((group.start(), group.end(), group.is_empty()), (0, text.len() - 2, false));
        assert_eq!(found.get(2).map(|group| group.as_str()), Some("y"));
    }
}
