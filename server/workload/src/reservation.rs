//! Seats on flights, after SEATS (Stonebraker, Pavlo, 2012): customers look for flights and open
//! seats, take, change and give back reservations.

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};

/// Flights and customers per unit of scale.
const FLIGHTS: i32 = 1_000;
const CUSTOMERS: i32 = 20_000;
const SEATS: i32 = 150;
const AIRPORTS: [&str; 20] = [
    "AMS", "ATL", "BCN", "CDG", "DEN", "DFW", "DXB", "FRA", "GRU", "HND", "IST", "JFK", "LAX", "LHR", "MAD",
    "MUC", "ORD", "PEK", "SIN", "SYD",
];
const DAYS: i32 = 28;

pub struct Reservation {
    flights: i32,
    customers: i32,
}

impl Reservation {
    pub fn new(scale: u32) -> Self {
        let scale = scale as i32;
        Reservation { flights: scale.saturating_mul(FLIGHTS), customers: scale.saturating_mul(CUSTOMERS) }
    }
}

const FIND_FLIGHTS: usize = 0;
const FIND_OPEN_SEATS: usize = 1;
const NEW_RESERVATION: usize = 2;
const UPDATE_RESERVATION: usize = 3;
const DELETE_RESERVATION: usize = 4;
const UPDATE_CUSTOMER: usize = 5;

static CALLS: [Call; 6] = [
    Call {
        name: "find_flights",
        sql: "SELECT * FROM find_flights($1, $2, $3)",
        weight: 10,
        answer: &[4, 10, 4],
    },
    Call { name: "find_open_seats", sql: "SELECT find_open_seats($1)", weight: 35, answer: &[500] },
    Call { name: "new_reservation", sql: "CALL new_reservation($1, $2, $3)", weight: 20, answer: &[] },
    Call { name: "update_reservation", sql: "CALL update_reservation($1, $2, $3)", weight: 15, answer: &[] },
    Call { name: "delete_reservation", sql: "CALL delete_reservation($1, $2)", weight: 10, answer: &[] },
    Call { name: "update_customer", sql: "CALL update_customer($1, $2)", weight: 10, answer: &[] },
];

static CONDITIONS: [Condition; 4] = [
    Condition {
        name: "the seats left of a flight are those nobody has",
        sql: "SELECT count(*) FROM flights
              LEFT JOIN (SELECT r_flight, count(*) AS taken FROM reservations GROUP BY r_flight) r
                ON r_flight = f_id
              WHERE f_seats_left <> f_seats - coalesce(taken, 0)",
    },
    Condition {
        name: "seats are those the flight has",
        sql: "SELECT count(*) FROM reservations JOIN flights ON f_id = r_flight
              WHERE r_seat < 1 OR r_seat > f_seats",
    },
    Condition {
        name: "customers owe the prices of what they reserved",
        sql: "SELECT count(*) FROM customers
              LEFT JOIN (SELECT r_customer, count(*) AS seats, sum(r_price) AS price
                           FROM reservations GROUP BY r_customer) r ON r_customer = c_id
              WHERE c_reserved <> coalesce(seats, 0) OR c_owes <> coalesce(price, 0)",
    },
    Condition {
        name: "nobody has two seats of one flight",
        sql: "SELECT count(*) FROM (SELECT 1 FROM reservations GROUP BY r_flight, r_customer
                                     HAVING count(*) > 1) r",
    },
];

/// Who has a seat at first, if anybody: six seats of ten are taken. The customers of one flight
/// differ, since seats are fewer than customers by more than the factor.
fn holder(flight: i32, seat: i32, customers: i32) -> Option<i32> {
    let mut random = fastrand::Rng::with_seed((flight as u64) << 16 | seat as u64);
    (random.u32(0..10) < 6).then(|| customer_of(flight, seat, customers))
}

/// The customer who would have a seat.
fn customer_of(flight: i32, seat: i32, customers: i32) -> i32 {
    ((i64::from(flight) * 7_919 + i64::from(seat) * 31) % i64::from(customers)) as i32 + 1
}

fn price(flight: i32) -> i32 {
    60 + flight % 40 * 10
}

/// From, to and day.
fn route(flight: i32) -> (&'static str, &'static str, i32) {
    let mut random = fastrand::Rng::with_seed(flight as u64 ^ 0x72_6f75_7465);
    let from = random.usize(0..AIRPORTS.len());
    let to = (from + random.usize(1..AIRPORTS.len())) % AIRPORTS.len();
    (AIRPORTS[from], AIRPORTS[to], random.i32(1..=DAYS))
}

