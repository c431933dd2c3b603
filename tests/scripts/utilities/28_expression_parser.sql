-- arithmetic language: tokenizer, shunting-yard, recursive descent, VM
CREATE TYPE token AS (kind text, val text, pos int);
CREATE TABLE variable (name text PRIMARY KEY, val numeric);
CREATE TABLE opcode (sym text PRIMARY KEY, prec int NOT NULL, right_assoc bool NOT NULL DEFAULT false, arity int NOT NULL DEFAULT 2, body text NOT NULL);
INSERT INTO opcode VALUES ('+', 1, DEFAULT, DEFAULT, '$1 + $2'), ('-', 1, DEFAULT, DEFAULT, '$1 - $2'), ('*', 2, DEFAULT, DEFAULT, '$1 * $2'), ('/', 2, DEFAULT, DEFAULT, '$1 / nullif($2, 0)'), ('^', 4, true, DEFAULT, 'power($1, $2)'), ('neg', 3, true, 1, '-$1'), ('max', 9, false, 2, 'greatest($1, $2)'), ('abs', 9, false, 1, 'abs($1)'), ('%', 2, false, 2, 'mod($1, $2)');
INSERT INTO variable VALUES ('x', 3), ('rate', 0.25), ('nil', NULL);
PREPARE add_var(text, numeric) AS INSERT INTO variable VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET val = excluded.val RETURNING name, val;
EXECUTE add_var('y', 4); EXECUTE add_var('x', 5.5); EXECUTE add_var('z');
EXECUTE add_var('w', 'abc');

CREATE FUNCTION tokenize(src text) RETURNS SETOF token LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE rest text := src; p int := 1; t token; m text; prev text;
BEGIN
  WHILE rest <> '' LOOP
    CASE
      WHEN rest ~ '^\s' THEN m := substring(rest FROM '^\s+'); t := NULL;
      WHEN rest ~ '^[0-9.]' THEN m := substring(rest FROM '^[0-9]*\.?[0-9]*'); t := ('num', m, p);
      WHEN rest ~* '^[a-z]' THEN m := substring(rest FROM '^[A-Za-z_][A-Za-z_0-9]*'); t := ROW(CASE WHEN lower(m) IN ('max', 'abs') THEN 'fn' ELSE 'id' END, lower(m), p);
      WHEN left(rest, 1) IN ('(', ')', ',') THEN m := left(rest, 1); t := (m, m, p);
      WHEN strpos('+-*/^%', left(rest, 1)) > 0 THEN
        m := left(rest, 1);
        t := ('op', CASE WHEN m = '-' AND (prev IS NULL OR prev IN ('op', '(', ',')) THEN 'neg' ELSE m END, p);
      ELSE
        RAISE syntax_error USING MESSAGE = format('unexpected %L at %s', left(rest, 1), p);
    END CASE;
    IF t IS NOT NULL THEN prev := t.kind; RETURN NEXT t; END IF;
    rest := substr(rest, length(m) + 1); p := p + length(m);
  END LOOP;
END $$;
SELECT * FROM tokenize('3.5*(x - -2) ^ max(1,y)') ORDER BY pos;
SELECT count(*) FROM tokenize('   ');
SELECT kind, val FROM tokenize('1 $ 2');

