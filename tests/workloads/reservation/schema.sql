-- Seats on flights, after SEATS (Stonebraker and Pavlo, 2012) with fewer tables. Loads unchanged
-- into PostgreSQL 15 and into Archipel.

CREATE TABLE customers (
    c_id       integer       NOT NULL PRIMARY KEY,
    c_name     varchar(32)   NOT NULL,
    c_phone    varchar(15)   NOT NULL,
    c_reserved integer       NOT NULL,
    c_owes     numeric(12,2) NOT NULL
);

CREATE TABLE flights (
    f_id         integer       NOT NULL PRIMARY KEY,
    f_from       char(3)       NOT NULL,
    f_to         char(3)       NOT NULL,
    f_day        date          NOT NULL,
    f_price      numeric(8,2)  NOT NULL,
    f_seats      integer       NOT NULL,
    f_seats_left integer       NOT NULL CHECK (f_seats_left >= 0)
);
CREATE INDEX flights_by_route ON flights (f_from, f_to, f_day);

CREATE TABLE reservations (
    r_flight   integer      NOT NULL REFERENCES flights (f_id),
    r_seat     integer      NOT NULL,
    r_customer integer      NOT NULL REFERENCES customers (c_id),
    r_price    numeric(8,2) NOT NULL,
    PRIMARY KEY (r_flight, r_seat),
    UNIQUE (r_flight, r_customer)
);
