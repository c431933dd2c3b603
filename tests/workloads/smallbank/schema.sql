-- SmallBank (Alomari, Cahill, Fekete, Röhm: The Cost of Serializability on Platforms That Use
-- Snapshot Isolation, 2008). Loads unchanged into PostgreSQL 15 and into Archipel.
--
-- Beyond the paper, opened, deposited and transferred say where a customer's money came from, so
-- that the balances can be checked.

CREATE TABLE accounts (
    custid integer       NOT NULL PRIMARY KEY,
    name   varchar(64)   NOT NULL,
    opened numeric(12,2) NOT NULL
);

CREATE TABLE savings (
    custid integer       NOT NULL PRIMARY KEY REFERENCES accounts (custid),
    bal    numeric(12,2) NOT NULL
);

CREATE TABLE checking (
    custid      integer       NOT NULL PRIMARY KEY REFERENCES accounts (custid),
    bal         numeric(12,2) NOT NULL,
    deposited   numeric(14,2) NOT NULL DEFAULT 0,
    transferred numeric(14,2) NOT NULL DEFAULT 0
);
