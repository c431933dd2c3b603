-- slug generation with history, collisions and redirects
SET client_min_messages = notice;
CREATE SCHEMA util;
CREATE TABLE article (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  title text NOT NULL CHECK (length(btrim(title)) > 0),
  slug text COLLATE "C" UNIQUE,
  tags text[] NOT NULL DEFAULT '{}'
);
CREATE TABLE slug_history (
  old_slug text PRIMARY KEY,
  article_id int NOT NULL REFERENCES article ON DELETE CASCADE,
  hops smallint NOT NULL DEFAULT 1
);

CREATE FUNCTION util.unaccent_lite(src text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT translate(src, 'àáâäãåçèéêëìíîïñòóôöõùúûüýÿÀÁÂÄÇÈÉÊËÑÖÜ', 'aaaaaaceeeeiiiinooooouuuuyyAAAACEEEENOU') $$;

CREATE FUNCTION util.slugify(src text, max_len int DEFAULT 24, sep text DEFAULT '-') RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $fn$
DECLARE
  s text := lower(util.unaccent_lite(src));
  word text;
  out_words text[] := ARRAY[]::text[];
  len int := 0;
BEGIN
  s := replace(replace(s, '&', ' and '), 'ß', 'ss');
  s := regexp_replace(s, $re$['’]$re$, '', 'g');
  <<words>>
  FOREACH word IN ARRAY regexp_split_to_array(s, '[^a-z0-9]+') LOOP
    CONTINUE words WHEN word = '';
    EXIT words WHEN len + length(word) > max_len AND cardinality(out_words) > 0;
    out_words := out_words || left(word, max_len);
    len := len + length(word) + length(sep);
  END LOOP words;
  RETURN NULLIF(array_to_string(out_words, sep), '');
END $fn$;

SELECT util.slugify('Hello, World!'), util.slugify('  Crème Brûlée & Co. ') AS b,
       util.slugify('???') AS d, util.slugify('It''s a dog’s life', sep => '_') AS e,
       util.slugify(max_len => 10, src => 'Supercalifragilistic') AS f;

SELECT util.slugify(NULL);
CREATE FUNCTION article_slug() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  base text; candidate text; n int := 1; clash record;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.title IS NOT DISTINCT FROM OLD.title THEN
    RETURN NEW;
  END IF;
  base := coalesce(util.slugify(NEW.title), 'n-' || NEW.id);
  candidate := base;
  LOOP
    SELECT a.id, a.title INTO clash FROM article a WHERE a.slug = candidate AND a.id <> NEW.id;
    EXIT WHEN NOT FOUND;
    n := n + 1;
    RAISE NOTICE 'slug % taken by #% (%)', candidate, clash.id, quote_literal(clash.title);
    candidate := base || '-' || n;
    IF n > 3 THEN
      RAISE EXCEPTION 'too many articles named %', quote_ident(base)
        USING ERRCODE = 'unique_violation', HINT = format('rename %s', NEW.title), COLUMN = 'slug', TABLE = TG_TABLE_NAME;
    END IF;
  END LOOP;
  NEW.slug := candidate;
  RETURN NEW;
END $$;
CREATE FUNCTION article_hist() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO slug_history AS h (old_slug, article_id) VALUES (OLD.slug, OLD.id)
  ON CONFLICT (old_slug) DO UPDATE SET hops = h.hops + 1, article_id = excluded.article_id;
  DELETE FROM slug_history WHERE old_slug = NEW.slug AND article_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER a_slug BEFORE INSERT OR UPDATE OF title ON article FOR EACH ROW EXECUTE FUNCTION article_slug();
CREATE TRIGGER a_hist AFTER UPDATE ON article FOR EACH ROW WHEN (OLD.slug IS DISTINCT FROM NEW.slug) EXECUTE FUNCTION article_hist();

INSERT INTO article (title, tags) VALUES ('Top 10 Tips', '{howto}'), ('TOP 10 tips!', '{howto,"a b"}'), ('top-10-tips', DEFAULT)
RETURNING id, slug, tags;
INSERT INTO article (title) VALUES ('Top: 10: Tips');
INSERT INTO article (title) VALUES ('   ');
INSERT INTO article (title) VALUES ('★★★') RETURNING id, slug;
UPDATE article SET title = 'Eleven Tips' WHERE id = 1;
UPDATE article SET title = 'Top 10 Tips' WHERE id = 1 RETURNING slug;
UPDATE article SET tags = tags || 'x'::text WHERE id = 2 RETURNING id, tags;
UPDATE article SET slug = 'zeta' WHERE id = 3;
INSERT INTO article (id, title) VALUES (99, 'manual');
SELECT id, title, slug, tags FROM article ORDER BY slug;
SELECT * FROM slug_history ORDER BY old_slug;

CREATE FUNCTION util.resolve(s text, OUT id int, OUT canonical text, OUT via text) LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT a.id, a.slug, 'direct' INTO STRICT id, canonical, via FROM article a WHERE a.slug = s;
EXCEPTION
  WHEN no_data_found THEN
    SELECT a.id, a.slug, format('redirect(%s)', h.hops) INTO id, canonical, via
    FROM slug_history h JOIN article a ON a.id = h.article_id WHERE h.old_slug = s;
END $$;
SELECT q.s, r.* FROM unnest(ARRAY['zeta','top-10-tips','eleven-tips','top-10-tips-3',NULL]) WITH ORDINALITY AS q(s, o)
CROSS JOIN LATERAL util.resolve(q.s) AS r ORDER BY q.o;
SELECT initcap(replace(slug, '-', ' ')) AS t, reverse(slug) AS r, rpad(slug, 14, '.') AS p, position('tips' IN slug) AS pos,
       split_part(slug, '-', -1) AS last_part, overlay(slug PLACING '##' FROM 2 FOR 3) AS o
FROM article ORDER BY id;
DELETE FROM article WHERE slug = 'zeta' RETURNING id;
SELECT count(*) AS history_left FROM slug_history;
