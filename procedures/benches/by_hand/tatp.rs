//! TATP's three reads.

use std::ops::{Bound, ControlFlow};

use archipel_engine::cell::Cell;
use archipel_engine::{ClaimSet, Direction, KeyRange, Stop, Txn};
use archipel_sql::datum::Datum;

use crate::by_hand::{ByHand, Known, int2, int4};
use crate::common::Database;

pub struct TatpByHand {
    subscriber: Known,
    access_info: Known,
    special_facility: Known,
    call_forwarding: Known,
}

const GET_SUBSCRIBER_DATA: usize = 0;
const GET_NEW_DESTINATION: usize = 1;
const GET_ACCESS_DATA: usize = 2;

fn datum(cell: Cell<'_>) -> Datum {
    match cell {
        Cell::Null => Datum::Null,
        Cell::Int2(value) => Datum::Int2(value),
        Cell::Int4(value) => Datum::Int4(value),
        Cell::Bytes(text) => Datum::text(std::str::from_utf8(text).expect("text is UTF-8")),
        other => panic!("no column of TATP holds {other:?}"),
    }
}

impl TatpByHand {
    pub fn of(db: &Database) -> TatpByHand {
        let known = |name| Known::of(db, name);
        TatpByHand {
            subscriber: known("subscriber"),
            access_info: known("access_info"),
            special_facility: known("special_facility"),
            call_forwarding: known("call_forwarding"),
        }
    }
}

impl ByHand for TatpByHand {
    fn knows(&self, which: usize) -> bool {
        which <= GET_ACCESS_DATA
    }

    fn predict(&self, _which: usize, args: &[Datum], claims: &mut ClaimSet) {
        self.subscriber.claim(int4(&args[0]), claims);
    }

    fn run(
        &self,
        which: usize,
        args: &[Datum],
        txn: &mut Txn<'_>,
        answer: &mut Vec<Datum>,
    ) -> Result<(), Stop> {
        let s_id = Cell::Int4(int4(&args[0]));
        match which {
            GET_SUBSCRIBER_DATA => {
                let table = &self.subscriber;
                if let Some(row) = txn.get(&table.meta, &table.key(&[s_id]))? {
                    answer.extend(table.meta.layout.places().iter().map(|place| datum(place.get(row))));
                }
            }
            GET_NEW_DESTINATION => {
                let (sf_type, start, end) = (int2(&args[1]), int2(&args[2]), int2(&args[3]));
                let key = self.special_facility.key(&[s_id, Cell::Int2(sf_type)]);
                let layout = &self.special_facility.meta.layout;
                let row = txn.get(&self.special_facility.meta, &key)?;
                if !row.is_some_and(|row| layout.get(row, 2) == Cell::Int2(1)) {
                    return Ok(());
                }
                let table = &self.call_forwarding;
                let low = table.key(&[s_id, Cell::Int2(sf_type)]);
                let high = table.key(&[s_id, Cell::Int2(sf_type), Cell::Int2(start)]);
                let range = KeyRange { low: Bound::Included(&low), high: Bound::Included(&high) };
                txn.scan(&table.meta, range, Direction::Ascending, &mut |_, row| {
                    if matches!(table.meta.layout.get(row, 3), Cell::Int2(until) if until > end) {
                        answer.push(datum(table.meta.layout.get(row, 4)));
                    }
                    ControlFlow::Continue(())
                })?;
            }
            _ => {
                let table = &self.access_info;
                let key = table.key(&[s_id, Cell::Int2(int2(&args[1]))]);
                match txn.get(&table.meta, &key)? {
                    Some(row) => answer.extend((2..6).map(|at| datum(table.meta.layout.get(row, at)))),
                    None => answer.extend(std::iter::repeat_n(Datum::Null, 4)),
                }
            }
        }
        Ok(())
    }

    fn agree(&self, _which: usize, _args: &[Datum], routine: &[Datum], by_hand: &[Datum]) -> bool {
        routine == by_hand
    }
}
