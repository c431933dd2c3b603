-- Voter: callers of a television show vote for contestants by telephone; each line has a number of
-- votes at most. Loads unchanged into PostgreSQL 15 and into Archipel.

CREATE TABLE contestants (
    contestant_number integer     NOT NULL PRIMARY KEY,
    contestant_name   varchar(50) NOT NULL
);

CREATE TABLE area_codes (
    area_code smallint   NOT NULL PRIMARY KEY,
    state     varchar(2) NOT NULL
);

CREATE TABLE callers (
    phone_number bigint  NOT NULL PRIMARY KEY,
    votes        integer NOT NULL
);

CREATE TABLE votes (
    phone_number      bigint      NOT NULL,
    nth               integer     NOT NULL,
    state             varchar(2)  NOT NULL,
    contestant_number integer     NOT NULL REFERENCES contestants (contestant_number),
    created           timestamptz NOT NULL,
    PRIMARY KEY (phone_number, nth)
);

CREATE VIEW votes_by_contestant AS
SELECT contestant_number, contestant_name, state, count(*) AS total
  FROM votes JOIN contestants USING (contestant_number)
 GROUP BY contestant_number, contestant_name, state;
