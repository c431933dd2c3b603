//! The consistency conditions of clause 3.3.2, each as a count of its violations.

use crate::workload::Condition;

pub static CONDITIONS: [Condition; 12] = [
    Condition {
        name: "1: W_YTD = sum(D_YTD)",
        sql: "SELECT count(*) FROM warehouse
              JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) d ON d_w_id = w_id
              WHERE w_ytd <> ytd",
    },
    Condition {
        name: "2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        sql: "SELECT count(*) FROM district
              LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last_order FROM orders GROUP BY o_w_id, o_d_id) o
                ON o_w_id = d_w_id AND o_d_id = d_id
              LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last_new FROM new_order GROUP BY no_w_id, no_d_id) n
                ON no_w_id = d_w_id AND no_d_id = d_id
              WHERE last_order IS NULL OR d_next_o_id - 1 <> last_order
                 OR (last_new IS NOT NULL AND d_next_o_id - 1 <> last_new)",
    },
    Condition {
        name: "3: max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW_ORDER)",
        sql: "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 AS span, count(*) AS waiting
                                      FROM new_order GROUP BY no_w_id, no_d_id) n
              WHERE span <> waiting",
    },
    Condition {
        name: "4: sum(O_OL_CNT) = count(ORDER_LINE)",
        sql: "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS promised FROM orders GROUP BY o_w_id, o_d_id) o
              LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS present FROM order_line GROUP BY ol_w_id, ol_d_id) l
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id
              WHERE present IS NULL OR promised <> present",
    },
    Condition {
        name: "5: O_CARRIER_ID is null exactly while the order is in NEW_ORDER",
        sql: "SELECT count(*) FROM orders
              LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
              WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    },
    Condition {
        name: "6: O_OL_CNT = count of the order's lines",
        sql: "SELECT count(*) FROM orders
              LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS present
                           FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
              WHERE present IS NULL OR present <> o_ol_cnt",
    },
    Condition {
        name: "7: OL_DELIVERY_D is null exactly while O_CARRIER_ID is",
        sql: "SELECT count(*) FROM order_line
              JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
              WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Condition {
        name: "8: W_YTD = sum(H_AMOUNT)",
        sql: "SELECT count(*) FROM warehouse
              LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id
              WHERE paid IS NULL OR w_ytd <> paid",
    },
    Condition {
        name: "9: D_YTD = sum(H_AMOUNT)",
        sql: "SELECT count(*) FROM district
              LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h
                ON h_w_id = d_w_id AND h_d_id = d_id
              WHERE paid IS NULL OR d_ytd <> paid",
    },
    Condition {
        name: "10: C_BALANCE = sum(delivered OL_AMOUNT) - sum(H_AMOUNT)",
        sql: "SELECT count(*) FROM customer
              LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
                           FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                          WHERE ol_delivery_d IS NOT NULL
                          GROUP BY o_w_id, o_d_id, o_c_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
              LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid
                           FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
              WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
    },
    Condition {
        // The specification's 2100 is the population's; every delivery since adds one.
        name: "11: count(ORDERS) - count(NEW_ORDER) = 2100 + deliveries",
        sql: "SELECT count(*) FROM (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS deliveries
                                      FROM customer GROUP BY c_w_id, c_d_id) c
              LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS placed FROM orders GROUP BY o_w_id, o_d_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id
              LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting FROM new_order GROUP BY no_w_id, no_d_id) n
                ON no_w_id = c_w_id AND no_d_id = c_d_id
              WHERE placed IS NULL OR placed - coalesce(waiting, 0) <> 2100 + deliveries",
    },
    Condition {
        name: "12: C_BALANCE + C_YTD_PAYMENT = sum(delivered OL_AMOUNT)",
        sql: "SELECT count(*) FROM customer
              LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
                           FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                          WHERE ol_delivery_d IS NOT NULL
                          GROUP BY o_w_id, o_d_id, o_c_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
              WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)",
    },
];
