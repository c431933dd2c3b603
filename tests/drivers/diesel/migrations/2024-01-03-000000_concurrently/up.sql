CREATE INDEX CONCURRENTLY item_label ON item (label);
