//! How PostgreSQL takes a regular expression apart to say what its groups have matched.
//!
//! Its rule (the manual, 9.7.3.5): a match begins as early as it can; from there it is the longest one, or
//! the shortest, as the expression prefers; within it each piece in turn is as long, or as short, as the
//! piece prefers while the rest still fits. A quantified atom prefers what its quantifier says, a branch what
//! its first atom with a preference does, an alternation the longest. The `regex` crate tries things in
//! order instead, as Perl does. [`take_apart`] cuts an expression into PostgreSQL's pieces (its regcomp.c
//! has the same tree, made in the same way); [`super::regex_captures`] fits a match to them.

use std::ops::Range;

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Ast, Group, GroupKind, RepetitionKind, RepetitionRange, Span};

/// Expressions of more pieces than this keep the crate's rule: each piece may cost two automata.
const PIECES_MAX: usize = 2_000;

/// So do those with more groups one within the other, or one after the other: making the pieces recurses.
const DEPTH_MAX: usize = 250;

/// What a piece prefers, and whether its parts matter.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    const LONGER: Traits = Traits(1);
    const SHORTER: Traits = Traits(2);
    /// Parts of it prefer this, others that.
    const MIXED: Traits = Traits(4);
    const CAPTURES: Traits = Traits(8);

    /// Whether it shall match as little as it can.
    pub fn prefers_shorter(self) -> bool {
        self.has(Traits::SHORTER)
    }

    /// Whether it is a group, or has groups within.
    pub fn captures(self) -> bool {
        self.has(Traits::CAPTURES)
    }

    fn has(self, asked: Traits) -> bool {
        self.0 & asked.0 != 0
    }

    fn and(self, more: Traits) -> Traits {
        Traits(self.0 | more.0)
    }

    fn preference(self) -> Traits {
        Traits(self.0 & (Traits::LONGER.0 | Traits::SHORTER.0))
    }

    /// What remains of parts' traits for what holds them: no preference, but that they differ in it.
    fn of_parts(self) -> Traits {
        let differ = self.has(Traits::LONGER) && self.has(Traits::SHORTER);
        let kept = Traits(self.0 & !(Traits::LONGER.0 | Traits::SHORTER.0));
        if differ { kept.and(Traits::MIXED) } else { kept }
    }

    /// The traits of a sequence: it prefers what its first part with a preference does.
    fn followed_by(self, later: Traits) -> Traits {
        let first = if self.preference() == Traits::default() { later } else { self };
        self.and(later).of_parts().and(first.preference())
    }

    /// Whether one automaton cannot stand for it all.
    fn parts_matter(self) -> bool {
        self.has(Traits::MIXED.and(Traits::CAPTURES))
    }
}

/// What a piece consists of; the numbers are those of other pieces.
pub(in crate::function) enum Kind {
    /// Nothing whose place would matter.
    Plain,
    /// A group around a group.
    Around(usize),
    Sequence(usize, usize),
    Alternatives(Vec<usize>),
    /// A body that has groups and may be left out, with the most rounds.
    Rounds(usize, Option<u32>),
}

/// A piece of an expression.
pub(super) struct Piece {
    pub kind: Kind,
    /// The group that it is.
    pub group: Option<usize>,
    pub traits: Traits,
    /// Where it is written.
    pub source: Range<usize>,
    /// How often it stands there, if not once: at least, and at most.
    pub times: Option<(u32, Option<u32>)>,
}

/// An expression, read as the `regex` crate reads it, in pieces: the last is the whole. `None` where the
/// crate's matches are PostgreSQL's anyway.
pub(super) fn take_apart(expression: &str, nest_limit: u32) -> Option<Vec<Piece>> {
    let ast = ParserBuilder::new().nest_limit(nest_limit).build().parse(expression).ok()?;
    if measure(&ast).is_some() {
        return None;
    }
    let mut builder = Builder { pieces: Vec::new(), depth: 0 };
    let whole = builder.alternatives(&ast)?;
    // What was tried behind it is not part of it.
    builder.pieces.truncate(whole + 1);
    Some(builder.pieces)
}

/// An expression of which at most one part varies in length, by the rounds of something that has one length.
/// What matches a given text does so in one way, and more rounds are a longer match: so trying in order comes
/// to PostgreSQL's answer.
#[derive(Clone, Copy, Default)]
struct Measure {
    /// In characters, without what varies.
    width: u32,
    varies: bool,
    lazy: bool,
    alternatives: bool,
    groups: bool,
}

