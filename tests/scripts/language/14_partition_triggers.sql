SET timezone = 'UTC';
CREATE TABLE reading (sensor int NOT NULL, at date NOT NULL, val numeric, tag text, CONSTRAINT val_ok CHECK (val < 1000), PRIMARY KEY (sensor, at)) PARTITION BY RANGE (at);
CREATE TABLE reading_q1 PARTITION OF reading FOR VALUES FROM ('2024-01-01') TO ('2024-04-01');
CREATE TABLE reading_q2 PARTITION OF reading (CONSTRAINT tag_short CHECK (length(tag) <= 3)) FOR VALUES FROM ('2024-04-01') TO ('2024-07-01') PARTITION BY LIST (sensor);
CREATE TABLE reading_q2_even PARTITION OF reading_q2 FOR VALUES IN (2, 4, 6);
CREATE TABLE reading_q2_rest PARTITION OF reading_q2 DEFAULT;
CREATE TABLE seen (n int GENERATED ALWAYS AS IDENTITY, msg text);

CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE k text := CASE TG_LEVEL WHEN 'ROW' THEN (CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END)::text ELSE 'stmt' END;
BEGIN
  INSERT INTO seen(msg) VALUES (format('%-9s %s %s %s: %s', TG_NAME, TG_WHEN, TG_OP, TG_TABLE_NAME, k));
  IF TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    IF NEW.val < 0 THEN RETURN NULL; END IF;
    NEW.tag := coalesce(NEW.tag, left(TG_TABLE_NAME, 3));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER st AFTER INSERT OR UPDATE OR DELETE ON reading FOR EACH STATEMENT EXECUTE FUNCTION seen();
CREATE TRIGGER rw BEFORE INSERT OR UPDATE OR DELETE ON reading FOR EACH ROW EXECUTE FUNCTION seen();
CREATE TRIGGER af AFTER INSERT OR UPDATE OR DELETE ON reading FOR EACH ROW EXECUTE FUNCTION seen();
CREATE TRIGGER only_even AFTER INSERT ON reading_q2_even FOR EACH ROW EXECUTE FUNCTION seen();
CREATE TRIGGER part_st AFTER INSERT ON reading_q1 FOR EACH STATEMENT EXECUTE FUNCTION seen();

INSERT INTO reading VALUES (1, '2024-01-15', 1.5, NULL), (2, '2024-05-01', 2.5, NULL), (3, '2024-06-30', 3.5, 'abc'), (9, '2024-02-01', -1, DEFAULT);
SELECT msg FROM seen ORDER BY n; TRUNCATE seen;
INSERT INTO reading_q1 VALUES (5, '2024-03-31', 5);
SELECT msg FROM seen ORDER BY n; TRUNCATE seen;
INSERT INTO reading VALUES (1, '2024-07-01', 1);
INSERT INTO reading_q1 VALUES (1, '2024-04-01', 1);
INSERT INTO reading VALUES (7, '2024-04-02', 1, 'toolong');
INSERT INTO reading VALUES (7, '2024-04-02', 1000);
INSERT INTO reading VALUES (1, '2024-01-15', 0);
INSERT INTO reading VALUES (1, '2024-01-15', 9) ON CONFLICT (sensor, at) DO UPDATE SET val = reading.val + excluded.val RETURNING *, tableoid::regclass;
TRUNCATE seen;
-- moving rows between partitions
UPDATE reading SET at = '2024-02-20' WHERE sensor = 2 RETURNING tableoid::regclass, *;
SELECT msg FROM seen ORDER BY n; TRUNCATE seen;
UPDATE reading_q1 SET at = '2024-05-05' WHERE sensor = 5;
UPDATE reading SET sensor = sensor + 1 WHERE at >= '2024-06-01' RETURNING tableoid::regclass, *;
UPDATE reading SET at = at + interval '1 year' WHERE sensor = 1;
SELECT tableoid::regclass AS part, * FROM reading ORDER BY sensor, at;
WITH q AS (DELETE FROM reading WHERE val > 3 AND val < 10 RETURNING sensor, tableoid::regclass) SELECT * FROM q ORDER BY 1;
SELECT msg FROM seen WHERE msg LIKE '%DELETE%' ORDER BY msg; TRUNCATE seen;

