-- YCSB (Cooper and others: Benchmarking Cloud Serving Systems with YCSB, 2010): records of ten
-- fields of a hundred bytes. Loads unchanged into PostgreSQL 15 and into Archipel.
--
-- Beyond the paper, written counts the changes of a record, and letters is the sum of the first
-- letters of its fields: each change adds to both, so that they tell of one that was lost.

CREATE TABLE usertable (
    ycsb_key varchar(24)  NOT NULL PRIMARY KEY,
    field0   varchar(100) NOT NULL,
    field1   varchar(100) NOT NULL,
    field2   varchar(100) NOT NULL,
    field3   varchar(100) NOT NULL,
    field4   varchar(100) NOT NULL,
    field5   varchar(100) NOT NULL,
    field6   varchar(100) NOT NULL,
    field7   varchar(100) NOT NULL,
    field8   varchar(100) NOT NULL,
    field9   varchar(100) NOT NULL,
    written  integer      NOT NULL DEFAULT 0,
    letters  integer      NOT NULL
);