fn measure(ast: &Ast) -> Option<Measure> {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => Some(Measure::default()),
        Ast::Literal(_) | Ast::Dot(_) | Ast::ClassUnicode(_) | Ast::ClassPerl(_) | Ast::ClassBracketed(_) => {
            Some(Measure { width: 1, ..Measure::default() })
        }
        Ast::Group(group) => {
            let inner = measure(&group.ast)?;
            let captures = matches!(group.kind, GroupKind::CaptureIndex(_));
            Some(Measure { groups: inner.groups || captures, ..inner })
        }
        Ast::Repetition(repetition) => {
            let body = measure(&repetition.ast)?;
            if body.varies || body.width == 0 || body.groups && body.alternatives {
                return None;
            }
            let times = match repetition.op.kind {
                RepetitionKind::Range(RepetitionRange::Exactly(times)) => Some(times),
                _ => None,
            };
            let width = body.width.checked_mul(times.unwrap_or(1))?;
            let lazy = times.is_none() && !repetition.greedy;
            // An alternation would prefer the longest first.
            (!lazy || !body.alternatives).then_some(Measure { width, varies: times.is_none(), lazy, ..body })
        }
        Ast::Concat(sequence) => {
            let mut whole = Measure::default();
            for part in &sequence.asts {
                let part = measure(part)?;
                if whole.varies && part.varies {
                    return None;
                }
                whole = Measure {
                    width: whole.width.checked_add(part.width)?,
                    varies: whole.varies || part.varies,
                    lazy: whole.lazy || part.lazy,
                    alternatives: whole.alternatives || part.alternatives,
                    groups: whole.groups || part.groups,
                };
            }
            (!whole.lazy || !whole.alternatives).then_some(whole)
        }
        Ast::Alternation(alternation) => {
            let mut whole: Option<Measure> = None;
            for branch in &alternation.asts {
                let branch = measure(branch)?;
                if branch.varies || whole.is_some_and(|whole| whole.width != branch.width) {
                    return None;
                }
                let groups = branch.groups || whole.is_some_and(|whole| whole.groups);
                whole = Some(Measure { alternatives: true, groups, ..branch });
            }
            whole
        }
    }
}

/// A quantified atom.
struct Atom<'a> {
    ast: &'a Ast,
    least: u32,
    most: Option<u32>,
    preference: Traits,
    /// Whether the atom itself is a group.
    is_group: bool,
}

impl<'a> Atom<'a> {
    /// The atom of a branch's item; none of a constraint, and of what stands there no times.
    fn of(item: &'a Ast) -> Option<Atom<'a>> {
        let (ast, least, most, preference) = match item {
            Ast::Repetition(repetition) => {
                let (least, most, prefers) = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne => (0, Some(1), true),
                    RepetitionKind::ZeroOrMore => (0, None, true),
                    RepetitionKind::OneOrMore => (1, None, true),
                    RepetitionKind::Range(RepetitionRange::Exactly(times)) => (*times, Some(*times), false),
                    RepetitionKind::Range(RepetitionRange::AtLeast(least)) => (*least, None, true),
                    RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => {
                        (*least, Some(*most), true)
                    }
                };
                let preference = match (prefers, repetition.greedy) {
                    (false, _) => Traits::default(),
                    (true, true) => Traits::LONGER,
                    (true, false) => Traits::SHORTER,
                };
                (&*repetition.ast, least, most, preference)
            }
            _ => (item, 1, Some(1), Traits::default()),
        };
        let is_group = match ast {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => return None,
            Ast::Group(group) => match &group.kind {
                // How word boundaries are written.
                GroupKind::NonCapturing(flags) if !flags.items.is_empty() => return None,
                GroupKind::NonCapturing(_) => false,
                GroupKind::CaptureIndex(_) | GroupKind::CaptureName { .. } => true,
            },
            _ => false,
        };
        (most != Some(0)).then_some(Atom { ast, least, most, preference, is_group })
    }
}