-- attach, detach, with triggers and keys being cloned
CREATE TABLE reading_q3 (LIKE reading INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO reading_q3 VALUES (8, '2024-08-08', 8, 'old'), (8, '2024-12-01', 8, 'bad');
ALTER TABLE reading ATTACH PARTITION reading_q3 FOR VALUES FROM ('2024-07-01') TO ('2024-10-01');
UPDATE reading_q3 SET at = '2024-09-09' WHERE at > '2024-10-01';
ALTER TABLE reading ATTACH PARTITION reading_q3 FOR VALUES FROM ('2024-06-01') TO ('2024-10-01');
ALTER TABLE reading ATTACH PARTITION reading_q3 FOR VALUES FROM ('2024-07-01') TO ('2024-10-01');
INSERT INTO reading VALUES (8, '2024-08-08', 1);
INSERT INTO reading VALUES (10, '2024-08-08', 10);
SELECT msg FROM seen ORDER BY n; TRUNCATE seen;
SELECT tgrelid::regclass AS tab, tgname, tgparentid <> 0 AS cloned FROM pg_trigger WHERE tgrelid::regclass::text LIKE 'reading%' AND tgname IN ('rw', 'only_even') ORDER BY tgrelid::regclass::text, 2;
DROP TRIGGER rw ON reading_q3;
ALTER TABLE reading DETACH PARTITION reading_q3;
INSERT INTO reading VALUES (10, '2024-08-08', 10);
INSERT INTO reading_q3 VALUES (11, '2030-01-01', 1);
SELECT count(*) FROM seen;
SELECT count(*), max(at) FROM reading_q3;
DROP TABLE reading_q1;
SELECT tableoid::regclass AS part, sensor, at FROM reading ORDER BY sensor, at;

-- foreign keys from and to partitioned tables; hash partitions; expression keys
CREATE TABLE alarm (id int PRIMARY KEY, sensor int, at date, FOREIGN KEY (sensor, at) REFERENCES reading ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO reading VALUES (4, '2024-04-04', 4, 'd');
INSERT INTO alarm VALUES (1, 4, '2024-04-04');
INSERT INTO alarm VALUES (2, 4, '2024-04-05');
DELETE FROM reading WHERE sensor = 4;
SELECT * FROM alarm;
CREATE TABLE h (id int, body text) PARTITION BY HASH (id);
CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 0);
INSERT INTO h SELECT g, 'b' || g FROM generate_series(1, 3) g;
CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO h SELECT g, 'b' || g FROM generate_series(1, 40) g;
SELECT count(*), count(DISTINCT tableoid) FROM h;
CREATE TABLE x (a int, b text) PARTITION BY LIST (lower(b));
CREATE TABLE x1 PARTITION OF x FOR VALUES IN ('a', NULL);
INSERT INTO x VALUES (1, 'A'), (2, NULL), (3, 'a');
INSERT INTO x VALUES (4, 'B');
CREATE TABLE x2 PARTITION OF x FOR VALUES IN ('b', 'a');
ALTER TABLE x ADD PRIMARY KEY (a);
CREATE TABLE bad PARTITION OF reading FOR VALUES FROM ('2025-01-01') TO ('2024-01-01');
CREATE TABLE bad PARTITION OF reading FOR VALUES IN (1);
ALTER TABLE reading_q2_even ADD COLUMN zz int;
ALTER TABLE reading ADD COLUMN zz int DEFAULT 3;
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound, pg_get_partkeydef(c.oid) AS key, (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = c.oid) AS parent
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND (c.relispartition OR c.relkind = 'p') AND relnamespace = 'public'::regnamespace ORDER BY 1;
SELECT relid, parentrelid, isleaf, level FROM pg_partition_tree('reading') ORDER BY level, relid::text;
