-- Analytical queries over TPC-C's tables, of the kinds CH-benCHmark and TPC-H ask: scans with grouping,
-- joins along and across keys, EXISTS with other conditions than equality, subqueries for each row or for
-- all, times that are the same for all rows, groups and orders of computed numerics, conditions common to
-- the arms of an OR, top-n.
SELECT ol_number, sum(ol_quantity) AS sum_qty, sum(ol_amount) AS sum_amount, avg(ol_quantity) AS avg_qty, count(*)
  FROM order_line WHERE ol_i_id > 100 GROUP BY ol_number ORDER BY ol_number;
SELECT o_ol_cnt, count(*) FROM orders
 WHERE EXISTS (SELECT 1 FROM order_line WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id AND ol_quantity > 4)
 GROUP BY o_ol_cnt ORDER BY o_ol_cnt;
SELECT sum(ol_amount) AS revenue FROM order_line WHERE ol_quantity BETWEEN 1 AND 100000 AND ol_amount > 500;
SELECT c_id, c_last, sum(ol_amount) AS revenue, c_city, c_phone
  FROM customer, orders, order_line
 WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
   AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
 GROUP BY c_id, c_last, c_city, c_phone ORDER BY revenue DESC, c_id, c_last, c_phone LIMIT 20;
SELECT s_i_id, sum(s_order_cnt) AS order_count FROM stock WHERE s_quantity < 50
 GROUP BY s_i_id HAVING sum(s_order_cnt) >= 0 ORDER BY order_count DESC, s_i_id LIMIT 50;
SELECT c_count, count(*) AS customers
  FROM (SELECT c_id, c_d_id, count(o_id) AS c_count
          FROM customer LEFT OUTER JOIN orders ON c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id AND o_carrier_id > 8
         GROUP BY c_id, c_d_id) AS counts
 GROUP BY c_count ORDER BY customers DESC, c_count DESC;
SELECT 100.00 * sum(CASE WHEN i_data LIKE 'a%' THEN ol_amount ELSE 0 END) / (1 + sum(ol_amount)) AS promotions
  FROM order_line, item WHERE ol_i_id = i_id;
SELECT i_name, substr(i_data, 1, 3) AS brand, i_price, count(DISTINCT s_i_id) AS suppliers
  FROM stock, item WHERE i_id = s_i_id AND i_data NOT LIKE 'zz%' AND i_price > 90
 GROUP BY i_name, substr(i_data, 1, 3), i_price ORDER BY suppliers DESC, i_name, brand, i_price LIMIT 100;
SELECT sum(ol_amount) / 2.0 AS avg_yearly
  FROM order_line, (SELECT i_id, avg(ol_quantity) AS a FROM item, order_line WHERE i_data LIKE '%b' AND ol_i_id = i_id GROUP BY i_id) AS t
 WHERE ol_i_id = t.i_id AND ol_quantity <= t.a;
SELECT substr(c_state, 1, 1) AS country, count(*) AS customers, sum(c_balance) AS balance
  FROM customer
 WHERE c_balance > (SELECT avg(c_balance) FROM customer WHERE c_balance < 0.00)
   AND NOT EXISTS (SELECT 1 FROM orders WHERE o_c_id = c_id AND o_w_id = c_w_id AND o_d_id = c_d_id AND o_id > 2900)
 GROUP BY substr(c_state, 1, 1) ORDER BY country;
SELECT count(*), sum(o_ol_cnt) FROM orders
 WHERE o_entry_d >= to_timestamp('2000-01-01', 'YYYY-MM-DD') AND o_entry_d < to_timestamp('2000-01-01', 'YYYY-MM-DD') + interval '90 years';
SELECT i_name, count(*) AS lines FROM item, order_line AS one
 WHERE i_id = ol_i_id AND i_price > 50
   AND EXISTS (SELECT 1 FROM order_line AS other WHERE other.ol_w_id = one.ol_w_id AND other.ol_d_id = one.ol_d_id
                AND other.ol_o_id = one.ol_o_id AND other.ol_i_id <> one.ol_i_id)
   AND NOT EXISTS (SELECT 1 FROM order_line AS other WHERE other.ol_w_id = one.ol_w_id AND other.ol_d_id = one.ol_d_id
                    AND other.ol_o_id = one.ol_o_id AND other.ol_i_id <> one.ol_i_id AND other.ol_amount > one.ol_amount)
 GROUP BY i_name ORDER BY lines DESC, i_name LIMIT 50;
SELECT extract(year FROM o_entry_d) AS year, sum(ol_amount * (1 - i_price / 1000)) AS revenue
  FROM orders, order_line, item
 WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND i_id = ol_i_id
 GROUP BY extract(year FROM o_entry_d) ORDER BY revenue DESC;
SELECT sum(ol_amount) FROM order_line, item
 WHERE (i_id = ol_i_id AND i_price BETWEEN 1 AND 30 AND ol_quantity BETWEEN 1 AND 5)
    OR (i_id = ol_i_id AND i_price BETWEEN 20 AND 60 AND ol_quantity BETWEEN 4 AND 8)
    OR (i_id = ol_i_id AND i_price BETWEEN 50 AND 100 AND ol_quantity BETWEEN 7 AND 10);
SELECT count(*), sum(ol_amount) FROM order_line AS one
 WHERE ol_amount > (SELECT 2 * avg(ol_amount) FROM order_line AS other
                     WHERE other.ol_w_id = one.ol_w_id AND other.ol_d_id = one.ol_d_id AND other.ol_o_id = one.ol_o_id);
SELECT o_ol_cnt, count(*), max(o_id) FROM orders
 WHERE o_ol_cnt > (SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_quantity > 4)
 GROUP BY o_ol_cnt ORDER BY o_ol_cnt;
