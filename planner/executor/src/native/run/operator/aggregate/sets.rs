//! The groups of grouping sets.
//!
//! The group that a row belongs to in a set is found column by column, and sets that begin with the same
//! columns go the first steps together: a row takes as many steps in ROLLUP of n columns as there are columns,
//! and one for each set in CUBE. A step asks for two numbers, that of the group before and that of the value in
//! one more column.

use archipel_sql::datum::Datum;
use rustc_hash::FxHashMap;

use crate::array::Values;
use crate::native::run::row::hash::HashKey;

/// How the groups of some sets are found.
pub(super) struct Steps {
    /// The step before each, and the column that it adds. Step 0, which adds none, is not among them.
    steps: Vec<(usize, u16)>,
    /// The last step of each set.
    ends: Vec<usize>,
}

impl Steps {
    /// Of sets of columns.
    pub fn of(sets: &[Vec<u16>]) -> Steps {
        let mut known: FxHashMap<(usize, u16), usize> = FxHashMap::default();
        let mut steps = Vec::new();
        let mut ends = Vec::with_capacity(sets.len());
        for set in sets {
            let mut last = 0;
            for column in set {
                last = *known.entry((last, *column)).or_insert_with(|| {
                    steps.push((last, *column));
                    steps.len()
                });
            }
            ends.push(last);
        }
        Steps { steps, ends }
    }
}

/// Where some rows lie that are equal in the columns of a step.
struct Place {
    before: u32,
    column: u16,
    /// The value of the first of them.
    value: Datum,
}

/// A group of one set.
struct Group {
    set: usize,
    place: u32,
    /// The values of its first row, where they can be told from others that they are equal to.
    shown: Option<Values>,
}

/// The groups that rows have been found to belong to, in order of first appearance.
pub(super) struct Groups<'s> {
    steps: &'s Steps,
    /// The values of each column, numbered.
    numbers: Vec<FxHashMap<HashKey, u32>>,
    /// The places by the one before, the step and the number of the value.
    known: FxHashMap<(u32, u32, u32), u32>,
    /// But for the first one, where all rows lie.
    places: Vec<Place>,
    /// Where the current row lies, step by step.
    current: Vec<u32>,
    groups: Vec<Group>,
    /// By set and place.
    index: FxHashMap<(usize, u32), usize>,
}

impl<'s> Groups<'s> {
    /// No groups yet, of rows of so many columns.
    pub fn new(steps: &'s Steps, columns: usize) -> Groups<'s> {
        Groups {
            steps,
            numbers: vec![FxHashMap::default(); columns],
            known: FxHashMap::default(),
            places: Vec::new(),
            current: vec![0; steps.steps.len() + 1],
            groups: Vec::new(),
            index: FxHashMap::default(),
        }
    }

    /// Makes a row with these values the current one.
    pub fn enter(&mut self, values: &[Datum]) {
        let numbered = self.numbers.iter_mut().zip(values).map(|(numbers, value)| {
            let next = numbers.len() as u32;
            *numbers.entry(HashKey([value.clone()].into_iter().collect())).or_insert(next)
        });
        let numbered: Vec<u32> = numbered.collect();
        for (step, (before, column)) in self.steps.steps.iter().enumerate() {
            let before = self.current[*before];
            let number = numbered[usize::from(*column)];
            let places = &mut self.places;
            self.current[step + 1] = *self.known.entry((before, step as u32, number)).or_insert_with(|| {
                places.push(Place { before, column: *column, value: values[usize::from(*column)].clone() });
                places.len() as u32
            });
        }
    }

    /// The number of the group that the current row, which has these values, belongs to in a set: that of a new
    /// one is how many there were.
    pub fn group(&mut self, set: usize, values: &[Datum]) -> usize {
        let place = self.current[self.steps.ends[set]];
        let groups = &mut self.groups;
        *self.index.entry((set, place)).or_insert_with(|| {
            let shown = (!values.iter().all(shows_all)).then(|| values.iter().cloned().collect());
            groups.push(Group { set, place, shown });
            groups.len() - 1
        })
    }

    /// Puts the values of a group into the slots of the columns, NULL where its set has none; tells the set.
    pub fn show(&self, group: usize, columns: &[u32], slots: &mut [Datum]) -> usize {
        let Group { set, place, shown } = &self.groups[group];
        for slot in columns {
            slots[*slot as usize] = Datum::Null;
        }
        let mut place = *place;
        while let Some(at) = place.checked_sub(1) {
            let Place { before, column, value } = &self.places[at as usize];
            let column = usize::from(*column);
            let value = shown.as_ref().map_or(value, |shown| &shown[column]);
            slots[columns[column] as usize] = value.clone();
            place = *before;
        }
        *set
    }
}

/// Whether a value looks like all those that it is equal to: 1.0 does not look like 1.00.
fn shows_all(value: &Datum) -> bool {
    matches!(
        value,
        Datum::Null
            | Datum::Bool(_)
            | Datum::Int2(_)
            | Datum::Int4(_)
            | Datum::Int8(_)
            | Datum::Text(_)
            | Datum::Bytea(_)
            | Datum::Bits(_)
            | Datum::Date(_)
            | Datum::Time(_)
            | Datum::Timestamp(_)
            | Datum::TimestampTz(_)
            | Datum::Uuid(_)
            | Datum::Inet(_)
            | Datum::MacAddress(_)
            | Datum::MacAddress8(_)
            | Datum::Oid(_)
    )
}