fn place(span: &Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

/// Makes the pieces; each method returns the number of the one that it has made, or none where there are too
/// many.
struct Builder {
    pieces: Vec<Piece>,
    depth: usize,
}

impl Builder {
    fn add(&mut self, kind: Kind, traits: Traits, source: Range<usize>) -> Option<usize> {
        if self.pieces.len() >= PIECES_MAX {
            return None;
        }
        self.pieces.push(Piece { kind, group: None, traits, source, times: None });
        Some(self.pieces.len() - 1)
    }

    fn traits(&self, piece: usize) -> Traits {
        self.pieces[piece].traits
    }

    fn alternatives(&mut self, ast: &Ast) -> Option<usize> {
        let Ast::Alternation(alternation) = ast else { return self.branch(ast) };
        let before = self.pieces.len();
        let mut traits = Traits::LONGER;
        let mut branches = Vec::with_capacity(alternation.asts.len());
        for branch in &alternation.asts {
            let branch = self.branch(branch)?;
            traits = traits.and(traits.and(self.traits(branch)).of_parts());
            branches.push(branch);
        }
        if traits.parts_matter() {
            return self.add(Kind::Alternatives(branches), traits, place(ast.span()));
        }
        self.pieces.truncate(before);
        self.add(Kind::Plain, traits, place(ast.span()))
    }

    fn branch(&mut self, ast: &Ast) -> Option<usize> {
        let items = match ast {
            Ast::Concat(sequence) => &sequence.asts[..],
            Ast::Empty(_) => &[],
            _ => std::slice::from_ref(ast),
        };
        self.sequence(items, place(ast.span()))
    }

    /// A branch, or what is left of one.
    fn sequence(&mut self, items: &[Ast], source: Range<usize>) -> Option<usize> {
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let made = self.sequence_of(items, source);
        self.depth -= 1;
        made
    }

    /// What needs no taking apart is gathered in front, until an atom does.
    fn sequence_of(&mut self, items: &[Ast], source: Range<usize>) -> Option<usize> {
        let mut so_far = Traits::default();
        for (number, item) in items.iter().enumerate() {
            let Some(atom) = Atom::of(item) else { continue };
            let before = self.pieces.len();
            let body = match atom.ast {
                Ast::Group(group) => Some(self.group(group)?),
                _ => None,
            };
            let traits = body.map_or(Traits::default(), |body| self.traits(body));
            let together = so_far.and(atom.preference).and(traits);
            if !atom.is_group && !together.of_parts().parts_matter() {
                self.pieces.truncate(before);
                so_far = together;
                continue;
            }
            let body = match body {
                Some(body) => body,
                None => self.add(Kind::Plain, Traits::default(), place(atom.ast.span()))?,
            };
            let here = place(item.span());
            let piece = self.quantified(body, &atom, here.clone())?;
            let front = source.start..here.start;
            let rest = &items[number + 1..];
            let Some(next) = rest.first() else {
                if number == 0 {
                    return Some(piece);
                }
                let whole = so_far.and(so_far.followed_by(self.traits(piece)));
                let front = self.add(Kind::Plain, so_far, front)?;
                return self.add(Kind::Sequence(front, piece), whole, source);
            };
            let rest = self.sequence(rest, next.span().start.offset..source.end)?;
            let (traits_here, traits_behind) = (self.traits(piece), self.traits(rest));
            let from_here = atom.preference.followed_by(traits);
            let from_here = from_here.and(from_here.followed_by(traits_behind));
            let whole = so_far.and(so_far.followed_by(from_here));
            if number == 0 {
                return self.add(Kind::Sequence(piece, rest), whole, source);
            }
            let front = self.add(Kind::Plain, so_far, front)?;
            // Its preference may differ from that of what is in front alone.
            let plain = |piece: usize| matches!(self.pieces[piece].kind, Kind::Plain);
            let one =
                plain(piece) && plain(rest) && !traits_here.and(traits_behind).of_parts().parts_matter();
            let (kind, traits) = match one {
                true => (Kind::Plain, traits_here.followed_by(traits_behind)),
                false => (Kind::Sequence(piece, rest), from_here),
            };
            let behind = self.add(kind, traits, here.start..source.end)?;
            return self.add(Kind::Sequence(front, behind), whole, source);
        }
        self.add(Kind::Plain, so_far, source)
    }

    fn group(&mut self, group: &Group) -> Option<usize> {
        let inner = self.alternatives(&group.ast)?;
        let GroupKind::CaptureIndex(number) = group.kind else { return Some(inner) };
        let mut piece = inner;
        if self.pieces[inner].group.is_some() {
            let source = self.pieces[inner].source.clone();
            piece = self.add(Kind::Around(inner), self.traits(inner), source)?;
        }
        let made = &mut self.pieces[piece];
        made.group = Some(number as usize);
        made.traits = made.traits.and(Traits::CAPTURES);
        Some(piece)
    }

    /// An atom with its quantifier, which both are written at `source`.
    fn quantified(&mut self, body: usize, atom: &Atom<'_>, source: Range<usize>) -> Option<usize> {
        let traits = self.traits(body);
        let own = Traits(traits.0 & !Traits::CAPTURES.0);
        let none = Traits::default();
        let once = atom.least == 1 && atom.most == Some(1);
        if once && (atom.preference == none || own == none || own == atom.preference) {
            return Some(body);
        }
        let both = atom.preference.followed_by(traits);
        if !traits.captures() {
            return self.add(Kind::Plain, both, source);
        }
        if atom.least == 0 {
            return self.add(Kind::Rounds(body, atom.most), both, source);
        }
        // Groups tell of the last round alone.
        let within = self.pieces[body].source.clone();
        let front = self.add(Kind::Plain, both.preference(), within)?;
        self.pieces[front].times = Some((atom.least - 1, atom.most.map(|most| most - 1)));
        self.add(Kind::Sequence(front, body), both, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an expression is taken apart, and if so whether it prefers the shortest match.
    fn prefers_shorter(expression: &str) -> Option<bool> {
        let pieces = take_apart(expression, 100)?;
        pieces.last().map(|whole| whole.traits.prefers_shorter())
    }

    #[test]
    fn the_first_preference_is_the_branchs() {
        for (expression, shorter) in [
            ("a|ab", false),
            ("a*?|b", false),
            ("(a*?)(b*)", true),
            ("x(a*)(b*?)", false),
            ("(?:a|b)x*?", false),
            ("a{2}?b*c*?", false),
            ("a{2,2}?b*", true),
            ("(?:(a*?)b){1,1}", false),
        ] {
            assert_eq!(prefers_shorter(expression), Some(shorter), "{expression}");
        }
    }

    #[test]
    fn what_can_match_in_one_way_is_left_alone() {
        for expression in ["abc", "(\\w)+", "(cat|dog)s?", "a(b)c*?", "^x*$", "(a)(b)", ""] {
            assert_eq!(prefers_shorter(expression), None, "{expression}");
        }
    }
}
