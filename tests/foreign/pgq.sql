-- PgQ at work: queues, consumers and ticks. Events come in through its C functions, which nobody has here.
-- case: a queue is made once
SELECT pgq.create_queue('orders');
--> create_queue
-->   1
SELECT pgq.create_queue('orders');
--> create_queue
-->   0
SELECT queue_name, queue_ntables, queue_cur_table, queue_rotation_period, queue_ticker_paused FROM pgq.get_queue_info('orders');
--> queue_name | queue_ntables | queue_cur_table | queue_rotation_period | queue_ticker_paused
-->   orders | 3 | 0 | 02:00:00 | f
SELECT queue_name FROM pgq.get_queue_info();
--> queue_name
-->   orders
-- case: configuring a queue
SELECT pgq.set_queue_config('orders', 'ticker_max_lag', '2 minutes');
--> set_queue_config
-->   1
SELECT pgq.set_queue_config('orders', 'ticker_paused', 'true');
--> set_queue_config
-->   1
SELECT pgq.set_queue_config('orders', 'no_such_parameter', '1');
--> ERROR P0001: cannot change parameter "no_such_parameters"
-->   CONTEXT: PL/pgSQL function pgq.set_queue_config(text,text,text) line 44 at RAISE
SELECT pgq.set_queue_config('nobody', 'ticker_max_lag', '1 minute');
--> ERROR P0001: No such event queue
-->   CONTEXT: PL/pgSQL function pgq.set_queue_config(text,text,text) line 31 at RAISE
SELECT queue_ticker_max_lag, queue_ticker_paused FROM pgq.get_queue_info('orders');
--> queue_ticker_max_lag | queue_ticker_paused
-->   00:02:00 | t
SELECT pgq.set_queue_config('orders', 'ticker_paused', 'false');
--> set_queue_config
-->   1
-- case: consumers come and go
SELECT pgq.register_consumer('orders', 'billing');
--> register_consumer
-->   1
SELECT pgq.register_consumer('orders', 'billing');
--> register_consumer
-->   0
SELECT pgq.register_consumer('orders', 'shipping');
--> register_consumer
-->   1
SELECT pgq.register_consumer('nobody', 'billing');
--> ERROR P0001: Event queue not created yet
-->   CONTEXT: PL/pgSQL function pgq.register_consumer_at(text,text,bigint) line 33 at RAISE
-->     PL/pgSQL function pgq.register_consumer(text,text) line 22 at RETURN
SELECT queue_name, consumer_name FROM pgq.get_consumer_info('orders') ORDER BY 2;
--> queue_name | consumer_name
-->   orders | billing
-->   orders | shipping
SELECT pgq.unregister_consumer('orders', 'shipping');
--> unregister_consumer
-->   1
SELECT pgq.unregister_consumer('orders', 'shipping');
--> unregister_consumer
-->   0
-- case: a tick makes a batch
SELECT pgq.next_batch('orders', 'billing') IS NULL AS nothing_yet;
--> nothing_yet
-->   t
SELECT pgq.force_tick('orders') IS NOT NULL AS forced;
--> forced
-->   t
SELECT pgq.ticker('orders') IS NOT NULL AS ticked;
--> ticked
-->   t
SELECT pgq.next_batch('orders', 'nobody');
--> ERROR P0001: Not subscriber to queue: orders/nobody
-->   CONTEXT: PL/pgSQL function pgq.next_batch_custom(text,text,interval,integer,interval) line 70 at RAISE
-->     SQL statement "select f.batch_id, f.cur_tick_id, f.prev_tick_id,
-->                f.cur_tick_time, f.prev_tick_time,
-->                f.cur_tick_event_seq, f.prev_tick_event_seq
-->                                                                                                                                                   from pgq.next_batch_custom(i_queue_name, i_consumer_name, NULL, NULL, NULL) f"
-->     PL/pgSQL function pgq.next_batch_info(text,text) line 33 at SQL statement
-->     SQL statement "select batch_id                  from pgq.next_batch_info(i_queue_name, i_consumer_name)"
-->     PL/pgSQL function pgq.next_batch(text,text) line 17 at SQL statement
-- case: the current event table
SELECT pgq.current_event_table('orders');
--> current_event_table
-->   pgq.event_1_0
SELECT pgq.current_event_table('nobody');
--> ERROR P0001: Event queue not found
-->   CONTEXT: PL/pgSQL function pgq.current_event_table(text) line 33 at RAISE
-- case: finishing a batch that is not there
SELECT pgq.finish_batch(12345);
--> WARNING 01000: finish_batch: batch 12345 not found
-->   CONTEXT: PL/pgSQL function pgq.finish_batch(bigint) line 26 at RAISE
--> finish_batch
-->   0
SELECT pgq.batch_retry(12345, 10);
--> ERROR P0001: batch_retry: batch 12345 not found
-->   CONTEXT: PL/pgSQL function pgq.batch_retry(bigint,integer) line 27 at RAISE
-- case: helper functions
SELECT pgq.quote_fqname('pgq.queue'), pgq.quote_fqname('queue'), pgq.version() IS NOT NULL AS versioned;
--> quote_fqname | quote_fqname | versioned
-->   pgq.queue | public.queue | f
SELECT pgq.seq_getval('pgq.batch_id_seq') IS NOT NULL AS counted;
--> counted
-->   t
-- case: maintenance
SELECT func_name, func_arg FROM pgq.maint_operations() ORDER BY 1, 2;
--> func_name | func_arg
SELECT pgq.maint_retry_events();
--> maint_retry_events
-->   0
SELECT pgq.maint_rotate_tables_step1('nobody');
--> maint_rotate_tables_step1
-->   0
-- case: a queue with consumers is not dropped
SELECT pgq.drop_queue('orders');
--> ERROR P0001: cannot drop queue, consumers still attached
-->   CONTEXT: PL/pgSQL function pgq.drop_queue(text,boolean) line 41 at RAISE
-->     PL/pgSQL function pgq.drop_queue(text) line 10 at RETURN
SELECT pgq.drop_queue('orders', true);
--> drop_queue
-->   1
SELECT pgq.drop_queue('orders');
--> ERROR P0001: No such event queue
-->   CONTEXT: PL/pgSQL function pgq.drop_queue(text,boolean) line 30 at RAISE
-->     PL/pgSQL function pgq.drop_queue(text) line 10 at RETURN
SELECT count(*) FROM pgq.queue;
--> count
-->   0
