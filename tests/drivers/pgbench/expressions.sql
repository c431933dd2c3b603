\set a random(1, 100000)
\set b random_gaussian(1, 100000, 2.5)
\set c random_exponential(1, 100000, 2.5)
\set d random_zipfian(1, 100000, 1.1)
\set e permute(:a, 100000) + hash(:b) % 10 + greatest(1, :c) - least(2, :d)
\set f case when :a > 50000 then 1.5 else 2 end
SELECT :a::int + :b::int AS sum, :e::bigint, :f::numeric, abs(-:c::int) FROM pgbench_branches;