/// How many seats a customer has at first, and at what price.
fn reserved(flights: i32, customers: i32) -> Vec<(i32, i32)> {
    let mut of = vec![(0, 0); customers as usize + 1];
    for flight in 1..=flights {
        for customer in (1..=SEATS).filter_map(|seat| holder(flight, seat, customers)) {
            let (seats, owes) = &mut of[customer as usize];
            *seats += 1;
            *owes += price(flight);
        }
    }
    of
}

impl Workload for Reservation {
    scripts!("reservation");

    fn tables(&self) -> &'static [&'static str] {
        &["reservations", "flights", "customers"]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        let (flights, customers) = (self.flights, self.customers);
        let taken =
            move |flight| (1..=SEATS).filter(|seat| holder(flight, *seat, customers).is_some()).count();
        let owed = reserved(flights, customers);
        let mut seats = (1..=flights).flat_map(move |flight| {
            (1..=SEATS).filter_map(move |seat| Some((flight, seat, holder(flight, seat, customers)?)))
        });
        let reservations = owed.iter().map(|(seats, _)| *seats as u64).sum();
        vec![
            vec![
                CopyJob {
                    sql: "COPY customers FROM STDIN",
                    rows: customers as u64,
                    write: Box::new(move |row, out| {
                        let (seats, owes) = owed[row as usize + 1];
                        let c_id = row + 1;
                        put!(out, "{c_id}\tCustomer {c_id}\t{c_id:010}\t{seats}\t{owes}\n");
                    }),
                },
                CopyJob {
                    sql: "COPY flights FROM STDIN",
                    rows: flights as u64,
                    write: Box::new(move |row, out| {
                        let flight = row as i32 + 1;
                        let (from, to, day) = route(flight);
                        let left = SEATS - taken(flight) as i32;
                        let price = price(flight);
                        put!(out, "{flight}\t{from}\t{to}\t2027-02-{day:02}\t{price}\t{SEATS}\t{left}\n");
                    }),
                },
            ],
            vec![CopyJob {
                sql: "COPY reservations FROM STDIN",
                rows: reservations,
                write: Box::new(move |_, out| {
                    let (flight, seat, customer) = seats.next().expect("rows were counted with the same law");
                    put!(out, "{flight}\t{seat}\t{customer}\t{}\n", price(flight));
                }),
            }],
        ]
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, _connection: u32, _connections: u32, seed: u64) -> Box<dyn Terminal> {
        Box::new(ReservationTerminal {
            random: fastrand::Rng::with_seed(seed),
            flights: self.flights,
            customers: self.customers,
        })
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }
}

struct ReservationTerminal {
    random: fastrand::Rng,
    flights: i32,
    customers: i32,
}

impl ReservationTerminal {
    fn seat(&mut self) -> i32 {
        self.random.i32(1..=SEATS)
    }

    /// A flight, one of its seats, and the customer who would have that.
    fn place(&mut self) -> (i32, i32, i32) {
        let (flight, seat) = (self.random.i32(1..=self.flights), self.seat());
        (flight, seat, customer_of(flight, seat, self.customers))
    }
}

impl Terminal for ReservationTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        let (flight, seat, customer) = self.place();
        match call {
            FIND_FLIGHTS => {
                let (from, to, day) = route(flight);
                parameters.text(from);
                parameters.text(to);
                parameters.text(&format!("2027-02-{day:02}"));
            }
            FIND_OPEN_SEATS => parameters.int4(flight),
            NEW_RESERVATION => {
                parameters.int4(flight);
                parameters.int4(seat);
                parameters.int4(customer);
            }
            UPDATE_RESERVATION => {
                parameters.int4(flight);
                parameters.int4(customer);
                parameters.int4(self.seat());
            }
            DELETE_RESERVATION => {
                parameters.int4(flight);
                parameters.int4(customer);
            }
            UPDATE_CUSTOMER => {
                parameters.int4(customer);
                parameters.text(&format!("{:010}", self.random.u32(..)));
            }
            other => unreachable!("the reservations have six calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.u32(0..bound)
    }

    fn expected(&self, _call: usize, state: &[u8]) -> bool {
        // Full, taken, or not reserved: what the routines raise.
        state.starts_with(b"SR")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_two_seats_of_a_flight() {
        for flight in 1..=50 {
            let mut holders: Vec<i32> =
                (1..=SEATS).filter_map(|seat| holder(flight, seat, CUSTOMERS)).collect();
            let count = holders.len();
            holders.sort_unstable();
            holders.dedup();
            assert_eq!(holders.len(), count);
            assert!((60..120).contains(&count), "{count}");
        }
    }
}