CREATE FUNCTION to_rpn(src text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE out_q text[] := '{}'; stk text[] := '{}'; t token; o opcode; top opcode;
BEGIN
  FOR t IN SELECT * FROM tokenize(src) LOOP
    CASE t.kind
      WHEN 'num', 'id' THEN out_q := out_q || t.val;
      WHEN 'fn', '(' THEN stk := t.val || stk;
      WHEN 'op' THEN
        SELECT * INTO STRICT o FROM opcode WHERE sym = t.val;
        LOOP
          SELECT * INTO top FROM opcode WHERE sym = stk[1];
          EXIT WHEN NOT FOUND OR t.val = 'neg' OR (o.right_assoc AND top.prec <= o.prec) OR top.prec < o.prec;
          out_q := out_q || top.sym; stk := stk[2:];
        END LOOP;
        stk := t.val || stk;
      ELSE
        WHILE stk[1] <> '(' LOOP out_q := out_q || stk[1]; stk := stk[2:]; END LOOP;
        IF stk[1] IS NULL THEN RAISE EXCEPTION 'unbalanced % at %', t.val, t.pos USING ERRCODE = '42601'; END IF;
        IF t.kind = ')' THEN
          stk := stk[2:];
          IF stk[1] IN ('max', 'abs') THEN out_q := out_q || stk[1]; stk := stk[2:]; END IF;
        END IF;
    END CASE;
  END LOOP;
  IF '(' = ANY (stk) THEN RAISE EXCEPTION 'missing )' USING ERRCODE = '42601'; END IF;
  RETURN out_q || stk;
END $$;
CREATE FUNCTION run_rpn(code text[], env jsonb DEFAULT NULL) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE st numeric[] := '{}'; c text; o opcode; r numeric; n int;
BEGIN
  FOREACH c IN ARRAY code LOOP
    n := cardinality(st);
    IF c ~ '^[0-9.]+$' THEN st := st || c::numeric; CONTINUE; END IF;
    SELECT * INTO o FROM opcode WHERE sym = c;
    IF NOT FOUND THEN
      IF env ? c THEN r := env ->> c;
      ELSE SELECT val INTO STRICT r FROM variable WHERE name = c;
      END IF;
      st := array_append(st, r);
    ELSIF n < o.arity THEN
      RAISE EXCEPTION 'stack underflow at %', c USING DETAIL = format('code=%s stack=%s', code, st);
    ELSE
      EXECUTE 'SELECT ' || o.body INTO r USING st[n - o.arity + 1], st[n];
      st := st[: n - o.arity] || r;
    END IF;
  END LOOP;
  IF cardinality(st) <> 1 THEN RAISE EXCEPTION 'left % values', cardinality(st); END IF;
  RETURN st[1];
END $$;
SELECT e, to_rpn(e), trim_scale(round(run_rpn(to_rpn(e)), 6)) AS val FROM (VALUES ('1+2*3'), ('(1+2)*3'), ('2^3^2'), ('-2^2'), ('7-3-2'), ('10/4'), ('1/0'), ('max(3, abs(-9))-x'), ('nil+1'), ('--5'), ('7%4*2'), ('.5 + 5.')) v(e) ORDER BY e COLLATE "C";
SELECT run_rpn(to_rpn('a*rate+x'), '{"a": 8, "x": "0.5"}'), run_rpn(ARRAY['1']), run_rpn(to_rpn('X*2'));
SELECT to_rpn('(1'); SELECT to_rpn('1)'); SELECT run_rpn(to_rpn('1 2')); SELECT run_rpn(to_rpn('1 +')); SELECT run_rpn(to_rpn('')); SELECT run_rpn(to_rpn('ghost')); SELECT run_rpn(to_rpn('5 % (x - x)')); SELECT run_rpn(to_rpn('1.2.3')); SELECT run_rpn(NULL);

-- recursive descent building a jsonb tree, mutual recursion with INOUT position
CREATE FUNCTION parse_expr(toks token[], INOUT p int, OUT tree jsonb) LANGUAGE plpgsql AS $$ BEGIN RAISE 'stub'; END $$;
CREATE FUNCTION parse_atom(toks token[], INOUT p int, OUT tree jsonb) LANGUAGE plpgsql AS $$
DECLARE t token := toks[p];
BEGIN
  p := p + 1;
  CASE coalesce((t).kind, 'eof')
    WHEN 'num' THEN tree := to_jsonb(t.val::numeric);
    WHEN 'id' THEN tree := to_jsonb(t.val);
    WHEN '(' THEN
      SELECT e.p, e.tree INTO p, tree FROM parse_expr(toks, p) e;
      IF toks[p].kind IS DISTINCT FROM ')' THEN RAISE EXCEPTION 'expected ) got %', coalesce(toks[p].val, '<end>'); END IF;
      p := p + 1;
    WHEN 'op' THEN
      SELECT e.p, jsonb_build_object(t.val, e.tree) INTO p, tree FROM parse_atom(toks, p) e;
    ELSE RAISE EXCEPTION 'unexpected %', coalesce(t.val, '<end>');
  END CASE;
END $$;
CREATE OR REPLACE FUNCTION parse_expr(toks token[], INOUT p int, OUT tree jsonb) LANGUAGE plpgsql AS $$
DECLARE op text; rhs jsonb;
BEGIN
  SELECT a.p, a.tree INTO p, tree FROM parse_atom(toks, p) AS a;
  WHILE toks[p].kind = 'op' LOOP
    op := toks[p].val;
    SELECT a.p, a.tree INTO STRICT p, rhs FROM parse_atom(toks, p + 1) a;
    tree := jsonb_build_object('op', op, 'l', tree, 'r', rhs);
  END LOOP;
END $$;
CREATE FUNCTION unparse(t jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE jsonb_typeof(t) WHEN 'object' THEN CASE WHEN t ? 'op' THEN format('(%s %s %s)', unparse(t -> 'l'), t ->> 'op', unparse(t -> 'r')) ELSE (SELECT k || unparse(v) FROM jsonb_each(t) e(k, v)) END ELSE t #>> '{}' END
$$;
CREATE FUNCTION parse(src text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE toks token[] := ARRAY(SELECT t FROM tokenize(src) t); r record;
BEGIN
  r := parse_expr(toks, 1);
  IF r.p <= cardinality(toks) THEN RAISE EXCEPTION 'trailing %', (SELECT string_agg(val, ' ') FROM unnest(toks[r.p:])); END IF;
  RETURN r.tree;
END $$;
SELECT parse('1 + (a - 2.50) * -b');
SELECT unparse(parse('1-2-(3-x)')), unparse(parse('((7))')), unparse(NULL);
SELECT parse('1 + '); SELECT parse('(1 2)'); SELECT parse('1 2 3'); SELECT parse('');
DEALLOCATE add_var; EXECUTE add_var('q', 1);
