//! TPC-C's new_order and payment.

use std::ops::{Bound, ControlFlow};

use archipel_engine::cell::Cell;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::successor;
use archipel_engine::{ClaimSet, Direction, KeyRange, Stop, Txn};
use archipel_sql::datum::Datum;
use archipel_sql::numeric::Numeric;

use crate::by_hand::{ByHand, Known, cents, int4, int4s};
use crate::common::Database;

pub struct TpcCByHand {
    warehouse: Known,
    district: Known,
    customer: Known,
    history: Known,
    orders: Known,
    new_order: Known,
    order_line: Known,
    item: Known,
    stock: Known,
}

const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;

impl TpcCByHand {
    pub fn of(db: &Database) -> TpcCByHand {
        let known = |name| Known::of(db, name);
        TpcCByHand {
            warehouse: known("warehouse"),
            district: known("district"),
            customer: known("customer"),
            history: known("history"),
            orders: known("orders"),
            new_order: known("new_order"),
            order_line: known("order_line"),
            item: known("item"),
            stock: known("stock"),
        }
    }

    fn order(&self, args: &[Datum], txn: &mut Txn<'_>, answer: &mut Vec<Datum>) -> Result<(), Stop> {
        let (w, d, c) = (int4(&args[0]), int4(&args[1]), int4(&args[2]));
        let (w_id, d_id, c_id) = (Cell::Int4(w), Cell::Int4(d), Cell::Int4(c));
        let lines = || int4s(&args[3]).zip(int4s(&args[4])).zip(int4s(&args[5]));

        let row = self.warehouse.row(txn, &self.warehouse.key(&[w_id]))?;
        let w_tax = self.warehouse.scaled(row, 7);

        let key = self.district.key(&[w_id, d_id]);
        let row = self.district.row(txn, &key)?;
        let (d_tax, o) = (self.district.scaled(row, 8), self.district.int4(row, 10));
        self.district.update(txn, &key, &[(10, Cell::Int4(o + 1))])?;

        let row = self.customer.row(txn, &self.customer.key(&[w_id, d_id, c_id]))?;
        let discount = self.customer.scaled(row, 15);

        let (o_id, count) = (Cell::Int4(o), Cell::Int4(lines().count() as i32));
        let all_local = Cell::Int4(i32::from(int4s(&args[4]).all(|supply| supply == w)));
        let now = Cell::Int8(txn.started_at());
        let key = self.orders.key(&[w_id, d_id, o_id]);
        self.orders.insert(txn, &key, &[w_id, d_id, o_id, c_id, now, Cell::Null, count, all_local])?;
        let key = self.new_order.key(&[w_id, d_id, o_id]);
        self.new_order.insert(txn, &key, &[w_id, d_id, o_id])?;

        let items: Vec<KeyBuf> = lines().map(|((i, _), _)| self.item.key(&[Cell::Int4(i)])).collect();
        let stocks: Vec<KeyBuf> =
            lines().map(|((i, w), _)| self.stock.key(&[Cell::Int4(w), Cell::Int4(i)])).collect();
        if txn.fetches_ahead() {
            txn.fetch_ahead(&self.item.meta, &items);
            txn.fetch_ahead(&self.stock.meta, &stocks);
        }
        let mut sum = 0;
        for (at, ((i, supply), quantity)) in lines().enumerate() {
            let Some(row) = txn.get(&self.item.meta, &items[at])? else { return Err(Stop::Abort) };
            let price = self.item.scaled(row, 3);

            let row = self.stock.row(txn, &stocks[at])?;
            let have = self.stock.int4(row, 2);
            let left = if have >= quantity + 10 { have - quantity } else { have - quantity + 91 };
            let mut info = [0; 24];
            let text = self.stock.bytes(row, 2 + d as usize);
            let info_length = text.len();
            info[..info_length].copy_from_slice(text);
            let (ytd, orders) = (self.stock.int4(row, 13), self.stock.int4(row, 14));
            let remote = self.stock.int4(row, 15) + i32::from(supply != w);
            let changes = [
                (2, Cell::Int4(left)),
                (13, Cell::Int4(ytd + quantity)),
                (14, Cell::Int4(orders + 1)),
                (15, Cell::Int4(remote)),
            ];
            self.stock.update(txn, &stocks[at], &changes)?;

            let amount = i64::from(quantity) * price;
            sum += amount;
            let number = Cell::Int4(at as i32 + 1);
            let key = self.order_line.key(&[w_id, d_id, o_id, number]);
            let cells = [
                w_id,
                d_id,
                o_id,
                number,
                Cell::Int4(i),
                Cell::Int4(supply),
                Cell::Null,
                Cell::Int4(quantity),
                Cell::Int8(amount),
                Cell::Bytes(&info[..info_length]),
            ];
            self.order_line.insert(txn, &key, &cells)?;
        }
        let one = 10_000;
        let total = i128::from(sum) * i128::from(one - discount) * i128::from(one + w_tax + d_tax);
        answer.extend([Datum::Int4(o), Datum::Numeric(Numeric::from_scaled_i128(total, 10))]);
        Ok(())
    }

