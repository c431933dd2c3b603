-- no-transaction
DROP INDEX CONCURRENTLY item_label;