    /// The number of the middle one, by first name, of the customers of a name.
    fn named(&self, txn: &mut Txn<'_>, w_id: Cell<'_>, d_id: Cell<'_>, last: &str) -> Result<i32, Stop> {
        let low = self.customer.index_key(&[w_id, d_id, Cell::Bytes(last.as_bytes())]);
        let mut high = low.clone();
        assert!(successor(&mut high), "a key has an end");
        let range = KeyRange { low: Bound::Included(&low), high: Bound::Excluded(&high) };
        let mut keys: Vec<KeyBuf> = Vec::new();
        let index = &self.customer.meta.def.indexes[0];
        txn.scan_index(&self.customer.meta, index, range, Direction::Ascending, &mut |_, key| {
            keys.push(KeyBuf::from_slice(key));
            ControlFlow::Continue(())
        })?;
        let row = self.customer.row(txn, &keys[(keys.len() - 1) / 2])?;
        Ok(self.customer.int4(row, 2))
    }

    fn pay(&self, args: &[Datum], txn: &mut Txn<'_>, answer: &mut Vec<Datum>) -> Result<(), Stop> {
        let [w_id, d_id, cw_id, cd_id] = [0, 1, 2, 3].map(|at| Cell::Int4(int4(&args[at])));
        let Datum::Numeric(amount) = &args[6] else { panic!("an amount and not {:?}", args[6]) };
        let amount = amount.to_scaled(2).expect("an amount in cents");

        let key = self.warehouse.key(&[w_id]);
        let row = self.warehouse.row(txn, &key)?;
        let ytd = self.warehouse.scaled(row, 8);
        let mut data = self.warehouse.bytes(row, 1).to_vec();
        self.warehouse.update(txn, &key, &[(8, Cell::Int8(ytd + amount))])?;

        let key = self.district.key(&[w_id, d_id]);
        let row = self.district.row(txn, &key)?;
        let ytd = self.district.scaled(row, 9);
        data.extend_from_slice(b"    ");
        data.extend_from_slice(self.district.bytes(row, 2));
        self.district.update(txn, &key, &[(9, Cell::Int8(ytd + amount))])?;

        let c = match &args[5] {
            Datum::Text(last) => self.named(txn, cw_id, cd_id, last)?,
            _ => int4(&args[4]),
        };
        let key = self.customer.key(&[cw_id, cd_id, Cell::Int4(c)]);
        let row = self.customer.row(txn, &key)?;
        let balance = self.customer.scaled(row, 16) - amount;
        let (paid, payments) = (self.customer.scaled(row, 17), self.customer.int4(row, 18));
        let told = (self.customer.bytes(row, 13) == b"BC").then(|| {
            let [w, d, cw, cd] = [0, 1, 2, 3].map(|at| int4(&args[at]));
            let mut text =
                format!("{c} {cd} {cw} {d} {w} {}.{:02} | ", amount / 100, amount % 100).into_bytes();
            text.extend_from_slice(self.customer.bytes(row, 20));
            text.truncate(500);
            text
        });
        let mut changes =
            vec![(16, Cell::Int8(balance)), (17, Cell::Int8(paid + amount)), (18, Cell::Int4(payments + 1))];
        if let Some(text) = &told {
            changes.push((20, Cell::Bytes(text)));
        }
        self.customer.update(txn, &key, &changes)?;

        let number = Cell::Int8(txn.hidden_row_id());
        let now = Cell::Int8(txn.started_at());
        let mut key = self.history.key(&[w_id]);
        let hidden = &self.history.meta.def.key[1];
        let kind = self.history.meta.def.columns[usize::from(hidden.column)];
        archipel_engine::storage::key::encode_cell(&mut key, number, hidden, kind);
        let paid = Cell::Int8(amount);
        let cells = [Cell::Int4(c), cd_id, cw_id, d_id, w_id, now, paid, Cell::Bytes(&data), number];
        self.history.insert(txn, &key, &cells)?;
        answer.extend([Datum::Int4(c), cents(balance)]);
        Ok(())
    }
}

impl ByHand for TpcCByHand {
    fn knows(&self, which: usize) -> bool {
        which <= PAYMENT
    }

    fn predict(&self, which: usize, args: &[Datum], claims: &mut ClaimSet) {
        let home = int4(&args[0]);
        self.warehouse.claim(home, claims);
        let mut also = |other: i32| {
            if other != home {
                self.warehouse.claim(other, claims);
            }
        };
        match which {
            NEW_ORDER => int4s(&args[4]).for_each(also),
            _ => also(int4(&args[2])),
        }
    }

    fn run(
        &self,
        which: usize,
        args: &[Datum],
        txn: &mut Txn<'_>,
        answer: &mut Vec<Datum>,
    ) -> Result<(), Stop> {
        match which {
            NEW_ORDER => self.order(args, txn, answer),
            _ => self.pay(args, txn, answer),
        }
    }

    fn agree(&self, which: usize, args: &[Datum], routine: &[Datum], by_hand: &[Datum]) -> bool {
        let scaled = |datum: &Datum, scale: u16| match datum {
            Datum::Numeric(number) => number.to_scaled(scale),
            _ => None,
        };
        match which {
            // The next number, for the same price.
            NEW_ORDER => {
                int4(&by_hand[0]) == int4(&routine[0]) + 1
                    && scaled(&by_hand[1], 10).is_some()
                    && scaled(&by_hand[1], 10) == scaled(&routine[1], 10)
            }
            // The same customer has paid once more.
            _ => {
                let (after, before) = (scaled(&by_hand[1], 2), scaled(&routine[1], 2));
                let amount = scaled(&args[6], 2);
                int4(&by_hand[0]) == int4(&routine[0])
                    && matches!((after, before, amount), (Some(a), Some(b), Some(paid)) if a == b - paid)
            }
        }
    }
}
