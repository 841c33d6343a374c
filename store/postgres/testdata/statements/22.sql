/* xxljob */ (select n.trigger_next_time from {{schema}}.xxl_job_next n
	where n.trigger_status = 1 and n.trigger_next_time > 0 and n.trigger_next_time > $1 and n.shard = any($2::smallint[])
	order by n.trigger_next_time limit 1)
	union all
	(select l.scheduled_time from {{schema}}.xxl_job_log l
	where l.state = 0 and l.plan_epoch is null and l.scheduled_time > $1 and l.shard = any($2::smallint[])
		and l.id between $3 and $4
	order by l.scheduled_time limit 1)
;;
/* xxljob */ (select null::bigint, null::int, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.inbox = $1 and l.state = 1 and l.id > $2 and l.id between $3 and $4
		order by l.id limit $5)
	union all
	(select null, null, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.kill_reason is not null and l.state in (1, 2) and l.executor_address = $6 and l.taken_time is not null
	and l.id between $3 and $4 order by l.id)
	union all
	(select a.id, a.from_line, r.* from {{schema}}.xxl_job_ask a
	cross join lateral (select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l where l.id = a.run_id limit 1) r
	where a.incarnation = $1 and a.answered is null and a.asked > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - interval '1 minute' order by a.id limit $5)
;;
/* xxljob */ delete from {{schema}}.xxl_job_alarm a where a.id = any(array(select o.id from {{schema}}.xxl_job_alarm o
		where o.add_time < $1::pg_catalog.timestamptz and (o.status <> 0 or o.add_time < $2::pg_catalog.timestamptz) order by o.add_time limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_ask a where a.id = any(array(
		select p.id from {{schema}}.xxl_job_ask p where p.asked <= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - interval '1 minute' order by p.id limit $1 for update skip locked)) returning a.id
;;
/* xxljob */ delete from {{schema}}.xxl_job_change d where d.id = any(array(select c.id from {{schema}}.xxl_job_change c
	where c.at < $1::pg_catalog.timestamptz order by c.at limit $2)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_group where app_name = $1 returning app_name, title, address_type, address_list, update_time
;;
/* xxljob */ delete from {{schema}}.xxl_job_info where id = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_list l where l.incarnation = $1
	and not exists (select from {{schema}}.xxl_job_node n where n.incarnation = $1)
;;
/* xxljob */ delete from {{schema}}.xxl_job_log l where l.id between $1 and $2
	and l.id = any(array(select p.id from pg_catalog.unnest($3::bigint[]) with ordinality r(id, ord)
		join {{schema}}.xxl_job_log p on p.id = r.id and r.ord = r.ord + 0 and p.id between $1 and $2 and p.state + 0 > 2
		where p.scheduled_time <= (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint
		and (select o.id from {{schema}}.xxl_job_log o where o.trigger_id = coalesce(p.trigger_id, p.id) and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.id from {{schema}}.xxl_job_log o where o.id = p.trigger_id and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.log_id from {{schema}}.xxl_job_owed o where o.log_id = p.id limit 1) is null
		and (select w.parent_id from {{schema}}.xxl_job_window w where w.parent_id = p.id limit 1) is null
		and (select a.log_id from {{schema}}.xxl_job_alarm a where a.log_id = p.id and a.status = 0 limit 1) is null
		and (select t.job_id from {{schema}}.xxl_job_told t where t.job_id = p.job_id and t.is_open
			and (t.log_id = p.id or p.state = 3 and p.snoozed is null and p.id > coalesce(t.log_id, 0)) limit 1) is null
		and (select n.job_id from {{schema}}.xxl_job_next n where n.job_id = p.job_id and n.wait_run = p.id limit 1) is null
		and (select k.run_id from {{schema}}.xxl_job_trigger_key k join {{schema}}.xxl_job_info i on i.id = k.job_id
			where k.run_id = p.id and pg_catalog.starts_with(k.trigger_key, 'xxljob/join/')
			and coalesce(p.business_time, 0) + case when i.after_window > 0 then i.after_window else 86400000 end + case when i.after_timeout > 0 then i.after_timeout else 86400000 end + 3600000 > (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint limit 1) is null order by p.id for update of p skip locked)) returning l.id, l.job_id
;;
/* xxljob */ delete from {{schema}}.xxl_job_log l where l.id between $1 and $2
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2 limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_log_page l where l.run_id between $1 and $2
	and l.ctid = any(array(select p.ctid from {{schema}}.xxl_job_log_page p where p.run_id between $1 and $2
		order by p.run_id, p.first_line limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_log_use u where u.day between ($1::bigint / 8192::bigint / 86400000::bigint)::int and ($2::bigint / 8192::bigint / 86400000::bigint)::int
	and u.ctid = any(array(select p.ctid from {{schema}}.xxl_job_log_use p where p.day between ($1::bigint / 8192::bigint / 86400000::bigint)::int and ($2::bigint / 8192::bigint / 86400000::bigint)::int
		order by p.day, p.job_id limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_named where job_id = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_next where job_id = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_node where incarnation = $1 and beats = $2
	and not exists (select from {{schema}}.xxl_job_log l where l.shard in (select shard from {{schema}}.xxl_job_lock)
		and l.state in (1, 2)
		and (l.start_owner = $1 or l.executor_address = $3) and l.id between $4 and $5)
	returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_owed where id = any($1::bigint[])
;;
/* xxljob */ delete from {{schema}}.xxl_job_part p
	where p.trigger_id = any(array(select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id between $1 and $2 limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_registry r where r.ctid = any(array(
		select p.ctid from {{schema}}.xxl_job_registry p where p.registry_group || '' = 'EXECUTOR'
		and p.update_time < pg_catalog.clock_timestamp() - $1::bigint::double precision * interval '1 microsecond' for update skip locked))
;;
/* xxljob */ delete from {{schema}}.xxl_job_told t where t.job_id = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_told t where t.job_id = any($1::int[])
	and not exists (select from {{schema}}.xxl_job_info i where i.id = t.job_id)
;;
/* xxljob */ delete from {{schema}}.xxl_job_trigger_key k
	where k.ctid = any(array(select p.ctid from {{schema}}.xxl_job_trigger_key p where p.run_id between $1 and $2
		and not exists (select from {{schema}}.xxl_job_ahead a where a.id = p.run_id) limit $3)) returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any($1::bigint[])
;;
/* xxljob */ delete from {{schema}}.xxl_job_user where username = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_code
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_code c where c.id <= (select o.id from {{schema}}.xxl_job_user_code o order by o.id desc offset $1 limit 1)
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_session d where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o
	where o.username = $1 order by o.seen desc, o.id desc offset $2))
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_session d where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o where o.began < pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $1::bigint::double precision * interval '1 millisecond'
		order by o.began limit 1000 for update skip locked))
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_session d where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o where o.seen < pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $1::bigint::double precision * interval '1 millisecond'
		order by o.seen limit 1000 for update skip locked))
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_session where username = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_session where username = $1 and id = $2 returning 1
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_token k where k.username = $1 and k.id = $2 returning k.id, k.username, k.name, k.role, k.permission, k.scripts, k.hash, k.added, k.expires, k.used
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_token where username = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_user_try where bucket = $1
;;
/* xxljob */ delete from {{schema}}.xxl_job_window w using unnest($1::int[], $2::bigint[]) r(job_id, begins)
	where w.job_id = r.job_id and w.begins = r.begins
;;
/* xxljob */ insert into {{schema}}.xxl_job_ahead as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time, move_time)
	select coalesce($1::bigint, (select $2::bigint operator(pg_catalog.+)
	(((n.n operator(pg_catalog./) 512::bigint) operator(pg_catalog.%) 3600000::bigint) operator(pg_catalog.*) 8192::bigint) operator(pg_catalog.+)
	7680::bigint operator(pg_catalog.+) (n.n operator(pg_catalog.%) 512::bigint)
	from (select pg_catalog.nextval('{{schema}}.xxl_job_ahead_id') n) n)), i.id, i.shard, i.app_name, $3, greatest($4::bigint, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint), 0, $5, $6, $7, $8, $9, $10, $11, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $12
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $13 for key share of i returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ insert into {{schema}}.xxl_job_ahead as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time, move_time)
	select coalesce($1::bigint, (select $2::bigint operator(pg_catalog.+)
	(((n.n operator(pg_catalog./) 512::bigint) operator(pg_catalog.%) 3600000::bigint) operator(pg_catalog.*) 8192::bigint) operator(pg_catalog.+)
	7680::bigint operator(pg_catalog.+) (n.n operator(pg_catalog.%) 512::bigint)
	from (select pg_catalog.nextval('{{schema}}.xxl_job_ahead_id') n) n)), i.id, i.shard, i.app_name, $3, greatest($4::bigint, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint), 0, $5, $6, $7, $8, $9, $10, $11, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $12
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $13 returning l.id
;;
/* xxljob */ insert into {{schema}}.xxl_job_alarm as r (shard, job_id, job_version, app_name, job_key, job_desc, alarm_email, cause, log_id, trigger_id, state, attempt, instant, content, add_time)
	select a.shard, a.job_id, coalesce(i.version, 0), coalesce(nullif(a.app, ''), i.app_name, ''), coalesce(i.job_key, ''), coalesce(i.job_desc, ''), coalesce(i.alarm_email, ''), a.cause, a.run, a.trigger, a.state, a.attempt, nullif(a.instant, 0), a.content, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) from (select * from unnest($1::smallint[], $2::int[], $3::pg_catalog.text[], $4::pg_catalog.text[],
		$5::bigint[], $6::bigint[], $7::pg_catalog.text[], $8::smallint[], $9::bigint[], $10::pg_catalog.text[])
		with ordinality a(shard, job_id, app, cause, run, trigger, state, attempt, instant, content, ord) order by run, ord) a
	left join {{schema}}.xxl_job_info i on i.id = a.job_id
	on conflict do nothing returning r.shard
;;
/* xxljob */ insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, app_name, after, definition)
	select c.id, 1, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, 'add', c.app, c.after, c.definition
	from unnest($4::int[], $5::pg_catalog.text[], $6::pg_catalog.text[], $7::pg_catalog.text[]) c(id, app, after, definition)
;;
/* xxljob */ insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, object, object_id, app_name, after)
	select i.id, 0, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text, 'run', $5::pg_catalog.text, i.app_name, $6::pg_catalog.text
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $7 returning id
;;
/* xxljob */ insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, object, object_id, app_name, before, after, definition) values ($1, $2, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning id
;;
/* xxljob */ insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, object, object_id, app_name, before, after, definition) values ($1, $2, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning id, at
;;
/* xxljob */ insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb, app_name, before, after, definition)
	select i.id, i.version, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), 'scheduler', 'stop', i.app_name, $1::pg_catalog.text, c.after, c.definition
	from unnest($2::int[], $3::pg_catalog.text[], $4::pg_catalog.text[]) c(id, after, definition)
	join {{schema}}.xxl_job_info i on i.id = c.id order by i.id
;;
/* xxljob */ insert into {{schema}}.xxl_job_group (app_name, title, address_type, address_list, update_time) values ($1, '', 0, '{}', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))
	on conflict (app_name) do nothing returning 1
;;
/* xxljob */ insert into {{schema}}.xxl_job_group as g (app_name, title, address_type, address_list, update_time)
	values ($1, $2, $3, $4, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))
	on conflict (app_name) do update set title = excluded.title, address_type = excluded.address_type,
		address_list = excluded.address_list, update_time = excluded.update_time
;;
/* xxljob */ insert into {{schema}}.xxl_job_info (id, shard, version, app_name, job_key, job_desc, author, alarm_email, schedule_type, schedule_conf, schedule_zone, schedule_dst, misfire_strategy, catch_up, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, trigger_status, stop_reason, ensured, add_time, update_time, not_before, not_after, max_runs, max_per_executor, on_lost, retry_pause, retry_pause_max, retry_jitter, retry_aside, max_reruns, max_snoozes, child_keys, child_param, after_jobs, after_keys, after_window, after_zone, after_timeout, late_after, tags, keep_runs)
	select * from unnest($1::int[], $2::smallint[], $3::bigint[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::pg_catalog.text[], $7::pg_catalog.text[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::pg_catalog.text[], $11::pg_catalog.text[], $12::pg_catalog.text[], $13::pg_catalog.text[], $14::pg_catalog.text[], $15::pg_catalog.text[], $16::pg_catalog.text[], $17::pg_catalog.text[], $18::pg_catalog.text[], $19::bigint[], $20::int[], $21::pg_catalog.text[], $22::pg_catalog.text[], $23::pg_catalog.text[], $24::pg_catalog.timestamptz[], $25::pg_catalog.text[], $26::smallint[], $27::pg_catalog.text[], $28::pg_catalog.text[], $29::pg_catalog.timestamptz[], $30::pg_catalog.timestamptz[], $31::bigint[], $32::bigint[], $33::int[], $34::int[], $35::pg_catalog.text[], $36::bigint[], $37::bigint[], $38::smallint[], $39::boolean[], $40::int[], $41::int[], $42::pg_catalog.text[], $43::pg_catalog.text[], $44::pg_catalog.text[], $45::pg_catalog.text[], $46::bigint[], $47::pg_catalog.text[], $48::bigint[], $49::bigint[], $50::pg_catalog.text[], $51::bigint[]) on conflict (app_name, job_key) do nothing returning id
;;
/* xxljob */ insert into {{schema}}.xxl_job_info (id, shard, version, app_name, job_key, job_desc, author, alarm_email, schedule_type, schedule_conf, schedule_zone, schedule_dst, misfire_strategy, catch_up, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, trigger_status, stop_reason, ensured, add_time, update_time, not_before, not_after, max_runs, max_per_executor, on_lost, retry_pause, retry_pause_max, retry_jitter, retry_aside, max_reruns, max_snoozes, child_keys, child_param, after_jobs, after_keys, after_window, after_zone, after_timeout, late_after, tags, keep_runs)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51)
	on conflict (app_name, job_key) do nothing returning id
;;
/* xxljob */ insert into {{schema}}.xxl_job_list as l (app_name, incarnation, generation, prune, digest, job_keys)
	select $1, n.incarnation, $2, $3, $4, $5
		from {{schema}}.xxl_job_node n where n.incarnation = $6 for key share of n
	on conflict (app_name, incarnation) do update set generation = excluded.generation, prune = excluded.prune,
		digest = excluded.digest, job_keys = excluded.job_keys
	where (l.generation, l.prune, l.digest) is distinct from (excluded.generation, excluded.prune, excluded.digest)
;;
/* xxljob */ insert into {{schema}}.xxl_job_list_head (app_name, generation, digest, node_id)
	values ($1, $2, $3, $4)
	on conflict (app_name) do nothing
;;
/* xxljob */ insert into {{schema}}.xxl_job_lock (lock_name, shard, owner, epoch)
	select 'shard_' || n::pg_catalog.text, n, '', 0 from pg_catalog.generate_series(0, $1::int - 1) n
	where not exists (select from {{schema}}.xxl_job_lock)
;;
/* xxljob */ insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, add_time, handle_time, executor_fail_retry_count)
	values (((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), $1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), -1) returning id
;;
/* xxljob */ insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_id, parent_id, depth, business_time, attempt, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, born, reruns, snoozes, trace, plan_epoch, job_version, executor_handler, executor_block_strategy, executor_address, executor_boot_id, start_owner, start_token, inbox, add_time, trigger_time, taken_time, trigger_msg, first_time, last_time, instants, reason)
	select ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), l.job_id, l.shard, l.app_name, coalesce(l.trigger_id, l.id), l.parent_id, l.depth, l.business_time, l.attempt, l.trigger_type, l.scheduled_time, 1, s.sharding, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.retries_set, l.born, l.reruns, l.snoozes, l.trace, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, s.address, s.boot, s.owner, l.start_token, s.inbox, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), l.trigger_time, case when s.mine then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end, l.trigger_msg, l.first_time, l.last_time, l.instants, l.reason
	from {{schema}}.xxl_job_log l, (select * from unnest($1::pg_catalog.text[], $2::pg_catalog.text[],
		$3::pg_catalog.text[], $4::pg_catalog.text[], $5::boolean[], $6::pg_catalog.text[])
		with ordinality s(sharding, address, owner, inbox, mine, boot, ord) order by ord) s
	where l.id = $7
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time)
	select coalesce($1::bigint, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint)), i.id, i.shard, i.app_name, $2, greatest($3::bigint, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint), 0, $4, $5, $6, $7, $8, $9, $10, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $11 for key share of i returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time)
	select coalesce($1::bigint, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint)), i.id, i.shard, i.app_name, $2, greatest($3::bigint, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint), 0, $4, $5, $6, $7, $8, $9, $10, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $11 returning l.id
;;
/* xxljob */ insert into {{schema}}.xxl_job_named (job_id, generation) select c.id, $2::bigint from pg_catalog.unnest($1::int[]) c(id)
;;
/* xxljob */ insert into {{schema}}.xxl_job_named as m (job_id, generation)
	select i.id, $1::bigint from (select distinct k from pg_catalog.unnest($2::pg_catalog.text[]) k where k <> '') k
	cross join lateral (select * from {{schema}}.xxl_job_info i where i.app_name = $3 and i.job_key = k.k offset 0) i
	where (select o.generation from {{schema}}.xxl_job_named o where o.job_id = i.id) is distinct from $1::bigint order by i.id
	on conflict (job_id) do update set generation = excluded.generation
;;
/* xxljob */ insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, run_count, version, delay, job_id, shard, trigger_status, manual, app_name, not_after, max_runs)
	select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::int[], $8::smallint[], $9::smallint[], $10::boolean[], $11::pg_catalog.text[], $12::bigint[], $13::int[])
;;
/* xxljob */ insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, run_count, version, delay, job_id, shard, trigger_status, manual, app_name, not_after, max_runs)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
;;
/* xxljob */ insert into {{schema}}.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, app_name, job_key, is_join, param_of, business_time, depth, trace)
	select * from unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[],
		$6::pg_catalog.text[], $7::pg_catalog.text[], $8::boolean[], $9::smallint[], $10::bigint[], $11::smallint[],
		$12::pg_catalog.text[])
;;
/* xxljob */ insert into {{schema}}.xxl_job_part as p (trigger_id) select t.id from pg_catalog.unnest($1::bigint[]) t(id) order by t.id
	on conflict (trigger_id) do update set succeeded = p.succeeded
;;
/* xxljob */ insert into {{schema}}.xxl_job_registry as r (registry_group, registry_key, registry_value, boot_id, capabilities, update_time)
	select 'EXECUTOR', b.app, b.address, b.boot, b.can::pg_catalog.text[], pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp())
	from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.text[])
		with ordinality b(app, address, boot, can, ord)
	order by b.ord
	on conflict (registry_group, registry_key, registry_value) do update
		set boot_id = excluded.boot_id, capabilities = excluded.capabilities, update_time = pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()),
		former_boot = case when r.boot_id = excluded.boot_id then r.former_boot else r.boot_id end,
		former_seen = case when r.boot_id = excluded.boot_id then r.former_seen else r.update_time end
	returning 1
;;
/* xxljob */ insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more)
	select r.quarter, r.app, coalesce((select f.slot from {{schema}}.xxl_job_report f where f.quarter = r.quarter and f.app_name = r.app collate "C" and f.slot = $1::smallint for update skip locked), case when exists (select from {{schema}}.xxl_job_report f where f.quarter = r.quarter and f.app_name = r.app collate "C" and f.slot = $1::smallint) then $2::smallint else $1::smallint end), ($3::bigint[])[(r.ord - 1) * 50 + 1], ($3::bigint[])[(r.ord - 1) * 50 + 2], ($3::bigint[])[(r.ord - 1) * 50 + 3], ($3::bigint[])[(r.ord - 1) * 50 + 4], ($3::bigint[])[(r.ord - 1) * 50 + 5], ($3::bigint[])[(r.ord - 1) * 50 + 6], ($3::bigint[])[(r.ord - 1) * 50 + 7], ($3::bigint[])[(r.ord - 1) * 50 + 8], ($3::bigint[])[(r.ord - 1) * 50 + 9], ($3::bigint[])[(r.ord - 1) * 50 + 10], ($3::bigint[])[(r.ord - 1) * 50 + 11], ($3::bigint[])[(r.ord - 1) * 50 + 12], ($3::bigint[])[(r.ord - 1) * 50 + 13], ($3::bigint[])[(r.ord - 1) * 50 + 14], ($3::bigint[])[(r.ord - 1) * 50 + 15], ($3::bigint[])[(r.ord - 1) * 50 + 16], ($3::bigint[])[(r.ord - 1) * 50 + 17], ($3::bigint[])[(r.ord - 1) * 50 + 18], ($3::bigint[])[(r.ord - 1) * 50 + 19], ($3::bigint[])[(r.ord - 1) * 50 + 20], ($3::bigint[])[(r.ord - 1) * 50 + 21], ($3::bigint[])[(r.ord - 1) * 50 + 22], ($3::bigint[])[(r.ord - 1) * 50 + 23], ($3::bigint[])[(r.ord - 1) * 50 + 24], ($3::bigint[])[(r.ord - 1) * 50 + 25], ($3::bigint[])[(r.ord - 1) * 50 + 26], ($3::bigint[])[(r.ord - 1) * 50 + 27], ($3::bigint[])[(r.ord - 1) * 50 + 28], ($3::bigint[])[(r.ord - 1) * 50 + 29], ($3::bigint[])[(r.ord - 1) * 50 + 30], ($3::bigint[])[(r.ord - 1) * 50 + 31], ($3::bigint[])[(r.ord - 1) * 50 + 32], ($3::bigint[])[(r.ord - 1) * 50 + 33], ($3::bigint[])[(r.ord - 1) * 50 + 34], ($3::bigint[])[(r.ord - 1) * 50 + 35], ($3::bigint[])[(r.ord - 1) * 50 + 36], ($3::bigint[])[(r.ord - 1) * 50 + 37], ($3::bigint[])[(r.ord - 1) * 50 + 38], ($3::bigint[])[(r.ord - 1) * 50 + 39], ($3::bigint[])[(r.ord - 1) * 50 + 40], ($3::bigint[])[(r.ord - 1) * 50 + 41], ($3::bigint[])[(r.ord - 1) * 50 + 42], ($3::bigint[])[(r.ord - 1) * 50 + 43], ($3::bigint[])[(r.ord - 1) * 50 + 44], ($3::bigint[])[(r.ord - 1) * 50 + 45], ($3::bigint[])[(r.ord - 1) * 50 + 46], ($3::bigint[])[(r.ord - 1) * 50 + 47], ($3::bigint[])[(r.ord - 1) * 50 + 48], ($3::bigint[])[(r.ord - 1) * 50 + 49], ($3::bigint[])[(r.ord - 1) * 50 + 50]
	from (select pg_catalog.unnest($4::bigint[]) quarter, pg_catalog.unnest($5::pg_catalog.text[]) app, pg_catalog.unnest($6::int[]) ord) r where r.ord = r.ord + 0 order by r.quarter, r.app collate "C"
	on conflict (quarter, app_name, slot) do update set succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed, timed_out = t.timed_out + excluded.timed_out, killed = t.killed + excluded.killed, lost = t.lost + excluded.lost, refused = t.refused + excluded.refused, discarded = t.discarded + excluded.discarded, skipped = t.skipped + excluded.skipped, cancelled = t.cancelled + excluded.cancelled, snoozed = t.snoozed + excluded.snoozed, late_sum = t.late_sum + excluded.late_sum, late_1 = t.late_1 + excluded.late_1, late_2 = t.late_2 + excluded.late_2, late_5 = t.late_5 + excluded.late_5, late_10 = t.late_10 + excluded.late_10, late_20 = t.late_20 + excluded.late_20, late_50 = t.late_50 + excluded.late_50, late_100 = t.late_100 + excluded.late_100, late_200 = t.late_200 + excluded.late_200, late_500 = t.late_500 + excluded.late_500, late_1000 = t.late_1000 + excluded.late_1000, late_2000 = t.late_2000 + excluded.late_2000, late_5000 = t.late_5000 + excluded.late_5000, late_10000 = t.late_10000 + excluded.late_10000, late_20000 = t.late_20000 + excluded.late_20000, late_50000 = t.late_50000 + excluded.late_50000, late_100000 = t.late_100000 + excluded.late_100000, late_200000 = t.late_200000 + excluded.late_200000, late_300000 = t.late_300000 + excluded.late_300000, late_more = t.late_more + excluded.late_more, took_sum = t.took_sum + excluded.took_sum, took_1 = t.took_1 + excluded.took_1, took_2 = t.took_2 + excluded.took_2, took_5 = t.took_5 + excluded.took_5, took_10 = t.took_10 + excluded.took_10, took_20 = t.took_20 + excluded.took_20, took_50 = t.took_50 + excluded.took_50, took_100 = t.took_100 + excluded.took_100, took_200 = t.took_200 + excluded.took_200, took_500 = t.took_500 + excluded.took_500, took_1000 = t.took_1000 + excluded.took_1000, took_2000 = t.took_2000 + excluded.took_2000, took_5000 = t.took_5000 + excluded.took_5000, took_10000 = t.took_10000 + excluded.took_10000, took_20000 = t.took_20000 + excluded.took_20000, took_50000 = t.took_50000 + excluded.took_50000, took_100000 = t.took_100000 + excluded.took_100000, took_200000 = t.took_200000 + excluded.took_200000, took_300000 = t.took_300000 + excluded.took_300000, took_more = t.took_more + excluded.took_more
;;
/* xxljob */ insert into {{schema}}.xxl_job_setting (name, value) values ($1, $2) on conflict do nothing
;;
/* xxljob */ insert into {{schema}}.xxl_job_told as t (job_id, rule, shard, at, is_open, log_id, trigger_id)
	select i.id, r.rule, i.shard, r.at, r.is_open, r.run, r.trigger
	from unnest($1::int[], $2::pg_catalog.text[], $3::bigint[], $4::boolean[], $5::bigint[], $6::bigint[]) r(job_id, rule, at, is_open, run, trigger)
	join {{schema}}.xxl_job_info i on i.id = r.job_id order by i.id, r.rule
	on conflict (job_id, rule) do update set at = excluded.at, is_open = excluded.is_open, log_id = excluded.log_id, trigger_id = excluded.trigger_id
;;
/* xxljob */ insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, $1::pg_catalog.text, (select $2::bigint operator(pg_catalog.+)
	(((n.n operator(pg_catalog./) 512::bigint) operator(pg_catalog.%) 3600000::bigint) operator(pg_catalog.*) 8192::bigint) operator(pg_catalog.+)
	7680::bigint operator(pg_catalog.+) (n.n operator(pg_catalog.%) 512::bigint)
	from (select pg_catalog.nextval('{{schema}}.xxl_job_ahead_id') n) n) from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $3
	on conflict do nothing returning run_id
;;
/* xxljob */ insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, $2::pg_catalog.text, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint) from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $1
	on conflict do nothing returning run_id
;;
/* xxljob */ insert into {{schema}}.xxl_job_user as u (username, title, password, role, permission, scripts, disabled, settings, version, added, password_set)
	values ($1, $2, $3, $4, $5, $6, $7, $8, 1, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))
	on conflict (username) do nothing returning u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set
;;
/* xxljob */ insert into {{schema}}.xxl_job_user_code (hash, until) values ($1, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) + $2::bigint::double precision * interval '1 millisecond')
	on conflict (hash) do update set until = excluded.until
;;
/* xxljob */ insert into {{schema}}.xxl_job_user_session as o (hash, username, client, agent, began, seen, proved)
	values ($1, $2, $3, $4, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) on conflict (hash) do nothing returning o.hash, o.id, o.username, o.client, o.agent, o.began, o.seen, o.proved
;;
/* xxljob */ insert into {{schema}}.xxl_job_user_token as k (username, name, role, permission, scripts, hash, added, expires)
	values ($1, $2, $3, $4, $5, $6, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), $7) returning k.id, k.username, k.name, k.role, k.permission, k.scripts, k.hash, k.added, k.expires, k.used
;;
/* xxljob */ insert into {{schema}}.xxl_job_user_try as y (bucket, failed, last) values ($1, 1, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))
	on conflict (bucket) do update set failed = case when y.last <= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $2::double precision * interval '1 second' then 1 else y.failed + 1 end,
		last = case when y.last > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) + interval '1 minute' then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) else greatest(y.last, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) end
	where y.failed < $3::int or y.last > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) + interval '1 minute'
		or y.last <= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - interval '1 second' * least(power(2, least(y.failed - $3::int, 10)), $4::double precision) returning 1
;;
/* xxljob */ insert into {{schema}}.xxl_job_window as w (job_id, begins, shard, expires, parent_id, depth, succeeded)
	values ($1, $2, $3, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint + $4::bigint, $5, $6, $7::int[])
	on conflict (job_id, begins) do update set parent_id = excluded.parent_id, depth = greatest(w.depth, excluded.depth),
		succeeded = array(select distinct s.id from pg_catalog.unnest(w.succeeded operator(pg_catalog.||) excluded.succeeded) s(id) order by s.id)
	returning w.depth, w.succeeded, w.xmax = 0
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = $1 and i.job_key = $2
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.id = $1 and i.app_name = $2 and i.trigger_status = 1 and i.job_key <> ''
	and least(m.generation, (select h.generation from {{schema}}.xxl_job_list_head h where h.app_name = $2)) <= (select l.generation from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = $2 and l.incarnation = $3 and l.prune
		and l.generation = $4 and l.digest = $5)
	and not exists (select 1 from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = $2 and i.job_key = any(l.job_keys))
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_lock where shard = any($1::smallint[]) order by shard for update
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_next where job_id = $1 for no key update
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_next where job_id = $1 for update
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_node where incarnation = $1 for update
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_setting where name = 'schema_version' for update
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_setting where name = 'schema_version' for update skip locked
;;
/* xxljob */ select 1 from {{schema}}.xxl_job_user u where u.username = $1 for no key update
;;
/* xxljob */ select a.answered is not null, coalesce(a.to_line, 0), coalesce(a.is_end, false), coalesce(a.content, ''), coalesce(a.refusal, '')
	from {{schema}}.xxl_job_ask a where a.id = $1 and a.asked > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - interval '1 minute'
;;
/* xxljob */ select a.id from {{schema}}.xxl_job_ahead a where a.state = 0 and a.move_time <= $1 and a.shard = any($2::smallint[]) and a.id >= $3
	order by a.move_time, a.id limit $4
;;
/* xxljob */ select a.id, a.shard, a.app_name, a.job_key, a.job_desc, a.alarm_email, a.job_id, a.job_version, a.cause, a.log_id, a.trigger_id,
		a.state, a.attempt, a.instant, a.content, a.add_time, a.told, a.gave_up
	from {{schema}}.xxl_job_alarm a where a.status = 0 and a.shard = any($1::smallint[]) and a.id > $2::bigint order by a.id limit $3
;;
/* xxljob */ select a.pid, coalesce(a.usename, '?')::pg_catalog.text, coalesce(a.application_name, '?'), coalesce(a.client_addr::pg_catalog.text, 'local'),
		coalesce(a.state, 'state unknown'), coalesce(pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - coalesce(a.state_change, a.xact_start))::pg_catalog.text, '?')
	from pg_catalog.pg_stat_activity a where a.pid <> pg_catalog.pg_backend_pid() and a.pid in (select p.pid from pg_catalog.pg_locks p where p.granted and p.locktype = 'relation'
		and p.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
		and p.relation in (select c.oid from pg_catalog.pg_class c where c.relnamespace =
			(select k.relnamespace from pg_catalog.pg_class k where k.oid = '{{schema}}.xxl_job_lock'::pg_catalog.regclass::pg_catalog.oid))) order by a.pid limit 10
;;
/* xxljob */ select a.pid, coalesce(a.usename, '?')::pg_catalog.text, coalesce(a.application_name, '?'), coalesce(a.client_addr::pg_catalog.text, 'local'),
		coalesce(a.state, 'state unknown'), coalesce(pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - coalesce(a.state_change, a.xact_start))::pg_catalog.text, '?')
	from pg_catalog.pg_stat_activity a where a.pid <> pg_catalog.pg_backend_pid() and a.pid in (select p.pid from pg_catalog.pg_locks p where p.granted and p.locktype = 'transactionid' and p.transactionid in (
		select k.xmax from {{schema}}.xxl_job_lock k where k.shard = any($1::smallint[])
		union all select i.xmax from {{schema}}.xxl_job_info i where i.id = any($2::bigint[])
		union all select x.xmax from {{schema}}.xxl_job_next x where x.job_id = any($2::bigint[])
		union all select l.xmax from {{schema}}.xxl_job_log l where l.id = any($3::bigint[]) and l.id between $4::bigint and $5::bigint))
	order by a.pid limit 10
;;
/* xxljob */ select app_name, title, address_type, address_list, update_time from {{schema}}.xxl_job_group order by app_name
;;
/* xxljob */ select app_name, title, address_type, address_list, update_time from {{schema}}.xxl_job_group where app_name = $1
;;
/* xxljob */ select app_name, title, address_type, address_list, update_time from {{schema}}.xxl_job_group where app_name = $1 for no key update
;;
/* xxljob */ select c.definition from {{schema}}.xxl_job_change c
	where c.job_id = $1::bigint and c.version = $2::bigint and c.definition is not null order by c.id desc limit 1
;;
/* xxljob */ select c.hash = $1 and c.until > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) from {{schema}}.xxl_job_user_code c order by c.hash for update
;;
/* xxljob */ select c.id, c.at, c.actor, c.client, c.request_id, c.verb, c.object, case when c.object = 'job' then c.job_id::pg_catalog.text else c.object_id end,
	c.app_name, c.job_id, c.version, c.before, c.after from {{schema}}.xxl_job_change c where c.job_id = $1::bigint and c.object = 'job' order by c.id desc limit $2
;;
/* xxljob */ select c.relname from pg_catalog.pg_inherits h join pg_catalog.pg_class c on c.oid = h.inhrelid
	where h.inhparent = '{{schema}}.xxl_job_log'::pg_catalog.regclass::pg_catalog.oid order by c.relname
;;
/* xxljob */ select c.relname from pg_catalog.pg_inherits h join pg_catalog.pg_class c on c.oid = h.inhrelid
	where h.inhparent = '{{schema}}.xxl_job_log_page'::pg_catalog.regclass::pg_catalog.oid order by c.relname
;;
/* xxljob */ select coalesce((select a.move_time from {{schema}}.xxl_job_ahead a where a.state = 0 and a.shard = any($1::smallint[])
	order by a.move_time, a.id limit 1), 0)
;;
/* xxljob */ select coalesce((select c.id from {{schema}}.xxl_job_change c where c.at < $1::pg_catalog.timestamptz order by c.at desc, c.id desc limit 1), 0) + 1,
	coalesce((select c.id from {{schema}}.xxl_job_change c where c.at >= $2::pg_catalog.timestamptz order by c.at, c.id limit 1), 9223372036854775807)
;;
/* xxljob */ select coalesce((select i.app_name from {{schema}}.xxl_job_info i where i.app_name >= $1 order by i.app_name limit 1) = $1, false)
;;
/* xxljob */ select coalesce((select pg_catalog.min(i.late_after) from {{schema}}.xxl_job_info i where i.late_after > 0 and i.shard = any($1::smallint[])), 0)
;;
/* xxljob */ select coalesce(least((select pg_catalog.min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state = 0),
		(select pg_catalog.min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state in (1, 2))), 0)
;;
/* xxljob */ select coalesce(p.pid, 0), coalesce(a.usename::pg_catalog.text, ''), coalesce(a.application_name, ''),
		(p.pid is not null and (a.usesysid is null or exists (select from pg_catalog.pg_roles r
		where pg_catalog.pg_has_role(a.usesysid, r.oid, 'MEMBER') and (pg_catalog.has_database_privilege(r.oid, p.database, 'CREATE') or exists (select from pg_catalog.pg_namespace n
			where n.nspname = $1::pg_catalog.text and pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'))))))
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = $2::bigint::oid and p.objid = $3::bigint::oid
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
;;
/* xxljob */ select coalesce(p.pid, 0), coalesce(a.usename::pg_catalog.text, ''), coalesce(a.application_name, ''), pg_catalog.array_agg(p.objid::bigint)
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = $1::bigint::oid and p.objid = any($2::bigint[]::oid[])
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
	and not (p.pid is not null and (a.usesysid is null or exists (select from pg_catalog.pg_roles r
		where pg_catalog.pg_has_role(a.usesysid, r.oid, 'MEMBER') and pg_catalog.has_table_privilege(r.oid, '{{schema}}.xxl_job_lock'::pg_catalog.regclass::oid, 'UPDATE'))))
	group by p.pid, a.usename, a.application_name order by p.pid
;;
/* xxljob */ select coalesce(pg_catalog.max(r.scheduled_time), 0), coalesce(pg_catalog.max(r.open), 0),
		(select n.counted_after from {{schema}}.xxl_job_next n where n.job_id = $1) from (
	(select l.scheduled_time, null::bigint as open from {{schema}}.xxl_job_log l
	where l.job_id = $1 and l.state > 2 and l.state not in (10, 11)
		and l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') order by l.id desc limit 1000)
	union all
	(select l.scheduled_time, l.id from {{schema}}.xxl_job_log l
	where l.shard = $2 and l.job_id = $1 and l.state in (1, 2) and l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE'))
	union all
	(select l.scheduled_time, l.id from {{schema}}.xxl_job_log l
	where l.job_id = $1 and l.state = 0 and l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE'))) r
;;
/* xxljob */ select coalesce(pg_catalog.min(f.at), $1::bigint) from pg_catalog.unnest($2::pg_catalog.text[]) a(app) cross join lateral
	(select e.at from ((select x.quarter at from {{schema}}.xxl_job_report x where x.app_name = a.app collate "C" and x.quarter >= $1::bigint and x.quarter < $3::bigint order by x.quarter limit $4::bigint + 1::bigint)
	union all (select (d.trigger_day - '1970-01-01'::pg_catalog.date)::bigint * 86400000::bigint from {{schema}}.xxl_job_log_report d where d.app_name = a.app collate "C" and d.trigger_day >= $5::pg_catalog.date and d.trigger_day < $6::pg_catalog.date order by d.trigger_day limit $4::bigint + 1::bigint)) e
	order by e.at offset $4::bigint limit 1) f
;;
/* xxljob */ select coalesce(pg_catalog.min(l.id), 0) from {{schema}}.xxl_job_log l where l.state in (1, 2)
	and l.id between $1 and $2
;;
/* xxljob */ select coalesce(pg_catalog.min(w.expires), 0) from unnest($1::smallint[], $2::bigint[]) s(id, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = s.id and k.epoch = s.epoch
	cross join lateral (select w.expires from {{schema}}.xxl_job_window w where w.shard = s.id order by w.expires limit 1) w
;;
/* xxljob */ select coalesce(pg_catalog.min(w.id + 0), 0) from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $1 and $2
;;
/* xxljob */ select distinct p.job_id from (select p.job_id from {{schema}}.xxl_job_log p where p.id between $1 and $2
	and p.state = 0
	order by p.id + 0 limit $3) p
;;
/* xxljob */ select e.at from ((select x.quarter at from {{schema}}.xxl_job_report x where x.quarter >= $1::bigint and x.quarter < $2::bigint order by x.quarter limit $3::bigint + 1::bigint)
	union all (select (d.trigger_day - '1970-01-01'::pg_catalog.date)::bigint * 86400000::bigint from {{schema}}.xxl_job_log_report d where d.trigger_day >= $4::pg_catalog.date and d.trigger_day < $5::pg_catalog.date order by d.trigger_day limit $3::bigint + 1::bigint)) e
	order by e.at offset $3::bigint limit 1
;;
/* xxljob */ select exists (select from pg_catalog.unnest($1::smallint[]) s(id)
	cross join lateral (select from {{schema}}.xxl_job_owed o where o.shard = s.id order by o.id limit 1) o)
;;
/* xxljob */ select exists (select from {{schema}}.xxl_job_owed o where o.log_id between $1 and $2)
	or exists (select from {{schema}}.xxl_job_log o where o.trigger_id between $1 and $2 and o.id > $2
		and o.id between $3 and $4 and o.state + 0 in (0, 1, 2))
;;
/* xxljob */ select exists (select from {{schema}}.xxl_job_user)
;;
/* xxljob */ select h.generation, h.digest, h.node_id from {{schema}}.xxl_job_list_head h where h.app_name = $1
;;
/* xxljob */ select h.generation, h.digest, h.node_id from {{schema}}.xxl_job_list_head h where h.app_name = $1 for no key update
;;
/* xxljob */ select h.generation, h.digest, h.node_id from {{schema}}.xxl_job_list_head h where h.app_name = $1 for share
;;
/* xxljob */ select i.app_name, i.job_key, i.id from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) r(app, key)
	join {{schema}}.xxl_job_info i on i.app_name = r.app collate "C" and i.job_key = r.key collate "C"
;;
/* xxljob */ select i.app_name, sum(case when i.trigger_status = 1 then 1 else 0 end)::int,
	sum(case when i.trigger_status = 0 and i.stop_reason <> 'manual' then 1 else 0 end)::int, sum(case when i.trigger_status = 0 and i.stop_reason = 'manual' then 1 else 0 end)::int
	from {{schema}}.xxl_job_info i group by i.app_name order by i.app_name collate "C"
;;
/* xxljob */ select i.id, i.app_name, coalesce(i.job_key, ''), i.job_desc, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst,
	i.not_before, i.not_after, i.max_runs, n.run_count, n.trigger_next_time
	from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard
	where n.trigger_status = 1 and i.id > $1::bigint and n.job_id > $1::bigint order by i.id limit $2
;;
/* xxljob */ select i.id, i.keep_runs from {{schema}}.xxl_job_info i where i.keep_runs > 0 and i.id >= $1 order by i.id limit $2
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs from {{schema}}.xxl_job_info i
	where i.id = any(array(select k.job_id from {{schema}}.xxl_job_link k union select i.id from {{schema}}.xxl_job_info i where (i.child_jobid <> '' or i.child_keys <> ''))) order by i.id
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs from {{schema}}.xxl_job_info i where i.id = any($1::int[])
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs from {{schema}}.xxl_job_info i where i.id = any($1::int[])
	and ((i.child_jobid <> '' or i.child_keys <> '') or (select k.job_id from {{schema}}.xxl_job_link k where k.other_id = i.id order by k.job_id limit 1) is not null or (select k.job_id from {{schema}}.xxl_job_link k where k.other_app = i.app_name and k.other_key = i.job_key order by k.job_id limit 1) is not null)
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs, n.trigger_next_time, n.trigger_last_time, n.wait_run, n.run_count from (select distinct k from pg_catalog.unnest($1::pg_catalog.text[]) k where k <> '') k
	cross join lateral (select * from {{schema}}.xxl_job_info i where i.app_name = $2 and i.job_key = k.k offset 0) i
	cross join lateral (select * from {{schema}}.xxl_job_next n where n.job_id = i.id and n.shard = i.shard offset 0) n order by i.id
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs, n.trigger_next_time, n.trigger_last_time, n.wait_run, n.run_count from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard where i.app_name = $1 and i.job_key = $2 and $2 <> ''
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs, n.trigger_next_time, n.trigger_last_time, n.wait_run, n.run_count from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard where i.id = $1
;;
/* xxljob */ select i.id, i.shard, i.version, i.app_name, i.job_key, i.job_desc, i.author, i.alarm_email, i.schedule_type, i.schedule_conf, i.schedule_zone, i.schedule_dst, i.misfire_strategy, i.catch_up, i.executor_route_strategy, i.executor_handler, i.executor_param, i.executor_block_strategy, i.executor_timeout, i.executor_fail_retry_count, i.glue_type, i.glue_source, i.glue_remark, i.glue_updatetime, i.child_jobid, i.trigger_status, i.stop_reason, i.ensured, i.add_time, i.update_time, i.not_before, i.not_after, i.max_runs, i.max_per_executor, i.on_lost, i.retry_pause, i.retry_pause_max, i.retry_jitter, i.retry_aside, i.max_reruns, i.max_snoozes, i.child_keys, i.child_param, i.after_jobs, i.after_keys, i.after_window, i.after_zone, i.after_timeout, i.late_after, i.tags, i.keep_runs, n.trigger_next_time, n.trigger_last_time, n.wait_run, n.run_count from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard where i.id = $1::bigint
;;
/* xxljob */ select i.id, i.version, i.trigger_status, i.stop_reason from {{schema}}.xxl_job_info i where i.id = any($1::int[])
;;
/* xxljob */ select i.id, j.id from {{schema}}.xxl_job_info i
		cross join lateral pg_catalog.unnest(array(select k.job_id from {{schema}}.xxl_job_link k where k.other_id = i.id)) j(id) where i.id = any($1::int[]) union select i.id, j.id from {{schema}}.xxl_job_info i
		cross join lateral pg_catalog.unnest(array(select k.job_id from {{schema}}.xxl_job_link k where k.other_app = i.app_name and k.other_key = i.job_key)) j(id) where i.id = any($1::int[]) order by 1, 2
;;
/* xxljob */ select i.job_key from (select distinct k from pg_catalog.unnest($1::pg_catalog.text[]) k where k <> '') k
	cross join lateral (select * from {{schema}}.xxl_job_info i where i.app_name = $2 and i.job_key = k.k offset 0) i
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from (select l.* from {{schema}}.xxl_job_log l
		where l.parent_id = $1::bigint and l.id > $2::bigint order by l.id limit $3) l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true order by l.id
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from (select l.* from {{schema}}.xxl_job_log l
		where l.state = 0 and (l.scheduled_time, l.id) > ($1::bigint, $2::bigint) and l.id between $3 and $4
		order by l.scheduled_time, l.id limit $5) l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true order by l.scheduled_time, l.id
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from pg_catalog.unnest($1::int[]) with ordinality a(job, ord)
	cross join lateral (select l.* from {{schema}}.xxl_job_log l where l.job_id = a.job and l.state > 2 order by l.id desc limit $2) l
	left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true order by a.ord, l.id desc
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_ahead l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true where l.id = $1
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_ahead l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true where l.id = any($1::bigint[])
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true
	where l.id = any($1::bigint[]) and l.id between $2 and $3 order by l.id
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true where l.id = $1
;;
/* xxljob */ select j.job_desc, j.job_key, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l left join lateral (select i.job_desc, i.job_key from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1) j on true where l.trigger_id = $1 order by l.id limit 9999
;;
/* xxljob */ select k.id, k.username, k.name, k.role, k.permission, k.scripts, k.hash, k.added, k.expires, k.used from {{schema}}.xxl_job_user_token k where k.username = $1 order by k.id
;;
/* xxljob */ select k.id, k.username, k.name, k.role, k.permission, k.scripts, k.hash, k.added, k.expires, k.used, k.used is null or k.used <= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $1::bigint::double precision * interval '1 millisecond', u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set
	from {{schema}}.xxl_job_user_token k join {{schema}}.xxl_job_user u on u.username = k.username
	where k.id = $2 and k.hash = $3 and k.expires > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) and not u.disabled
;;
/* xxljob */ select k.run_id from {{schema}}.xxl_job_trigger_key k
	where k.job_id operator(pg_catalog.=) $1 and k.trigger_key operator(pg_catalog.=) $2
;;
/* xxljob */ select k.shard, k.epoch from {{schema}}.xxl_job_lock k where k.shard = any($1::smallint[])
;;
/* xxljob */ select l.id from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3
	and l.state + 0 in (1, 2)
;;
/* xxljob */ select l.id from {{schema}}.xxl_job_log l where l.job_id = $1 and l.state > 2 order by l.id desc offset $2 limit 1
;;
/* xxljob */ select l.id, l.job_id from {{schema}}.xxl_job_log l where l.shard = any($1::smallint[])
	and l.state in (1, 2) and l.id between $2 and $3
;;
/* xxljob */ select l.id, l.job_id, coalesce(l.trigger_id, l.id) from {{schema}}.xxl_job_log l
	where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.state + 0 in (1, 2)
		order by l.id for no key update skip locked
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_ahead l where l.id = $1
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_ahead l where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.shard = any($1::smallint[]) and l.state = 1 and l.id > $2 and l.id between $3 and $4
	and (l.start_owner = any($5::pg_catalog.text[]) or l.executor_address = any($6::pg_catalog.text[])) order by l.id limit $7
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.shard = any($1::smallint[]) and l.state = 2 and l.id > $2 and l.id between $3 and $4
	order by l.id limit $5
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.state = 0 and l.plan_epoch is null and l.scheduled_time <= $1 and l.shard = any($2::smallint[])
		and l.id between $3 and $4
	order by l.scheduled_time, l.id limit $5
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l
	where l.state = 0 and l.scheduled_time <= $1 and (l.scheduled_time, l.id) > ($2::bigint, $3::bigint)
	and l.shard = any($4::smallint[]) and l.id between $5 and $6 and ($7 = '' or l.app_name = $7)
	order by l.scheduled_time, l.id limit $8
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l where l.id = $1
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3
;;
/* xxljob */ select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l where l.trigger_id = $1 and l.id > $2
	and l.state + 0 in (0, 1, 2) and coalesce(l.executor_sharding_param, '') = $3
	order by l.id desc limit 1
;;
/* xxljob */ select l.id, l.state > 2 and ($1::pg_catalog.timestamptz is null or l.handle_time < $1::pg_catalog.timestamptz)
		and ($2::pg_catalog.text[] is null or l.app_name = any($2::pg_catalog.text[])) from (select l.id, l.state, l.handle_time, l.app_name from {{schema}}.xxl_job_log l
		where l.id > $3 and l.id < $4 order by l.id limit $5) l order by l.id
;;
/* xxljob */ select l.id, l.state > 2 and ($1::pg_catalog.timestamptz is null or l.handle_time < $1::pg_catalog.timestamptz)
		and ($2::pg_catalog.text[] is null or l.app_name = any($2::pg_catalog.text[])) from (select l.id, l.state, l.handle_time, l.app_name from {{schema}}.xxl_job_log l
		where l.job_id = $3 and l.state > 2 and l.id > $4 and l.id < $5 order by l.id limit $6) l order by l.id
;;
/* xxljob */ select l.incarnation, n.node_id, l.generation, l.prune, l.digest from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = $1 order by l.incarnation
;;
/* xxljob */ select l.job_id, l.executor_address from {{schema}}.xxl_job_log l
	where l.shard = any($1::smallint[]) and l.job_id = any($2::int[]) and l.state = 1
		and l.id between $3 and $4 and l.executor_address like 'local://%'
;;
/* xxljob */ select l.job_id, pg_catalog.count(*), pg_catalog.min(l.scheduled_time) from {{schema}}.xxl_job_log l
	where l.state = 0 and l.scheduled_time between $1 and $2 and l.shard = any($3::smallint[])
		and l.id between $4 and $5 and l.trigger_type <> 'RETRY'
	group by l.job_id
;;
/* xxljob */ select n.incarnation from {{schema}}.xxl_job_node n where n.incarnation = any($1::pg_catalog.text[]) and not n.has_left
;;
/* xxljob */ select n.job_id from {{schema}}.xxl_job_next n
	where n.job_id = any($1::int[]) and n.trigger_next_time = 0 and (n.trigger_status = 1 and not n.manual or n.wait_run <> 0)
;;
/* xxljob */ select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share
;;
/* xxljob */ select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share skip locked
;;
/* xxljob */ select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for no key update
;;
/* xxljob */ select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for no key update skip locked
;;
/* xxljob */ select n.job_id, n.version, n.trigger_next_time, n.trigger_last_time, n.run_count from {{schema}}.xxl_job_next n
	where n.trigger_status = 1 and n.trigger_next_time > 0
		and n.trigger_next_time between (select $1::bigint) and (select $2::bigint) and n.shard = any($3::smallint[])
	order by n.trigger_next_time, n.shard, n.job_id + 0 limit (select $4::bigint)
;;
/* xxljob */ select not u.disabled from {{schema}}.xxl_job_user u where u.username = $1 for no key update
;;
/* xxljob */ select o.hash, o.id, o.username, o.client, o.agent, o.began, o.seen, o.proved from {{schema}}.xxl_job_user_session o where o.username = $1 and o.seen >= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $2::bigint::double precision * interval '1 millisecond' and o.began >= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $3::bigint::double precision * interval '1 millisecond' order by o.seen desc, o.id desc
;;
/* xxljob */ select o.hash, o.id, o.username, o.client, o.agent, o.began, o.seen, o.proved, o.seen <= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $1::bigint::double precision * interval '1 millisecond', u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set
	from {{schema}}.xxl_job_user_session o join {{schema}}.xxl_job_user u on u.username = o.username
	where o.hash = $2 and not u.disabled and o.seen >= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $3::bigint::double precision * interval '1 millisecond' and o.began >= pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - $4::bigint::double precision * interval '1 millisecond'
;;
/* xxljob */ select p.id from pg_catalog.unnest($1::bigint[]) with ordinality r(id, ord)
		join {{schema}}.xxl_job_log p on p.id = r.id and r.ord = r.ord + 0 and p.id between $2 and $3 and p.state + 0 > 2
		where p.scheduled_time <= (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint
		and (select o.id from {{schema}}.xxl_job_log o where o.trigger_id = coalesce(p.trigger_id, p.id) and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.id from {{schema}}.xxl_job_log o where o.id = p.trigger_id and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.log_id from {{schema}}.xxl_job_owed o where o.log_id = p.id limit 1) is null
		and (select w.parent_id from {{schema}}.xxl_job_window w where w.parent_id = p.id limit 1) is null
		and (select a.log_id from {{schema}}.xxl_job_alarm a where a.log_id = p.id and a.status = 0 limit 1) is null
		and (select t.job_id from {{schema}}.xxl_job_told t where t.job_id = p.job_id and t.is_open
			and (t.log_id = p.id or p.state = 3 and p.snoozed is null and p.id > coalesce(t.log_id, 0)) limit 1) is null
		and (select n.job_id from {{schema}}.xxl_job_next n where n.job_id = p.job_id and n.wait_run = p.id limit 1) is null
		and (select k.run_id from {{schema}}.xxl_job_trigger_key k join {{schema}}.xxl_job_info i on i.id = k.job_id
			where k.run_id = p.id and pg_catalog.starts_with(k.trigger_key, 'xxljob/join/')
			and coalesce(p.business_time, 0) + case when i.after_window > 0 then i.after_window else 86400000 end + case when i.after_timeout > 0 then i.after_timeout else 86400000 end + 3600000 > (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint limit 1) is null
;;
/* xxljob */ select p.id, p.job_id from pg_catalog.unnest($1::bigint[]) with ordinality r(id, ord)
		join {{schema}}.xxl_job_log p on p.id = r.id and r.ord = r.ord + 0 and p.id between $2 and $3 and p.state + 0 > 2
		where p.scheduled_time <= (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint
		and (select o.id from {{schema}}.xxl_job_log o where o.trigger_id = coalesce(p.trigger_id, p.id) and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.id from {{schema}}.xxl_job_log o where o.id = p.trigger_id and o.state + 0 in (0, 1, 2) and o.id between $4 and $5 limit 1) is null
		and (select o.log_id from {{schema}}.xxl_job_owed o where o.log_id = p.id limit 1) is null
		and (select w.parent_id from {{schema}}.xxl_job_window w where w.parent_id = p.id limit 1) is null
		and (select a.log_id from {{schema}}.xxl_job_alarm a where a.log_id = p.id and a.status = 0 limit 1) is null
		and (select t.job_id from {{schema}}.xxl_job_told t where t.job_id = p.job_id and t.is_open
			and (t.log_id = p.id or p.state = 3 and p.snoozed is null and p.id > coalesce(t.log_id, 0)) limit 1) is null
		and (select n.job_id from {{schema}}.xxl_job_next n where n.job_id = p.job_id and n.wait_run = p.id limit 1) is null
		and (select k.run_id from {{schema}}.xxl_job_trigger_key k join {{schema}}.xxl_job_info i on i.id = k.job_id
			where k.run_id = p.id and pg_catalog.starts_with(k.trigger_key, 'xxljob/join/')
			and coalesce(p.business_time, 0) + case when i.after_window > 0 then i.after_window else 86400000 end + case when i.after_timeout > 0 then i.after_timeout else 86400000 end + 3600000 > (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint limit 1) is null order by p.id for update of p skip locked
;;
/* xxljob */ select pg_catalog.clock_timestamp()
;;
/* xxljob */ select pg_catalog.count(*) from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = $1 and l.incarnation <> $2
	and (l.generation > $3 or l.generation = $4 and l.digest = $5)
;;
/* xxljob */ select pg_catalog.count(*) from {{schema}}.xxl_job_lock
;;
/* xxljob */ select pg_catalog.count(*)::int from (select 1 from pg_catalog.unnest($1::pg_catalog.text[]) a(app) cross join lateral
	(select 1 from {{schema}}.xxl_job_report x where x.app_name = a.app collate "C" and x.quarter >= $2::bigint and x.quarter < $3::bigint union all select 1 from {{schema}}.xxl_job_log_report d where d.app_name = a.app collate "C" and d.trigger_day >= $4::pg_catalog.date and d.trigger_day < $5::pg_catalog.date) e
	limit $6::bigint + 1::bigint) c
;;
/* xxljob */ select pg_catalog.count(*)::int from (select a.id from {{schema}}.xxl_job_ahead a where a.job_id = $1 and a.state = 0 limit $2) a
;;
/* xxljob */ select pg_catalog.count(*)::int from (select p.run_id from {{schema}}.xxl_job_log_page p where p.run_id = any($1::bigint[]) and p.run_id between $2 and $3 limit $4) p
;;
/* xxljob */ select pg_catalog.count(*)::int from {{schema}}.xxl_job_told t where t.is_open and t.shard = any($1::smallint[])
;;
/* xxljob */ select pg_catalog.count(*)::int from {{schema}}.xxl_job_user_token k where k.username = $1
;;
/* xxljob */ select pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp())
;;
/* xxljob */ select pg_catalog.nextval('{{schema}}.xxl_job_info_id') from pg_catalog.generate_series(1, $1::int)
;;
/* xxljob */ select pg_catalog.nextval('{{schema}}.xxl_job_info_id'), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
;;
/* xxljob */ select pg_catalog.pg_advisory_unlock($1, s::int) from pg_catalog.unnest($2::smallint[]) s
;;
/* xxljob */ select pg_catalog.pg_backend_pid()
;;
/* xxljob */ select pg_catalog.pg_notify($1, p) from pg_catalog.unnest($2::pg_catalog.text[]) p
;;
/* xxljob */ select pg_catalog.pg_terminate_backend(a.pid) from pg_catalog.pg_stat_activity a
	where a.pid = any(pg_catalog.pg_blocking_pids($1::int)) and a.usename = current_user and a.query like '/* xxljob */ %'
;;
/* xxljob */ select pg_catalog.pg_terminate_backend(a.pid) from {{schema}}.xxl_job_node n
	join pg_catalog.pg_stat_activity a on a.pid = n.lock_pid and a.backend_start = n.lock_start and a.application_name = n.lock_name
	where n.incarnation = any($1::pg_catalog.text[])
;;
/* xxljob */ select pg_catalog.pg_try_advisory_lock_shared($1, pg_catalog.hashtext($2)), pg_catalog.hashtext($2)::bigint & 4294967295
;;
/* xxljob */ select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('jit', 'off', true)
;;
/* xxljob */ select r.ord from unnest($1::int[], $2::pg_catalog.text[]) with ordinality r(job_id, key, ord)
	join {{schema}}.xxl_job_trigger_key k on k.job_id = r.job_id and k.trigger_key = r.key collate "C"
;;
/* xxljob */ select r.registry_key, r.registry_value, r.boot_id, r.capabilities, r.update_time, r.former_boot, r.former_seen from {{schema}}.xxl_job_registry r
	where r.registry_group = 'EXECUTOR' and (r.registry_key, r.registry_value) > ($1::pg_catalog.text, $2::pg_catalog.text)
	and r.registry_key = $3 order by r.registry_key, r.registry_value limit $4
;;
/* xxljob */ select r.registry_key, r.registry_value, r.boot_id, r.capabilities, r.update_time, r.former_boot, r.former_seen from {{schema}}.xxl_job_registry r
	where r.registry_group = 'EXECUTOR' and (r.registry_key, r.registry_value) > ($1::pg_catalog.text, $2::pg_catalog.text) order by r.registry_key, r.registry_value limit $3
;;
/* xxljob */ select r.registry_key, r.registry_value, r.boot_id, r.capabilities, r.update_time, r.former_boot, r.former_seen from {{schema}}.xxl_job_registry r
	where r.registry_group = 'EXECUTOR' and r.registry_key = $1 and r.update_time >= pg_catalog.clock_timestamp() - $2::bigint::double precision * interval '1 microsecond'
	order by r.registry_value
;;
/* xxljob */ select r.span, r.app, pg_catalog.bool_or(r.is_day), pg_catalog.sum(r.succeeded::double precision)::bigint, pg_catalog.sum(r.failed::double precision)::bigint, pg_catalog.sum(r.timed_out::double precision)::bigint, pg_catalog.sum(r.killed::double precision)::bigint, pg_catalog.sum(r.lost::double precision)::bigint, pg_catalog.sum(r.refused::double precision)::bigint, pg_catalog.sum(r.discarded::double precision)::bigint, pg_catalog.sum(r.skipped::double precision)::bigint, pg_catalog.sum(r.cancelled::double precision)::bigint, pg_catalog.sum(r.snoozed::double precision)::bigint, pg_catalog.sum(r.late_sum::double precision)::bigint, pg_catalog.sum(r.late_1::double precision)::bigint, pg_catalog.sum(r.late_2::double precision)::bigint, pg_catalog.sum(r.late_5::double precision)::bigint, pg_catalog.sum(r.late_10::double precision)::bigint, pg_catalog.sum(r.late_20::double precision)::bigint, pg_catalog.sum(r.late_50::double precision)::bigint, pg_catalog.sum(r.late_100::double precision)::bigint, pg_catalog.sum(r.late_200::double precision)::bigint, pg_catalog.sum(r.late_500::double precision)::bigint, pg_catalog.sum(r.late_1000::double precision)::bigint, pg_catalog.sum(r.late_2000::double precision)::bigint, pg_catalog.sum(r.late_5000::double precision)::bigint, pg_catalog.sum(r.late_10000::double precision)::bigint, pg_catalog.sum(r.late_20000::double precision)::bigint, pg_catalog.sum(r.late_50000::double precision)::bigint, pg_catalog.sum(r.late_100000::double precision)::bigint, pg_catalog.sum(r.late_200000::double precision)::bigint, pg_catalog.sum(r.late_300000::double precision)::bigint, pg_catalog.sum(r.late_more::double precision)::bigint, pg_catalog.sum(r.took_sum::double precision)::bigint, pg_catalog.sum(r.took_1::double precision)::bigint, pg_catalog.sum(r.took_2::double precision)::bigint, pg_catalog.sum(r.took_5::double precision)::bigint, pg_catalog.sum(r.took_10::double precision)::bigint, pg_catalog.sum(r.took_20::double precision)::bigint, pg_catalog.sum(r.took_50::double precision)::bigint, pg_catalog.sum(r.took_100::double precision)::bigint, pg_catalog.sum(r.took_200::double precision)::bigint, pg_catalog.sum(r.took_500::double precision)::bigint, pg_catalog.sum(r.took_1000::double precision)::bigint, pg_catalog.sum(r.took_2000::double precision)::bigint, pg_catalog.sum(r.took_5000::double precision)::bigint, pg_catalog.sum(r.took_10000::double precision)::bigint, pg_catalog.sum(r.took_20000::double precision)::bigint, pg_catalog.sum(r.took_50000::double precision)::bigint, pg_catalog.sum(r.took_100000::double precision)::bigint, pg_catalog.sum(r.took_200000::double precision)::bigint, pg_catalog.sum(r.took_300000::double precision)::bigint, pg_catalog.sum(r.took_more::double precision)::bigint from (
	select (x.quarter - $1::bigint) / $2::bigint span, case when $3::boolean then '' else x.app_name end app, false is_day, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more
		from {{schema}}.xxl_job_report x where x.app_name = any($4::pg_catalog.text[]) and x.quarter >= $1::bigint and x.quarter < $5::bigint
	union all
	select ((d.trigger_day - '1970-01-01'::pg_catalog.date)::bigint * 86400000::bigint - $1::bigint) / $2::bigint, case when $3::boolean then '' else d.app_name end, true, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more
		from {{schema}}.xxl_job_log_report d where d.app_name = any($4::pg_catalog.text[]) and d.trigger_day >= $6::pg_catalog.date and d.trigger_day < $7::pg_catalog.date) r
	group by r.span, r.app order by r.span, r.app collate "C"
;;
/* xxljob */ select r.span, r.app, pg_catalog.bool_or(r.is_day), pg_catalog.sum(r.succeeded::double precision)::bigint, pg_catalog.sum(r.failed::double precision)::bigint, pg_catalog.sum(r.timed_out::double precision)::bigint, pg_catalog.sum(r.killed::double precision)::bigint, pg_catalog.sum(r.lost::double precision)::bigint, pg_catalog.sum(r.refused::double precision)::bigint, pg_catalog.sum(r.discarded::double precision)::bigint, pg_catalog.sum(r.skipped::double precision)::bigint, pg_catalog.sum(r.cancelled::double precision)::bigint, pg_catalog.sum(r.snoozed::double precision)::bigint, pg_catalog.sum(r.late_sum::double precision)::bigint, pg_catalog.sum(r.late_1::double precision)::bigint, pg_catalog.sum(r.late_2::double precision)::bigint, pg_catalog.sum(r.late_5::double precision)::bigint, pg_catalog.sum(r.late_10::double precision)::bigint, pg_catalog.sum(r.late_20::double precision)::bigint, pg_catalog.sum(r.late_50::double precision)::bigint, pg_catalog.sum(r.late_100::double precision)::bigint, pg_catalog.sum(r.late_200::double precision)::bigint, pg_catalog.sum(r.late_500::double precision)::bigint, pg_catalog.sum(r.late_1000::double precision)::bigint, pg_catalog.sum(r.late_2000::double precision)::bigint, pg_catalog.sum(r.late_5000::double precision)::bigint, pg_catalog.sum(r.late_10000::double precision)::bigint, pg_catalog.sum(r.late_20000::double precision)::bigint, pg_catalog.sum(r.late_50000::double precision)::bigint, pg_catalog.sum(r.late_100000::double precision)::bigint, pg_catalog.sum(r.late_200000::double precision)::bigint, pg_catalog.sum(r.late_300000::double precision)::bigint, pg_catalog.sum(r.late_more::double precision)::bigint, pg_catalog.sum(r.took_sum::double precision)::bigint, pg_catalog.sum(r.took_1::double precision)::bigint, pg_catalog.sum(r.took_2::double precision)::bigint, pg_catalog.sum(r.took_5::double precision)::bigint, pg_catalog.sum(r.took_10::double precision)::bigint, pg_catalog.sum(r.took_20::double precision)::bigint, pg_catalog.sum(r.took_50::double precision)::bigint, pg_catalog.sum(r.took_100::double precision)::bigint, pg_catalog.sum(r.took_200::double precision)::bigint, pg_catalog.sum(r.took_500::double precision)::bigint, pg_catalog.sum(r.took_1000::double precision)::bigint, pg_catalog.sum(r.took_2000::double precision)::bigint, pg_catalog.sum(r.took_5000::double precision)::bigint, pg_catalog.sum(r.took_10000::double precision)::bigint, pg_catalog.sum(r.took_20000::double precision)::bigint, pg_catalog.sum(r.took_50000::double precision)::bigint, pg_catalog.sum(r.took_100000::double precision)::bigint, pg_catalog.sum(r.took_200000::double precision)::bigint, pg_catalog.sum(r.took_300000::double precision)::bigint, pg_catalog.sum(r.took_more::double precision)::bigint from (
	select (x.quarter - $1::bigint) / $2::bigint span, case when $3::boolean then '' else x.app_name end app, false is_day, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more
		from {{schema}}.xxl_job_report x where x.quarter >= $1::bigint and x.quarter < $4::bigint
	union all
	select ((d.trigger_day - '1970-01-01'::pg_catalog.date)::bigint * 86400000::bigint - $1::bigint) / $2::bigint, case when $3::boolean then '' else d.app_name end, true, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more
		from {{schema}}.xxl_job_log_report d where d.trigger_day >= $5::pg_catalog.date and d.trigger_day < $6::pg_catalog.date) r
	group by r.span, r.app order by r.span, r.app collate "C"
;;
/* xxljob */ select s, pg_catalog.pg_try_advisory_lock($1, s::int) from pg_catalog.unnest($2::smallint[]) s
;;
/* xxljob */ select s.run, w.id from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[]) s(run, job, instant, trigger)
	cross join lateral (select w.id from {{schema}}.xxl_job_log w where w.job_id = s.job and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= s.instant
		and (w.last_time < s.instant or w.trigger_id < s.trigger) and w.id between $5 and $6 order by w.last_time, w.id limit 1) w
;;
/* xxljob */ select shard, owner, epoch from {{schema}}.xxl_job_lock where shard = any($1::smallint[])
;;
/* xxljob */ select t.job_id, t.shard, t.rule, t.at, t.is_open, t.log_id, t.trigger_id from {{schema}}.xxl_job_told t where t.job_id = any($1::int[]) order by t.job_id, t.rule
;;
/* xxljob */ select t.job_id, t.shard, t.rule, t.at, t.is_open, t.log_id, t.trigger_id, r.at from {{schema}}.xxl_job_told t
	cross join lateral (select pg_catalog.min(e.handle_time) at from (
		select l.id, l.trigger_id, l.state, l.snoozed, l.handle_time, l.executor_sharding_param from {{schema}}.xxl_job_log l
			where l.job_id = t.job_id and l.state > 2 and l.id >= coalesce(t.log_id, 0) order by l.id desc limit 1000) e
		where e.state = 3 and e.snoozed is null
		and (t.log_id is null and e.handle_time > pg_catalog.to_timestamp(t.at::double precision / 1000::double precision) or coalesce(e.trigger_id, e.id) > t.trigger_id
			or coalesce(e.trigger_id, e.id) = t.trigger_id and coalesce(e.executor_sharding_param, '') = coalesce(
				(select o.executor_sharding_param from {{schema}}.xxl_job_log o where o.id = t.log_id), ''))) r
	where t.is_open and t.shard = any($1::smallint[]) and (t.job_id, t.rule) > ($2::int, $3::pg_catalog.text) and r.at is not null order by t.job_id, t.rule limit $4
;;
/* xxljob */ select true, l.app_name, pg_catalog.count(*)::int from (select l.app_name from {{schema}}.xxl_job_log l
		where l.state = 0 and l.id between $1 and $2 order by l.scheduled_time limit $3) l group by l.app_name
	union all select false, l.app_name, pg_catalog.count(*)::int from (select l.app_name from {{schema}}.xxl_job_log l
		where l.state in (1, 2) and l.id between $1 and $2 limit $3) l group by l.app_name
;;
/* xxljob */ select u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set from {{schema}}.xxl_job_user u
	where u.username = any(array(select $1::pg_catalog.text collate "C" union all select a.username from {{schema}}.xxl_job_user a where a.role = 1)) order by u.username for no key update
;;
/* xxljob */ select u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set from {{schema}}.xxl_job_user u where u.username = $1
;;
/* xxljob */ select u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set from {{schema}}.xxl_job_user u where u.username > $1 order by u.username limit $2
;;
/* xxljob */ select v.v from (select distinct i.app_name v from {{schema}}.xxl_job_info i) v
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length($1::pg_catalog.text)) = pg_catalog.lower($1::pg_catalog.text) order by v.v collate "C" limit $2
;;
/* xxljob */ select v.v from (select distinct i.author v from {{schema}}.xxl_job_info i) v
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length($1::pg_catalog.text)) = pg_catalog.lower($1::pg_catalog.text) order by v.v collate "C" limit $2
;;
/* xxljob */ select v.v from (select distinct i.executor_handler v from {{schema}}.xxl_job_info i) v
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length($1::pg_catalog.text)) = pg_catalog.lower($1::pg_catalog.text) order by v.v collate "C" limit $2
;;
/* xxljob */ select v.v from (select distinct t.t v from {{schema}}.xxl_job_info i cross join lateral pg_catalog.jsonb_array_elements_text(nullif(i.tags, '')::pg_catalog.jsonb) t(t) where i.tags <> '') v
	where v.v <> '' and pg_catalog.left(pg_catalog.lower(v.v), pg_catalog.length($1::pg_catalog.text)) = pg_catalog.lower($1::pg_catalog.text) order by v.v collate "C" limit $2
;;
/* xxljob */ select value from {{schema}}.xxl_job_setting where name = $1
;;
/* xxljob */ select y.failed, pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - y.last) from {{schema}}.xxl_job_user_try y where y.bucket = $1
;;
/* xxljob */ update {{schema}}.xxl_job_ahead l set state = 11, alarm_status = 1, reason = $2, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where l.id = $1 and l.state = 0 returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_alarm a set told = a.told operator(pg_catalog.||) array(select r.rule from pg_catalog.unnest(r.rules) r(rule) where r.rule <> all(a.told)), gave_up = a.gave_up or r.gave_up
	from (select t.id, pg_catalog.array_agg(distinct t.rule) rules, pg_catalog.bool_or(t.gave_up) gave_up
		from unnest($1::bigint[], $2::pg_catalog.text[], $3::boolean[]) t(id, rule, gave_up) group by t.id) r
	where a.id = r.id
;;
/* xxljob */ update {{schema}}.xxl_job_ask a set answered = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), to_line = $1,
	is_end = $2, content = $3, refusal = $4
	where a.id = $5 and a.answered is null and a.asked > pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) - interval '1 minute' returning a.id
;;
/* xxljob */ update {{schema}}.xxl_job_info set (id, shard, version, app_name, job_key, job_desc, author, alarm_email, schedule_type, schedule_conf, schedule_zone, schedule_dst, misfire_strategy, catch_up, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, trigger_status, stop_reason, ensured, add_time, update_time, not_before, not_after, max_runs, max_per_executor, on_lost, retry_pause, retry_pause_max, retry_jitter, retry_aside, max_reruns, max_snoozes, child_keys, child_param, after_jobs, after_keys, after_window, after_zone, after_timeout, late_after, tags, keep_runs)
	= row($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51)
	where id = $1 and shard = $2
;;
/* xxljob */ update {{schema}}.xxl_job_info set trigger_status = 0, stop_reason = $1, update_time = $2
	where id = any($3::int[])
;;
/* xxljob */ update {{schema}}.xxl_job_info set trigger_status = 0, stop_reason = $2,
	version = version + 1, update_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where id = $1
;;
/* xxljob */ update {{schema}}.xxl_job_list_head set generation = $1, digest = $2,
	node_id = $3 where app_name = $4
;;
/* xxljob */ update {{schema}}.xxl_job_lock k set owner = $1, epoch = k.epoch + 1
	from unnest($2::smallint[], $3::pg_catalog.text[], $4::bigint[]) q(shard, owner, epoch)
	where k.shard = q.shard and k.owner = q.owner and k.epoch = q.epoch
	returning k.shard, k.owner, k.epoch
;;
/* xxljob */ update {{schema}}.xxl_job_lock k set owner = '' from unnest($1::smallint[], $2::bigint[]) q(shard, epoch)
	where k.shard = q.shard and k.owner = $3 and k.epoch = q.epoch
;;
/* xxljob */ update {{schema}}.xxl_job_lock set owner = '' where owner = $1 and owner <> ''
;;
/* xxljob */ update {{schema}}.xxl_job_log l
	set state = case when l.state = 0 then 11 else 7 end, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null,
		alarm_status = case when l.state = 0 then 1 else l.alarm_status end, reason = 'retention'
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2 and p.state = 0
		order by p.id + 0 limit $3
		for no key update) operator(pg_catalog.||) array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2
			and p.state in (1, 2) order by p.id + 0 limit $3
		for no key update)) and l.id between $1 and $2
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set
		state = case when ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then 4 else ($2::smallint[])[r.ord] end, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()),
		handle_msg = case when ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then 'snoozed too often: see Job.MaxSnoozes' else r.msg end,
		no_retry = case when ($3::boolean[])[r.ord] or ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then true end,
		snoozed = case when ($1::boolean[])[r.ord] and (($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard)) is not true then true end, inbox = null, trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end,
		progress = coalesce(($4::smallint[])[r.ord], l.progress),
		progress_text = case when ($4::smallint[])[r.ord] is null then l.progress_text else ($5::pg_catalog.text[])[r.ord] end
	from (select pg_catalog.unnest($6::bigint[]) id, pg_catalog.unnest($7::pg_catalog.text[]) msg, pg_catalog.unnest($8::pg_catalog.text[]) say, pg_catalog.unnest($9::int[]) ord) r
	where l.id = any(array[r.id]) and r.ord = r.ord + 0 and l.state + 0 in (1, 2)
		and (l.state = 1 or ($2::smallint[])[r.ord] <> 11)
	and (($10::smallint[])[r.ord] = 0 or l.state = 1 and l.start_token = ($11::bigint[])[r.ord]
		and l.executor_address = ($12::pg_catalog.text[])[($10::smallint[])[r.ord]])
	and (coalesce(($13::smallint[])[r.ord], 0) = 0 or l.start_token = ($11::bigint[])[r.ord]
		and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = ($12::pg_catalog.text[])[($13::smallint[])[r.ord]])
	returning r.ord, ((select i.id from {{schema}}.xxl_job_info i where (i.child_jobid <> '' or i.child_keys <> '') order by i.id limit 1) is not null
	or (select k.job_id from {{schema}}.xxl_job_link k order by k.job_id limit 1) is not null), l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set
		state = case when ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then 4 else ($2::smallint[])[r.ord] end, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()),
		handle_msg = case when ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then 'snoozed too often: see Job.MaxSnoozes' else r.msg end,
		no_retry = case when ($3::boolean[])[r.ord] or ($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard) then true end,
		snoozed = case when ($1::boolean[])[r.ord] and (($1::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else 100 end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard)) is not true then true end, inbox = null, trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end,
		progress = coalesce(($4::smallint[])[r.ord], l.progress),
		progress_text = case when ($4::smallint[])[r.ord] is null then l.progress_text else ($5::pg_catalog.text[])[r.ord] end
	from (select pg_catalog.unnest($6::bigint[]) id, pg_catalog.unnest($7::pg_catalog.text[]) msg, pg_catalog.unnest($8::pg_catalog.text[]) say, pg_catalog.unnest($9::int[]) ord) r
	where l.id = any(array[r.id]) and r.ord = r.ord + 0 and l.state + 0 in (1, 2)
		and (l.state = 1 or ($2::smallint[])[r.ord] <> 11)
	and (($10::smallint[])[r.ord] = 0 or l.state = 1 and l.start_token = ($11::bigint[])[r.ord]
		and l.executor_address = ($12::pg_catalog.text[])[($10::smallint[])[r.ord]])
	and (coalesce(($13::smallint[])[r.ord], 0) = 0 or l.start_token = ($11::bigint[])[r.ord]
		and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = ($12::pg_catalog.text[])[($13::smallint[])[r.ord]])
	returning r.ord, ((select i.id from {{schema}}.xxl_job_info i where (i.child_jobid <> '' or i.child_keys <> '') order by i.id limit 1) is not null
	or (select k.job_id from {{schema}}.xxl_job_link k order by k.job_id limit 1) is not null), l.state, l.handle_time, l.no_retry, l.snoozed, l.routed, l.trigger_msg, l.handle_msg, l.kill_reason, l.progress, l.progress_text
;;
/* xxljob */ update {{schema}}.xxl_job_log l set kill_reason = $2
	where l.id = $1 and l.state + 0 in (1, 2) and l.kill_reason is null returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set late_noted = true, trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end
	from unnest($1::bigint[], $2::pg_catalog.text[]) with ordinality r(id, say, ord)
	where l.id = any(array[r.id]) and r.ord = r.ord + 0 and l.id = any(array(select p.id from {{schema}}.xxl_job_log p
		where p.id = any($1::bigint[]) and p.id between $3 and $4 and p.state + 0 = 7 and p.late_noted is null
		order by p.id for no key update skip locked))
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 11, alarm_status = 1,
	reason = $1, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
	where l.job_id = $2 and l.state = 0 and l.id between $3 and $4
		and ($5::boolean or l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') or $6::boolean and l.born)
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 11, alarm_status = 1, reason = $2, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
	where l.id = $1 and l.state + 0 = 0 returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 2, trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end
	from (select pg_catalog.unnest($1::bigint[]) id, pg_catalog.unnest($2::pg_catalog.text[]) say, pg_catalog.unnest($3::int[]) ord) r
	where l.id = any(array[r.id]) and r.ord = r.ord + 0
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($1::bigint[]) and p.id between $4 and $5
		and p.state + 0 = 1 order by p.id for no key update skip locked)) and l.state + 0 = 1 and l.start_token = ($6::bigint[])[r.ord]
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = ($7::pg_catalog.text[])[($8::smallint[])[r.ord]]
	returning r.ord, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 2, trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end
	from (select pg_catalog.unnest($1::bigint[]) id, pg_catalog.unnest($2::pg_catalog.text[]) say, pg_catalog.unnest($3::int[]) ord) r
	where l.id = any(array[r.id]) and r.ord = r.ord + 0 and l.state + 0 = 1 and l.start_token = ($4::bigint[])[r.ord]
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = ($5::pg_catalog.text[])[($6::smallint[])[r.ord]]
	returning r.ord, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 3, handle_time = (select pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())),
		handle_msg = null, no_retry = null, snoozed = null, inbox = null
	from (select pg_catalog.unnest($1::bigint[]) id, pg_catalog.unnest($2::bigint[]) token, pg_catalog.unnest($3::int[]) ord) r
	where l.id = any(array[r.id]) and r.ord = r.ord + 0 and l.state + 0 = 1 and l.start_token = r.token and l.executor_address = $4::pg_catalog.text
	returning r.ord, ((select i.id from {{schema}}.xxl_job_info i where (i.child_jobid <> '' or i.child_keys <> '') order by i.id limit 1) is not null
	or (select k.job_id from {{schema}}.xxl_job_link k order by k.job_id limit 1) is not null), l.handle_time, l.routed, l.trigger_msg, l.kill_reason, l.progress, l.progress_text
;;
/* xxljob */ update {{schema}}.xxl_job_log l set state = 6, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($1::bigint[]) and p.id between $2 and $3
		and p.inbox = $4 order by p.id for no key update skip locked)) and l.id between $2 and $3 and l.inbox = $4 and l.state = 1
		and l.kill_reason is not null
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set taken_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null
	where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.inbox = $4 and l.state = 1
		and l.kill_reason is null
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set taken_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($1::bigint[]) and p.id between $2 and $3
		and p.inbox = $4 order by p.id for no key update skip locked)) and l.id between $2 and $3 and l.inbox = $4 and l.state = 1
		and l.kill_reason is null
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end
	from unnest($1::bigint[], $2::pg_catalog.text[]) with ordinality r(id, say, ord) where l.id = r.id and r.ord = r.ord + 0
;;
/* xxljob */ update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(r.say, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then r.say else l.trigger_msg || E'\n' || r.say end
	from unnest($1::bigint[], $2::pg_catalog.text[]) with ordinality r(id, say, ord) where l.id = r.id and r.ord = r.ord + 0
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($1::bigint[]) and p.id between $3 and $4
		order by p.id for no key update skip locked))
;;
/* xxljob */ update {{schema}}.xxl_job_next n set run_count = n.run_count - (select pg_catalog.count(*)
		from unnest($1::int[], $2::bigint[]) r(job, id) where r.job = n.job_id and r.id > n.counted_after)
	where n.job_id = any($1) and ($3::boolean or n.trigger_status = 0)
;;
/* xxljob */ update {{schema}}.xxl_job_next n set trigger_status = 0
	where n.job_id = any($1::int[]) and n.trigger_status = 1 and n.trigger_next_time = 0 and n.wait_run = 0 and not n.manual
	and not exists (select from {{schema}}.xxl_job_log l where l.job_id = n.job_id and l.state = 0
		and l.id between $2 and $3 and (l.born or l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE')) offset 0)
	and not exists (select from {{schema}}.xxl_job_log l where l.shard = n.shard and l.job_id = n.job_id and l.state in (1, 2)
		and l.id between $2 and $3 and (l.born or l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE')) offset 0)
	returning n.job_id, n.max_runs > 0 and n.run_count >= n.max_runs, n.not_after
;;
/* xxljob */ update {{schema}}.xxl_job_next n set wait_run = ($1::bigint[])[pg_catalog.array_position($2::bigint[], n.wait_run)]
	where n.job_id = any($3::int[]) and n.wait_run <> 0 and n.wait_run = any($2) and ($1::bigint[])[pg_catalog.array_position($2::bigint[], n.wait_run)] <> 0
;;
/* xxljob */ update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = case when n.delay = 0 or n.max_runs > 0 and n.run_count >= n.max_runs
		or n.not_after > 0 and ($1::bigint[])[pg_catalog.array_position($2::bigint[], n.wait_run)] + n.delay > n.not_after then 0 else ($1::bigint[])[pg_catalog.array_position($2::bigint[], n.wait_run)] + n.delay end
	where n.job_id = any($3::int[]) and n.trigger_next_time = 0 and n.wait_run <> 0 and n.wait_run = any($2)
	returning n.shard, n.trigger_next_time
;;
/* xxljob */ update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = case when n.delay = 0 or n.max_runs > 0 and n.run_count >= n.max_runs
		or n.not_after > 0 and (pg_catalog.date_part('epoch', coalesce(
		(select l.handle_time from {{schema}}.xxl_job_log l where l.id = n.wait_run), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))) operator(pg_catalog.*) 1000::double precision)::bigint + n.delay > n.not_after then 0 else (pg_catalog.date_part('epoch', coalesce(
		(select l.handle_time from {{schema}}.xxl_job_log l where l.id = n.wait_run), pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()))) operator(pg_catalog.*) 1000::double precision)::bigint + n.delay end
	where n.job_id = any($1::int[]) and n.wait_run <> 0
	and coalesce((select l.state > 2 from {{schema}}.xxl_job_log l where l.id = n.wait_run), true)
	returning n.shard, n.trigger_next_time
;;
/* xxljob */ update {{schema}}.xxl_job_next set counted_after = $2 where job_id = $1
;;
/* xxljob */ update {{schema}}.xxl_job_next set trigger_next_time = $1, trigger_last_time = $2, wait_run = $3, run_count = $4, version = $5, delay = $6, trigger_status = $7, manual = $8, app_name = $9, not_after = $10, max_runs = $11 where job_id = $12 and shard = $13
;;
/* xxljob */ update {{schema}}.xxl_job_next set trigger_status = 0 where job_id = $1
;;
/* xxljob */ update {{schema}}.xxl_job_next set wait_run = $2 where job_id = $1
;;
/* xxljob */ update {{schema}}.xxl_job_node set failing = $2 where incarnation = $1 and failing <> $2 returning 1
;;
/* xxljob */ update {{schema}}.xxl_job_node set has_left = true where incarnation = $1
;;
/* xxljob */ update {{schema}}.xxl_job_node set has_left = true where incarnation = $1 and beats = $2 and not has_left returning 1
;;
/* xxljob */ update {{schema}}.xxl_job_part p set succeeded = true
	where p.trigger_id = any($1::bigint[]) and not p.succeeded and not exists (
		select from (select l.executor_sharding_param part, l.state = 3 and l.snoozed is null done from {{schema}}.xxl_job_log l where l.id = p.trigger_id
			union all select l.executor_sharding_param, l.state = 3 and l.snoozed is null from {{schema}}.xxl_job_log l
				where l.trigger_id = p.trigger_id and l.id > p.trigger_id) r
		where r.part is not null group by r.part having not pg_catalog.bool_or(r.done))
	returning p.trigger_id
;;
/* xxljob */ update {{schema}}.xxl_job_user as u set title = $1, role = $2, permission = $3, scripts = $4,
		disabled = $5, version = u.version + 1, password = $6,
		password_set = case when u.password = $6::pg_catalog.text then u.password_set else pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
	where u.username = $7 returning u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set
;;
/* xxljob */ update {{schema}}.xxl_job_user set settings = $2 where username = $1 returning 1
;;
/* xxljob */ update {{schema}}.xxl_job_user_session set proved = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where hash = $1 returning 1
;;
/* xxljob */ update {{schema}}.xxl_job_user_session set seen = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where hash = $1 returning seen
;;
/* xxljob */ update {{schema}}.xxl_job_user_token set used = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where id = $1 returning used
;;
/* xxljob */ with c as (update {{schema}}.xxl_job_ahead l set state = 11, alarm_status = 1, reason = $1, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where l.state = 0 and l.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.job_id = $2 and a.state = 0 and a.id > $3 order by a.id limit $4 for no key update))
	returning l.id, l.app_name, l.scheduled_time) select pg_catalog.count(*)::int, coalesce(pg_catalog.max(c.id), 0) from c
;;
/* xxljob */ with c as (update {{schema}}.xxl_job_ahead l set state = 11, alarm_status = 1, reason = $1, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where l.state = 0 and l.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.job_id = $2 and a.state = 0 and a.id > $3 order by a.id limit $4 for no key update))
	returning l.id, l.app_name, l.scheduled_time), r as materialized (select c.app_name as app, c.scheduled_time / 900000::bigint * 900000::bigint as quarter, pg_catalog.count(*) as n from c group by 1, 2),
	counted as (insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, cancelled)
	select r.quarter, r.app, coalesce((select f.slot from {{schema}}.xxl_job_report f where f.quarter = r.quarter and f.app_name = r.app collate "C" and f.slot = $5::smallint for update skip locked), case when exists (select from {{schema}}.xxl_job_report f where f.quarter = r.quarter and f.app_name = r.app collate "C" and f.slot = $5::smallint) then $6::smallint else $5::smallint end), r.n from r order by r.quarter, r.app collate "C"
	on conflict (quarter, app_name, slot) do update set cancelled = t.cancelled + excluded.cancelled)
	select pg_catalog.count(*)::int, coalesce(pg_catalog.max(c.id), 0) from c
;;
/* xxljob */ with c as (update {{schema}}.xxl_job_ahead l set state = 11, alarm_status = 1, reason = $2, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) where l.job_id = $1 and l.state = 0 returning l.app_name, l.scheduled_time)
	select c.app_name, c.scheduled_time / 900000::bigint * 900000::bigint, pg_catalog.count(*) from c group by 1, 2
;;
/* xxljob */ with done as (update {{schema}}.xxl_job_alarm a set status = r.status, done_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
		from unnest($1::bigint[], $2::smallint[]) r(id, status) where a.id = r.id and a.status = 0 returning a.log_id, a.status),
	r as materialized (select d.log_id id, pg_catalog.max(d.status) status, 1 ord from done d where d.log_id is not null group by d.log_id),
	locked as materialized (select l.id, r.status, r.ord from r join {{schema}}.xxl_job_log l on l.id = r.id and r.ord = r.ord + 0 order by l.id for no key update of l skip locked)
	update {{schema}}.xxl_job_log l set alarm_status = greatest(l.alarm_status, r.status) from locked r where l.id = r.id and r.ord = r.ord + 0
;;
/* xxljob */ with done as (update {{schema}}.xxl_job_user set password = $1 where username = $2 and password = $3 returning 1)
	select exists (select from done) from {{schema}}.xxl_job_user where username = $2
;;
/* xxljob */ with e as materialized (select coalesce((select p.last_line from {{schema}}.xxl_job_log_page p where p.run_id = $1 order by p.first_line desc limit 1), 0) as last_line),
	f as materialized (select e.last_line, case when $2::int < 0 then e.last_line + $2::int + 1 else $2::int end as line from e)
	select f.last_line, p.first_line, p.last_line, p.size, p.content from f
	left join lateral (select p.first_line, p.last_line, p.size, p.content from {{schema}}.xxl_job_log_page p
		where p.run_id = $1 and p.last_line >= f.line and p.first_line >= coalesce((
			select b.first_line from {{schema}}.xxl_job_log_page b where b.run_id = $1 and b.first_line <= f.line order by b.first_line desc limit 1), 0)
		order by p.first_line limit $3) p on true
	order by p.first_line
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	select n.job_id from {{schema}}.xxl_job_next n join fence on fence.shard = n.shard
	where n.trigger_next_time = 0 and (n.trigger_status = 1 and not n.manual or n.wait_run <> 0) order by n.job_id for no key update of n
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	select o.id, o.shard, o.log_id, o.trigger_id, o.parent_job, o.job_id, o.app_name, o.job_key, o.is_join,
		case o.param_of when 1 then (select coalesce(l.executor_param, '') from {{schema}}.xxl_job_log l where l.id = o.log_id)
		when 2 then (select coalesce(l.handle_msg, '') from {{schema}}.xxl_job_log l where l.id = o.log_id) end, o.business_time, o.depth, o.trace,
		case when o.job_id is not null then (select i.id from {{schema}}.xxl_job_info i where i.id = o.job_id)
		else (select i.id from {{schema}}.xxl_job_info i where i.app_name = o.app_name and i.job_key = o.job_key) end
	from {{schema}}.xxl_job_owed o where o.shard = any(array(select shard from fence)) order by o.id limit $3 for update of o skip locked
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	select w.job_id, w.begins, w.parent_id, w.depth, w.succeeded from {{schema}}.xxl_job_window w
	where w.shard = any(array(select shard from fence)) and w.expires <= $3 order by w.expires, w.job_id limit $4 for update of w skip locked
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(v.msg, '') = '' then (case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end)
	when coalesce((case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end), '') = '' then v.msg else (case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end) || E'\n' || v.msg end, routed = null, state = 0, plan_epoch = null, start_owner = null, start_token = null,
		executor_address = null, executor_boot_id = null, progress = null, progress_text = null,
		job_version = null, executor_handler = null, executor_block_strategy = null, inbox = null,
		executor_param = case when l.param_set then l.executor_param end, trigger_time = null, taken_time = null from unnest($3::bigint[], $4::smallint[], $5::pg_catalog.text[],
	$6::bigint[], $7::boolean[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(v.msg, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then v.msg else l.trigger_msg || E'\n' || v.msg end, start_owner = v.new_owner, start_token = v.new_token from unnest($3::bigint[], $4::smallint[], $5::pg_catalog.text[],
	$6::bigint[], $7::boolean[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(v.msg, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then v.msg else l.trigger_msg || E'\n' || v.msg end, state = 11, alarm_status = 1, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null,
		reason = case when exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id) then 'stop' else 'remove' end from unnest($3::bigint[], $4::smallint[], $5::pg_catalog.text[],
	$6::bigint[], $7::boolean[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken
	and not exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard
		and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))) returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(v.msg, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then v.msg else l.trigger_msg || E'\n' || v.msg end, state = 6, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null from unnest($3::bigint[], $4::smallint[], $5::pg_catalog.text[],
	$6::bigint[], $7::boolean[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken and l.kill_reason is not null returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k )
	update {{schema}}.xxl_job_log l set trigger_msg = case when coalesce(v.msg, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then v.msg else l.trigger_msg || E'\n' || v.msg end, state = 7, handle_time = pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), inbox = null from unnest($3::bigint[], $4::smallint[], $5::pg_catalog.text[],
	$6::bigint[], $7::boolean[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ),
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ($3::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(($4::bigint[])[d.ord], 0), n.trigger_last_time),
			run_count = n.run_count + coalesce(($5::int[])[d.ord], ($6::int[])[d.ord + 1] - ($6::int[])[d.ord]),
			version = n.version + coalesce(($7::smallint[])[d.ord], 0)
		from (select pg_catalog.unnest($8::int[]) job_id, pg_catalog.unnest($9::smallint[]) shard, pg_catalog.unnest($10::bigint[]) version,
			pg_catalog.unnest($11::bigint[]) due, pg_catalog.unnest($12::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = 1 and n.trigger_next_time > 0
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 id)
	insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, plan_epoch, add_time, executor_fail_retry_count, trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, handle_time)
		select (select id from base) + (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), r.job_id, r.shard, r.app_name, ($13::bigint[])[r.ord], pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), -1, ($14::pg_catalog.text[])[coalesce(($15::smallint[])[r.k], 1)], coalesce(($16::smallint[])[r.k], 0), case when coalesce(($16::smallint[])[r.k], 0) > 2 then 1 else 0 end, ($17::bigint[])[r.k], nullif(($18::bigint[])[r.k], 0), nullif(($19::bigint[])[r.k], 0), nullif(($20::int[])[r.k], 0), ($14::pg_catalog.text[])[($21::smallint[])[r.k]], case when coalesce(($16::smallint[])[r.k], 0) > 2 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
		from (select a.*, pg_catalog.generate_series(($6::int[])[a.ord], ($6::int[])[a.ord + 1] - 1) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ),
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ($3::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(($4::bigint[])[d.ord], 0), n.trigger_last_time),
			run_count = n.run_count + coalesce(($5::int[])[d.ord], ($6::int[])[d.ord + 1] - ($6::int[])[d.ord]),
			version = n.version + coalesce(($7::smallint[])[d.ord], 0)
		from (select pg_catalog.unnest($8::int[]) job_id, pg_catalog.unnest($9::smallint[]) shard, pg_catalog.unnest($10::bigint[]) version,
			pg_catalog.unnest($11::bigint[]) due, pg_catalog.unnest($12::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = 1 and n.trigger_next_time > 0
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 id), inserted as (insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, plan_epoch, add_time, executor_fail_retry_count, trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, handle_time)
		select (select id from base) + (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), r.job_id, r.shard, r.app_name, ($13::bigint[])[r.ord], pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), -1, ($14::pg_catalog.text[])[coalesce(($15::smallint[])[r.k], 1)], coalesce(($16::smallint[])[r.k], 0), case when coalesce(($16::smallint[])[r.k], 0) > 2 then 1 else 0 end, ($17::bigint[])[r.k], nullif(($18::bigint[])[r.k], 0), nullif(($19::bigint[])[r.k], 0), nullif(($20::int[])[r.k], 0), ($14::pg_catalog.text[])[($21::smallint[])[r.k]], case when coalesce(($16::smallint[])[r.k], 0) > 2 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
		from (select a.*, pg_catalog.generate_series(($6::int[])[a.ord], ($6::int[])[a.ord + 1] - 1) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time)
	select 0::bigint, a.job_id, a.app_name, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), 0::bigint from advanced a
	union all select * from inserted
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ),
	gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.state = 0 and a.move_time <= $3 and a.shard = any(array(select shard from fence))
		order by a.move_time, a.id limit $4 for no key update skip locked)) returning d.*),
	placed as materialized (select g.*, case when g.id >= $5
		and (select l.id from {{schema}}.xxl_job_log l where l.id = g.id limit 1) is null then g.id else ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint) end new_id from gone g),
	moved as (insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time) select r.new_id, r.job_id, r.shard, r.app_name, r.trigger_type, r.scheduled_time, r.state, r.executor_sharding_param, r.executor_param, r.param_set, r.address_list, r.executor_fail_retry_count, r.retries_set, r.trace, r.add_time from placed r),
	keyed as (update {{schema}}.xxl_job_trigger_key k set run_id = r.new_id from placed r where r.new_id <> r.id and k.run_id = r.id)
	select r.new_id, r.id, r.shard from placed r
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ), jobs as materialized (select i.id, i.shard, i.late_after from {{schema}}.xxl_job_info i
		where i.late_after > 0 and i.shard = any(array(select shard from fence)))
	select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from (select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l where l.job_id = i.id and l.state = 0 and coalesce(case when l.trigger_type = 'RETRY' then l.last_time end, l.scheduled_time) <= $3::bigint - i.late_after
		and l.id between $4 and $5
		and not exists (select from {{schema}}.xxl_job_alarm a where a.log_id = l.id and a.cause = 'late') order by l.job_id, l.id limit $6) l
	union all select l.* from jobs i cross join lateral (select l.* from {{schema}}.xxl_job_log l
		where l.shard = i.shard and l.job_id = i.id and l.state in (1, 2) and coalesce(case when l.trigger_type = 'RETRY' then l.last_time end, l.scheduled_time) <= $3::bigint - i.late_after
		and l.id between $4 and $5
		and not exists (select from {{schema}}.xxl_job_alarm a where a.log_id = l.id and a.cause = 'late') order by l.job_id, l.id limit $6) l) l
	order by l.id limit $6
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ), nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any($3::pg_catalog.text[]) and not n.has_left
	order by n.incarnation for key share of n )
	update {{schema}}.xxl_job_log l set executor_address = $4, executor_boot_id = $5,
		start_owner = $6, inbox = $7,
		taken_time = case when $8::boolean then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end, trigger_msg = case when coalesce($9::pg_catalog.text, '') = '' then (case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end)
	when coalesce((case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end), '') = '' then $9::pg_catalog.text else (case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)type: ' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['FIRST', 'LAST', 'ROUND', 'RANDOM', 'CONSISTENT_HASH', 'LEAST_FREQUENTLY_USED', 'LEAST_RECENTLY_USED', 'FAILOVER', 'BUSYOVER', 'SHARDING_BROADCAST', 'NEAREST'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end) || E'\n' || $9::pg_catalog.text end, routed = null
	from fence
	where l.id = $10 and l.shard + 0 = fence.shard and l.state + 0 = 1 and l.start_token = $11
	and coalesce(l.start_owner, pg_catalog.substr(l.executor_address, 9)) = $12
	and (l.taken_time is null or l.executor_address = 'local://' || $12::pg_catalog.text)
	and ($7::pg_catalog.text is null or $7::pg_catalog.text in (select incarnation from nodes))
	returning l.id
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ), nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any($3::pg_catalog.text[]) and not n.has_left
	order by n.incarnation for key share of n ), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $4 and $5) any_retry)
	update {{schema}}.xxl_job_log l set state = $6::smallint,
		start_owner = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]], start_token = case when $6::smallint = 1 then ($9::bigint[])[s.ord] end,
		executor_address = ($7::pg_catalog.text[])[($10::smallint[])[s.ord]],
		inbox = ($7::pg_catalog.text[])[($11::smallint[])[s.ord]], trigger_time = case when $6::smallint = 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		taken_time = case when ($12::boolean[])[s.ord] then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		handle_time = case when $6::smallint <> 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($13::smallint[])[s.ord]], executor_block_strategy = ($7::pg_catalog.text[])[($14::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = ($15::int[])[s.ord],
		executor_sharding_param = coalesce(($7::pg_catalog.text[])[($16::smallint[])[s.ord]], l.executor_sharding_param), executor_boot_id = ($7::pg_catalog.text[])[($17::smallint[])[s.ord]],
		trigger_msg = case when coalesce(($7::pg_catalog.text[])[($18::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] end, routed = null, handle_msg = coalesce($19::pg_catalog.text, l.handle_msg)
	from (select pg_catalog.unnest($20::bigint[]) id, pg_catalog.unnest($21::int[]) job_id, pg_catalog.unnest($22::smallint[]) shard,
		pg_catalog.unnest($23::bigint[]) version, pg_catalog.unnest($24::pg_catalog.text[]) param, pg_catalog.unnest($25::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($16::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(($11::smallint[])[s.ord], 0) = 0 or ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] in (select incarnation from nodes))
	and ($26::int = 0 or (select pg_catalog.count(*) from nodes) = $26) and $27::bigint <= $28::bigint
	and (coalesce(($29::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = 1 and (b.executor_address = ($7::pg_catalog.text[])[($29::smallint[])[s.ord]] or b.executor_address = any($30::pg_catalog.text[]))
			and b.id between $31 and $32))
	and (coalesce(($33::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($34::bigint[])[s.ord]
			and (w.last_time < ($34::bigint[])[s.ord] or w.trigger_id < ($33::bigint[])[s.ord])
			and w.id between $4 and $5))
	returning s.ord, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ), nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any($3::pg_catalog.text[]) and not n.has_left
	order by n.incarnation for key share of n ), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $4 and $5) any_retry)
	update {{schema}}.xxl_job_log l set state = $6::smallint,
		start_owner = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]], start_token = case when $6::smallint = 1 then ($9::bigint[])[s.ord] end,
		executor_address = ($7::pg_catalog.text[])[($10::smallint[])[s.ord]],
		inbox = ($7::pg_catalog.text[])[($11::smallint[])[s.ord]], trigger_time = case when $6::smallint = 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		taken_time = case when ($12::boolean[])[s.ord] then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		handle_time = case when $6::smallint <> 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($13::smallint[])[s.ord]], executor_block_strategy = ($7::pg_catalog.text[])[($14::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = ($15::int[])[s.ord],
		executor_sharding_param = coalesce(($7::pg_catalog.text[])[($16::smallint[])[s.ord]], l.executor_sharding_param), executor_boot_id = ($7::pg_catalog.text[])[($17::smallint[])[s.ord]],
		trigger_msg = case when coalesce(($7::pg_catalog.text[])[($18::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] end, routed = null, handle_msg = coalesce($19::pg_catalog.text, l.handle_msg)
	from (select pg_catalog.unnest($20::bigint[]) id, pg_catalog.unnest($21::int[]) job_id, pg_catalog.unnest($22::smallint[]) shard,
		pg_catalog.unnest($23::bigint[]) version, pg_catalog.unnest($24::pg_catalog.text[]) param, pg_catalog.unnest($25::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($16::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(($11::smallint[])[s.ord], 0) = 0 or ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] in (select incarnation from nodes))
	and ($26::int = 0 or (select pg_catalog.count(*) from nodes) = $26) and $27::bigint <= $28::bigint
	and (coalesce(($29::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = 1 and (b.executor_address = ($7::pg_catalog.text[])[($29::smallint[])[s.ord]] or b.executor_address = any($30::pg_catalog.text[]))
			and b.id between $31 and $32))
	and (coalesce(($33::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($34::bigint[])[s.ord]
			and (w.last_time < ($34::bigint[])[s.ord] or w.trigger_id < ($33::bigint[])[s.ord])
			and w.id between $4 and $5))
	returning s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k ), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $3 and $4) any_retry)
	update {{schema}}.xxl_job_log l set state = 1, start_owner = null, start_token = ($5::bigint[])[s.ord],
		executor_address = $6::pg_catalog.text, inbox = null, trigger_time = (select pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())), taken_time = (select pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())), handle_time = null,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]],
		executor_block_strategy = ($7::pg_catalog.text[])[($9::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = coalesce(($10::int[])[s.ord], 0), executor_boot_id = null,
		routed = case when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] end, trigger_msg = case when (case when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] end) is null then case when coalesce(($7::pg_catalog.text[])[($12::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($12::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($12::smallint[])[s.ord]] end end
	from (select pg_catalog.unnest($13::bigint[]) id, pg_catalog.unnest($14::int[]) job_id, pg_catalog.unnest($15::smallint[]) shard,
		pg_catalog.unnest($16::bigint[]) version, pg_catalog.unnest($17::pg_catalog.text[]) param, pg_catalog.unnest($18::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence)) and $19::bigint <= $20::bigint
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($21::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($22::bigint[])[s.ord]
			and (w.last_time < ($22::bigint[])[s.ord] or w.trigger_id < ($21::bigint[])[s.ord])
			and w.id between $3 and $4))
	returning s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked)
	update {{schema}}.xxl_job_log l set plan_epoch = (select fence.epoch from fence where fence.shard = l.shard)
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($3::bigint[]) and p.id between $4 and $5
		and p.state + 0 = 0 and p.plan_epoch is null order by p.id for no key update skip locked))
	and l.id between $4 and $5 and l.shard + 0 = any(array(select shard from fence))
	returning l.id, l.plan_epoch
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked),
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ($3::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(($4::bigint[])[d.ord], 0), n.trigger_last_time),
			run_count = n.run_count + coalesce(($5::int[])[d.ord], ($6::int[])[d.ord + 1] - ($6::int[])[d.ord]),
			version = n.version + coalesce(($7::smallint[])[d.ord], 0)
		from (select pg_catalog.unnest($8::int[]) job_id, pg_catalog.unnest($9::smallint[]) shard, pg_catalog.unnest($10::bigint[]) version,
			pg_catalog.unnest($11::bigint[]) due, pg_catalog.unnest($12::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = 1 and n.trigger_next_time > 0
		and d.job_id = any(array(select m.job_id from {{schema}}.xxl_job_next m where m.job_id = any($8::int[])
			order by m.job_id for no key update skip locked))
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 id)
	insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, plan_epoch, add_time, executor_fail_retry_count, trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, handle_time)
		select (select id from base) + (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), r.job_id, r.shard, r.app_name, ($13::bigint[])[r.ord], pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), -1, ($14::pg_catalog.text[])[coalesce(($15::smallint[])[r.k], 1)], coalesce(($16::smallint[])[r.k], 0), case when coalesce(($16::smallint[])[r.k], 0) > 2 then 1 else 0 end, ($17::bigint[])[r.k], nullif(($18::bigint[])[r.k], 0), nullif(($19::bigint[])[r.k], 0), nullif(($20::int[])[r.k], 0), ($14::pg_catalog.text[])[($21::smallint[])[r.k]], case when coalesce(($16::smallint[])[r.k], 0) > 2 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
		from (select a.*, pg_catalog.generate_series(($6::int[])[a.ord], ($6::int[])[a.ord + 1] - 1) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked),
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ($3::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(($4::bigint[])[d.ord], 0), n.trigger_last_time),
			run_count = n.run_count + coalesce(($5::int[])[d.ord], ($6::int[])[d.ord + 1] - ($6::int[])[d.ord]),
			version = n.version + coalesce(($7::smallint[])[d.ord], 0)
		from (select pg_catalog.unnest($8::int[]) job_id, pg_catalog.unnest($9::smallint[]) shard, pg_catalog.unnest($10::bigint[]) version,
			pg_catalog.unnest($11::bigint[]) due, pg_catalog.unnest($12::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = 1 and n.trigger_next_time > 0
		and d.job_id = any(array(select m.job_id from {{schema}}.xxl_job_next m where m.job_id = any($8::int[])
			order by m.job_id for no key update skip locked))
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 id), inserted as (insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, plan_epoch, add_time, executor_fail_retry_count, trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, handle_time)
		select (select id from base) + (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint), r.job_id, r.shard, r.app_name, ($13::bigint[])[r.ord], pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), -1, ($14::pg_catalog.text[])[coalesce(($15::smallint[])[r.k], 1)], coalesce(($16::smallint[])[r.k], 0), case when coalesce(($16::smallint[])[r.k], 0) > 2 then 1 else 0 end, ($17::bigint[])[r.k], nullif(($18::bigint[])[r.k], 0), nullif(($19::bigint[])[r.k], 0), nullif(($20::int[])[r.k], 0), ($14::pg_catalog.text[])[($21::smallint[])[r.k]], case when coalesce(($16::smallint[])[r.k], 0) > 2 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
		from (select a.*, pg_catalog.generate_series(($6::int[])[a.ord], ($6::int[])[a.ord + 1] - 1) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time)
	select 0::bigint, a.job_id, a.app_name, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), 0::bigint from advanced a
	union all select * from inserted
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked), nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any($3::pg_catalog.text[]) and not n.has_left
	order by n.incarnation for key share of n skip locked), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $4 and $5) any_retry)
	update {{schema}}.xxl_job_log l set state = $6::smallint,
		start_owner = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]], start_token = case when $6::smallint = 1 then ($9::bigint[])[s.ord] end,
		executor_address = ($7::pg_catalog.text[])[($10::smallint[])[s.ord]],
		inbox = ($7::pg_catalog.text[])[($11::smallint[])[s.ord]], trigger_time = case when $6::smallint = 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		taken_time = case when ($12::boolean[])[s.ord] then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		handle_time = case when $6::smallint <> 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($13::smallint[])[s.ord]], executor_block_strategy = ($7::pg_catalog.text[])[($14::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = ($15::int[])[s.ord],
		executor_sharding_param = coalesce(($7::pg_catalog.text[])[($16::smallint[])[s.ord]], l.executor_sharding_param), executor_boot_id = ($7::pg_catalog.text[])[($17::smallint[])[s.ord]],
		trigger_msg = case when coalesce(($7::pg_catalog.text[])[($18::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] end, routed = null, handle_msg = coalesce($19::pg_catalog.text, l.handle_msg)
	from (select pg_catalog.unnest($20::bigint[]) id, pg_catalog.unnest($21::int[]) job_id, pg_catalog.unnest($22::smallint[]) shard,
		pg_catalog.unnest($23::bigint[]) version, pg_catalog.unnest($24::pg_catalog.text[]) param, pg_catalog.unnest($25::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))
		and s.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($20::bigint[]) and p.id between $26 and $27
			and p.state + 0 = 0 order by p.id for no key update skip locked))
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($16::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(($11::smallint[])[s.ord], 0) = 0 or ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] in (select incarnation from nodes))
	and ($28::int = 0 or (select pg_catalog.count(*) from nodes) = $28) and $26::bigint <= $27::bigint
	and (coalesce(($29::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = 1 and (b.executor_address = ($7::pg_catalog.text[])[($29::smallint[])[s.ord]] or b.executor_address = any($30::pg_catalog.text[]))
			and b.id between $31 and $32))
	and (coalesce(($33::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($34::bigint[])[s.ord]
			and (w.last_time < ($34::bigint[])[s.ord] or w.trigger_id < ($33::bigint[])[s.ord])
			and w.id between $4 and $5))
	returning s.ord, l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked), nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any($3::pg_catalog.text[]) and not n.has_left
	order by n.incarnation for key share of n skip locked), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $4 and $5) any_retry)
	update {{schema}}.xxl_job_log l set state = $6::smallint,
		start_owner = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]], start_token = case when $6::smallint = 1 then ($9::bigint[])[s.ord] end,
		executor_address = ($7::pg_catalog.text[])[($10::smallint[])[s.ord]],
		inbox = ($7::pg_catalog.text[])[($11::smallint[])[s.ord]], trigger_time = case when $6::smallint = 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		taken_time = case when ($12::boolean[])[s.ord] then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		handle_time = case when $6::smallint <> 1 then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($13::smallint[])[s.ord]], executor_block_strategy = ($7::pg_catalog.text[])[($14::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = ($15::int[])[s.ord],
		executor_sharding_param = coalesce(($7::pg_catalog.text[])[($16::smallint[])[s.ord]], l.executor_sharding_param), executor_boot_id = ($7::pg_catalog.text[])[($17::smallint[])[s.ord]],
		trigger_msg = case when coalesce(($7::pg_catalog.text[])[($18::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($18::smallint[])[s.ord]] end, routed = null, handle_msg = coalesce($19::pg_catalog.text, l.handle_msg)
	from (select pg_catalog.unnest($20::bigint[]) id, pg_catalog.unnest($21::int[]) job_id, pg_catalog.unnest($22::smallint[]) shard,
		pg_catalog.unnest($23::bigint[]) version, pg_catalog.unnest($24::pg_catalog.text[]) param, pg_catalog.unnest($25::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))
		and s.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($20::bigint[]) and p.id between $26 and $27
			and p.state + 0 = 0 order by p.id for no key update skip locked))
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($16::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(($11::smallint[])[s.ord], 0) = 0 or ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] in (select incarnation from nodes))
	and ($28::int = 0 or (select pg_catalog.count(*) from nodes) = $28) and $26::bigint <= $27::bigint
	and (coalesce(($29::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = 1 and (b.executor_address = ($7::pg_catalog.text[])[($29::smallint[])[s.ord]] or b.executor_address = any($30::pg_catalog.text[]))
			and b.id between $31 and $32))
	and (coalesce(($33::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($34::bigint[])[s.ord]
			and (w.last_time < ($34::bigint[])[s.ord] or w.trigger_id < ($33::bigint[])[s.ord])
			and w.id between $4 and $5))
	returning s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg
;;
/* xxljob */ with fence as materialized (
	select k.shard, f.epoch from unnest($1::smallint[], $2::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k skip locked), retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where w.state = 0 and w.trigger_type = 'RETRY' and w.id between $3 and $4) any_retry)
	update {{schema}}.xxl_job_log l set state = 1, start_owner = null, start_token = ($5::bigint[])[s.ord],
		executor_address = $6::pg_catalog.text, inbox = null, trigger_time = (select pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())), taken_time = (select pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())), handle_time = null,
		job_version = s.version, executor_handler = ($7::pg_catalog.text[])[($8::smallint[])[s.ord]],
		executor_block_strategy = ($7::pg_catalog.text[])[($9::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = coalesce(($10::int[])[s.ord], 0), executor_boot_id = null,
		routed = case when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] end, trigger_msg = case when (case when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($11::smallint[])[s.ord]] end) is null then case when coalesce(($7::pg_catalog.text[])[($12::smallint[])[s.ord]], '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then ($7::pg_catalog.text[])[($12::smallint[])[s.ord]] else l.trigger_msg || E'\n' || ($7::pg_catalog.text[])[($12::smallint[])[s.ord]] end end
	from (select pg_catalog.unnest($13::bigint[]) id, pg_catalog.unnest($14::int[]) job_id, pg_catalog.unnest($15::smallint[]) shard,
		pg_catalog.unnest($16::bigint[]) version, pg_catalog.unnest($17::pg_catalog.text[]) param, pg_catalog.unnest($18::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence)) and $19::bigint <= $20::bigint and s.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($13::bigint[]) and p.id between $19 and $20
			and p.state + 0 = 0 order by p.id for no key update skip locked))
	and l.id = any(array[s.id]) and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') and (l.born is null or i.stop_reason = 'manual'))
	and (coalesce(($21::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and w.state = 0 and w.trigger_type = 'RETRY' and w.last_time <= ($22::bigint[])[s.ord]
			and (w.last_time < ($22::bigint[])[s.ord] or w.trigger_id < ($21::bigint[])[s.ord])
			and w.id between $3 and $4))
	returning s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg
;;
/* xxljob */ with found as materialized (select b.ord, r.registry_key, r.registry_value from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address
	where b.boot = '' or b.boot = r.boot_id order by r.registry_key, r.registry_value for update of r skip locked), dropped as (delete from {{schema}}.xxl_job_registry r using found
	where r.registry_group = 'EXECUTOR' and r.registry_key = found.registry_key and r.registry_value = found.registry_value)
	select b.ord from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address
	where b.boot = '' or b.boot = r.boot_id except select ord from found
;;
/* xxljob */ with found as materialized (select b.ord, r.registry_key, r.registry_value from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address
	where b.boot = '' or b.boot = r.boot_id order by r.registry_key, r.registry_value for update of r)
	delete from {{schema}}.xxl_job_registry r using found
	where r.registry_group = 'EXECUTOR' and r.registry_key = found.registry_key and r.registry_value = found.registry_value
;;
/* xxljob */ with free as materialized (
		select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share skip locked)
	select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) and n.job_id not in (select job_id from free)
;;
/* xxljob */ with free as materialized (select b.ord from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address order by r.registry_key, r.registry_value for no key update of r skip locked),
	locked as materialized (select b.ord from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address except select ord from free)
	insert into {{schema}}.xxl_job_registry as r (registry_group, registry_key, registry_value, boot_id, capabilities, update_time)
	select 'EXECUTOR', b.app, b.address, b.boot, b.can::pg_catalog.text[], pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp())
	from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.text[])
		with ordinality b(app, address, boot, can, ord)
	where b.ord <> all(array(select ord from locked))
	order by b.ord
	on conflict (registry_group, registry_key, registry_value) do update
		set boot_id = excluded.boot_id, capabilities = excluded.capabilities, update_time = pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()),
		former_boot = case when r.boot_id = excluded.boot_id then r.former_boot else r.boot_id end,
		former_seen = case when r.boot_id = excluded.boot_id then r.former_seen else r.update_time end
	returning 1
;;
/* xxljob */ with free as materialized (select l.id from {{schema}}.xxl_job_log l where l.id = (select t.trigger_id from {{schema}}.xxl_job_log t where t.id = $1 and t.trigger_id <> t.id) and l.state + 0 <> 0 for no key update skip locked)
	select l.id from {{schema}}.xxl_job_log l where l.id = (select t.trigger_id from {{schema}}.xxl_job_log t where t.id = $1 and t.trigger_id <> t.id) and l.state + 0 <> 0 and l.id not in (select id from free)
;;
/* xxljob */ with free as materialized (select l.id from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.state + 0 <> 0 order by l.id for no key update skip locked)
	select l.id from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.state + 0 <> 0 and l.id not in (select id from free)
;;
/* xxljob */ with free as materialized (select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id = any($1::bigint[])
		order by p.trigger_id for no key update skip locked)
	select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id = any($1::bigint[]) and p.trigger_id not in (select trigger_id from free)
;;
/* xxljob */ with free as materialized (select w.job_id, w.begins from {{schema}}.xxl_job_window w where (w.job_id, w.begins) in (select r.job_id, r.begins from unnest($1::int[], $2::bigint[]) r(job_id, begins)) order by w.job_id, w.begins for no key update skip locked)
	select w.job_id, w.begins from {{schema}}.xxl_job_window w where (w.job_id, w.begins) in (select r.job_id, r.begins from unnest($1::int[], $2::bigint[]) r(job_id, begins)) and not exists (select from free f where f.job_id = w.job_id and f.begins = w.begins)
;;
/* xxljob */ with given as materialized (
	select r.run_id, r.first_line, r.last_line, r.size, r.content, r.notice, l.job_id, (l.id / 8192::bigint / 86400000::bigint)::int as day
	from unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::bytea[], $6::boolean[], $7::int[])
		r(run_id, first_line, last_line, size, content, notice, ord)
	join {{schema}}.xxl_job_log l on l.id = r.run_id and r.ord = r.ord + 0
	where (select p.last_line from {{schema}}.xxl_job_log_page p where p.run_id = r.run_id and p.first_line = r.first_line) is null),
	used as (
	insert into {{schema}}.xxl_job_log_use as u (day, job_id, bytes)
	select g.day, g.job_id, pg_catalog.sum(pg_catalog.octet_length(g.content)) from given g group by g.day, g.job_id order by g.day, g.job_id
	on conflict (day, job_id) do update set bytes = u.bytes + excluded.bytes where u.bytes < $8
	returning u.day, u.job_id),
	put as (
	insert into {{schema}}.xxl_job_log_page (run_id, first_line, last_line, size, content)
	select g.run_id, g.first_line, g.last_line, g.size, g.content from given g
	where g.notice or exists (select from used u where u.day = g.day and u.job_id = g.job_id)
	order by g.run_id, g.first_line
	on conflict (run_id, first_line) do nothing)
	select distinct g.run_id from given g
	where not g.notice and not exists (select from used u where u.day = g.day and u.job_id = g.job_id)
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.state = 11 and a.handle_time < $1 order by a.handle_time limit $2)) returning d.id),
	keys as (delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any(array(select id from gone)))
	select id from gone
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_link k where k.job_id = any($1::int[]))
	insert into {{schema}}.xxl_job_link (job_id, other_id, other_app, other_key)
	select * from unnest($2::int[], $3::int[], $4::pg_catalog.text[], $5::pg_catalog.text[])
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_log_page p where p.run_id = $1
		and p.first_line = any(array(select f.first_line from {{schema}}.xxl_job_log_page f where f.run_id = $1 order by f.first_line limit $2)) returning p.run_id, pg_catalog.octet_length(p.content) as bytes)
	select g.run_id, (g.run_id / 8192::bigint / 86400000::bigint)::int, pg_catalog.count(*), pg_catalog.sum(g.bytes)::bigint from gone g group by g.run_id
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_log_page p where p.run_id = any($1::bigint[]) and p.run_id between $2 and $3 returning p.run_id, pg_catalog.octet_length(p.content) as bytes)
	select g.run_id, (g.run_id / 8192::bigint / 86400000::bigint)::int, pg_catalog.count(*), pg_catalog.sum(g.bytes)::bigint from gone g group by g.run_id
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_report x where x.ctid = any(array(select y.ctid from {{schema}}.xxl_job_report y
		where y.quarter < $1::bigint order by y.quarter, y.app_name, y.slot limit $2 for update skip locked)) returning x.*),
	folded as (insert into {{schema}}.xxl_job_log_report as t (trigger_day, app_name, running_count, suc_count, fail_count, update_time, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more)
		select '1970-01-01'::pg_catalog.date + (r.quarter / 86400000::bigint)::int, r.app_name, 0, pg_catalog.sum(r.succeeded + r.snoozed)::bigint, pg_catalog.sum(r.failed + r.timed_out + r.killed + r.lost + r.refused + r.discarded)::bigint, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), pg_catalog.sum(r.succeeded)::bigint, pg_catalog.sum(r.failed)::bigint, pg_catalog.sum(r.timed_out)::bigint, pg_catalog.sum(r.killed)::bigint, pg_catalog.sum(r.lost)::bigint, pg_catalog.sum(r.refused)::bigint, pg_catalog.sum(r.discarded)::bigint, pg_catalog.sum(r.skipped)::bigint, pg_catalog.sum(r.cancelled)::bigint, pg_catalog.sum(r.snoozed)::bigint, pg_catalog.sum(r.late_sum)::bigint, pg_catalog.sum(r.late_1)::bigint, pg_catalog.sum(r.late_2)::bigint, pg_catalog.sum(r.late_5)::bigint, pg_catalog.sum(r.late_10)::bigint, pg_catalog.sum(r.late_20)::bigint, pg_catalog.sum(r.late_50)::bigint, pg_catalog.sum(r.late_100)::bigint, pg_catalog.sum(r.late_200)::bigint, pg_catalog.sum(r.late_500)::bigint, pg_catalog.sum(r.late_1000)::bigint, pg_catalog.sum(r.late_2000)::bigint, pg_catalog.sum(r.late_5000)::bigint, pg_catalog.sum(r.late_10000)::bigint, pg_catalog.sum(r.late_20000)::bigint, pg_catalog.sum(r.late_50000)::bigint, pg_catalog.sum(r.late_100000)::bigint, pg_catalog.sum(r.late_200000)::bigint, pg_catalog.sum(r.late_300000)::bigint, pg_catalog.sum(r.late_more)::bigint, pg_catalog.sum(r.took_sum)::bigint, pg_catalog.sum(r.took_1)::bigint, pg_catalog.sum(r.took_2)::bigint, pg_catalog.sum(r.took_5)::bigint, pg_catalog.sum(r.took_10)::bigint, pg_catalog.sum(r.took_20)::bigint, pg_catalog.sum(r.took_50)::bigint, pg_catalog.sum(r.took_100)::bigint, pg_catalog.sum(r.took_200)::bigint, pg_catalog.sum(r.took_500)::bigint, pg_catalog.sum(r.took_1000)::bigint, pg_catalog.sum(r.took_2000)::bigint, pg_catalog.sum(r.took_5000)::bigint, pg_catalog.sum(r.took_10000)::bigint, pg_catalog.sum(r.took_20000)::bigint, pg_catalog.sum(r.took_50000)::bigint, pg_catalog.sum(r.took_100000)::bigint, pg_catalog.sum(r.took_200000)::bigint, pg_catalog.sum(r.took_300000)::bigint, pg_catalog.sum(r.took_more)::bigint
		from gone r group by 1, 2 order by 1, 2
		on conflict (trigger_day, app_name) do update set suc_count = t.suc_count + excluded.suc_count, fail_count = t.fail_count + excluded.fail_count,
			update_time = excluded.update_time, succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed, timed_out = t.timed_out + excluded.timed_out, killed = t.killed + excluded.killed, lost = t.lost + excluded.lost, refused = t.refused + excluded.refused, discarded = t.discarded + excluded.discarded, skipped = t.skipped + excluded.skipped, cancelled = t.cancelled + excluded.cancelled, snoozed = t.snoozed + excluded.snoozed, late_sum = t.late_sum + excluded.late_sum, late_1 = t.late_1 + excluded.late_1, late_2 = t.late_2 + excluded.late_2, late_5 = t.late_5 + excluded.late_5, late_10 = t.late_10 + excluded.late_10, late_20 = t.late_20 + excluded.late_20, late_50 = t.late_50 + excluded.late_50, late_100 = t.late_100 + excluded.late_100, late_200 = t.late_200 + excluded.late_200, late_500 = t.late_500 + excluded.late_500, late_1000 = t.late_1000 + excluded.late_1000, late_2000 = t.late_2000 + excluded.late_2000, late_5000 = t.late_5000 + excluded.late_5000, late_10000 = t.late_10000 + excluded.late_10000, late_20000 = t.late_20000 + excluded.late_20000, late_50000 = t.late_50000 + excluded.late_50000, late_100000 = t.late_100000 + excluded.late_100000, late_200000 = t.late_200000 + excluded.late_200000, late_300000 = t.late_300000 + excluded.late_300000, late_more = t.late_more + excluded.late_more, took_sum = t.took_sum + excluded.took_sum, took_1 = t.took_1 + excluded.took_1, took_2 = t.took_2 + excluded.took_2, took_5 = t.took_5 + excluded.took_5, took_10 = t.took_10 + excluded.took_10, took_20 = t.took_20 + excluded.took_20, took_50 = t.took_50 + excluded.took_50, took_100 = t.took_100 + excluded.took_100, took_200 = t.took_200 + excluded.took_200, took_500 = t.took_500 + excluded.took_500, took_1000 = t.took_1000 + excluded.took_1000, took_2000 = t.took_2000 + excluded.took_2000, took_5000 = t.took_5000 + excluded.took_5000, took_10000 = t.took_10000 + excluded.took_10000, took_20000 = t.took_20000 + excluded.took_20000, took_50000 = t.took_50000 + excluded.took_50000, took_100000 = t.took_100000 + excluded.took_100000, took_200000 = t.took_200000 + excluded.took_200000, took_300000 = t.took_300000 + excluded.took_300000, took_more = t.took_more + excluded.took_more)
	select pg_catalog.count(*) from gone
;;
/* xxljob */ with gone as (delete from {{schema}}.xxl_job_report x where x.ctid = any(array(select y.ctid from {{schema}}.xxl_job_report y
		where y.slot > 0 and y.quarter < $1::bigint order by y.quarter, y.app_name, y.slot limit $2 for update skip locked)) returning x.*),
	folded as (insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, succeeded, failed, timed_out, killed, lost, refused, discarded, skipped, cancelled, snoozed, late_sum, late_1, late_2, late_5, late_10, late_20, late_50, late_100, late_200, late_500, late_1000, late_2000, late_5000, late_10000, late_20000, late_50000, late_100000, late_200000, late_300000, late_more, took_sum, took_1, took_2, took_5, took_10, took_20, took_50, took_100, took_200, took_500, took_1000, took_2000, took_5000, took_10000, took_20000, took_50000, took_100000, took_200000, took_300000, took_more)
		select r.quarter, r.app_name, 0, pg_catalog.sum(r.succeeded)::bigint, pg_catalog.sum(r.failed)::bigint, pg_catalog.sum(r.timed_out)::bigint, pg_catalog.sum(r.killed)::bigint, pg_catalog.sum(r.lost)::bigint, pg_catalog.sum(r.refused)::bigint, pg_catalog.sum(r.discarded)::bigint, pg_catalog.sum(r.skipped)::bigint, pg_catalog.sum(r.cancelled)::bigint, pg_catalog.sum(r.snoozed)::bigint, pg_catalog.sum(r.late_sum)::bigint, pg_catalog.sum(r.late_1)::bigint, pg_catalog.sum(r.late_2)::bigint, pg_catalog.sum(r.late_5)::bigint, pg_catalog.sum(r.late_10)::bigint, pg_catalog.sum(r.late_20)::bigint, pg_catalog.sum(r.late_50)::bigint, pg_catalog.sum(r.late_100)::bigint, pg_catalog.sum(r.late_200)::bigint, pg_catalog.sum(r.late_500)::bigint, pg_catalog.sum(r.late_1000)::bigint, pg_catalog.sum(r.late_2000)::bigint, pg_catalog.sum(r.late_5000)::bigint, pg_catalog.sum(r.late_10000)::bigint, pg_catalog.sum(r.late_20000)::bigint, pg_catalog.sum(r.late_50000)::bigint, pg_catalog.sum(r.late_100000)::bigint, pg_catalog.sum(r.late_200000)::bigint, pg_catalog.sum(r.late_300000)::bigint, pg_catalog.sum(r.late_more)::bigint, pg_catalog.sum(r.took_sum)::bigint, pg_catalog.sum(r.took_1)::bigint, pg_catalog.sum(r.took_2)::bigint, pg_catalog.sum(r.took_5)::bigint, pg_catalog.sum(r.took_10)::bigint, pg_catalog.sum(r.took_20)::bigint, pg_catalog.sum(r.took_50)::bigint, pg_catalog.sum(r.took_100)::bigint, pg_catalog.sum(r.took_200)::bigint, pg_catalog.sum(r.took_500)::bigint, pg_catalog.sum(r.took_1000)::bigint, pg_catalog.sum(r.took_2000)::bigint, pg_catalog.sum(r.took_5000)::bigint, pg_catalog.sum(r.took_10000)::bigint, pg_catalog.sum(r.took_20000)::bigint, pg_catalog.sum(r.took_50000)::bigint, pg_catalog.sum(r.took_100000)::bigint, pg_catalog.sum(r.took_200000)::bigint, pg_catalog.sum(r.took_300000)::bigint, pg_catalog.sum(r.took_more)::bigint from gone r group by r.quarter, r.app_name order by r.quarter, r.app_name
		on conflict (quarter, app_name, slot) do update set succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed, timed_out = t.timed_out + excluded.timed_out, killed = t.killed + excluded.killed, lost = t.lost + excluded.lost, refused = t.refused + excluded.refused, discarded = t.discarded + excluded.discarded, skipped = t.skipped + excluded.skipped, cancelled = t.cancelled + excluded.cancelled, snoozed = t.snoozed + excluded.snoozed, late_sum = t.late_sum + excluded.late_sum, late_1 = t.late_1 + excluded.late_1, late_2 = t.late_2 + excluded.late_2, late_5 = t.late_5 + excluded.late_5, late_10 = t.late_10 + excluded.late_10, late_20 = t.late_20 + excluded.late_20, late_50 = t.late_50 + excluded.late_50, late_100 = t.late_100 + excluded.late_100, late_200 = t.late_200 + excluded.late_200, late_500 = t.late_500 + excluded.late_500, late_1000 = t.late_1000 + excluded.late_1000, late_2000 = t.late_2000 + excluded.late_2000, late_5000 = t.late_5000 + excluded.late_5000, late_10000 = t.late_10000 + excluded.late_10000, late_20000 = t.late_20000 + excluded.late_20000, late_50000 = t.late_50000 + excluded.late_50000, late_100000 = t.late_100000 + excluded.late_100000, late_200000 = t.late_200000 + excluded.late_200000, late_300000 = t.late_300000 + excluded.late_300000, late_more = t.late_more + excluded.late_more, took_sum = t.took_sum + excluded.took_sum, took_1 = t.took_1 + excluded.took_1, took_2 = t.took_2 + excluded.took_2, took_5 = t.took_5 + excluded.took_5, took_10 = t.took_10 + excluded.took_10, took_20 = t.took_20 + excluded.took_20, took_50 = t.took_50 + excluded.took_50, took_100 = t.took_100 + excluded.took_100, took_200 = t.took_200 + excluded.took_200, took_500 = t.took_500 + excluded.took_500, took_1000 = t.took_1000 + excluded.took_1000, took_2000 = t.took_2000 + excluded.took_2000, took_5000 = t.took_5000 + excluded.took_5000, took_10000 = t.took_10000 + excluded.took_10000, took_20000 = t.took_20000 + excluded.took_20000, took_50000 = t.took_50000 + excluded.took_50000, took_100000 = t.took_100000 + excluded.took_100000, took_200000 = t.took_200000 + excluded.took_200000, took_300000 = t.took_300000 + excluded.took_300000, took_more = t.took_more + excluded.took_more)
	select pg_catalog.count(*) from gone
;;
/* xxljob */ with held as materialized (select u.day, u.job_id, r.bytes
	from unnest($1::int[], $2::int[], $3::bigint[]) r(day, job_id, bytes)
	join {{schema}}.xxl_job_log_use u on u.day = r.day and u.job_id = r.job_id order by u.day, u.job_id for no key update of u)
	update {{schema}}.xxl_job_log_use u set bytes = greatest(u.bytes - h.bytes, 0) from held h where u.day = h.day and u.job_id = h.job_id
;;
/* xxljob */ with l as (insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, trace, add_time)
	select coalesce($1::bigint, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint)), i.id, i.shard, i.app_name, $2, greatest($3::bigint, (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint), 0, $4, $5, $6, $7, $8, $9, $10, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $11 returning l.id, l.shard)
	select l.id from l where pg_catalog.pg_notify($12, 's' operator(pg_catalog.||) l.shard::pg_catalog.text) is not null
;;
/* xxljob */ with l as (select l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed from {{schema}}.xxl_job_log l where l.id = $1),
	asked as (
		insert into {{schema}}.xxl_job_ask (incarnation, run_id, from_line, asked)
		select $2, l.id, $3, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) from l returning id)
	select asked.id, l.* from asked, l
;;
/* xxljob */ with lists as materialized (select l.incarnation, l.generation, l.prune, l.job_keys from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = $1),
	mine as materialized (select * from lists where incarnation = $2)
	(select i.id, true from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = $1 and i.trigger_status = 1 and i.job_key <> '' and least(m.generation, (select h.generation from {{schema}}.xxl_job_list_head h where h.app_name = $1)) <= (select generation from mine where prune)
	and i.job_key not in (select pg_catalog.unnest(job_keys) from lists) order by i.id limit 10000)
	union all
	(select i.id, false from {{schema}}.xxl_job_info i
	where i.app_name = $1 and i.trigger_status = 0 and i.stop_reason = 'pruned'
	and i.job_key in (select pg_catalog.unnest(job_keys) from mine) order by i.id limit 10000)
;;
/* xxljob */ with mine as materialized (
	select p.id, r.ord from (select pg_catalog.unnest($1::bigint[]) id, pg_catalog.unnest($2::int[]) ord) r
	join {{schema}}.xxl_job_log p on p.id = r.id and r.ord = r.ord + 0
	where p.state + 0 in (1, 2) and p.start_token = ($3::bigint[])[r.ord]
		and (($4::smallint[])[r.ord] = 0 or p.state = 1
			and p.executor_address = ($5::pg_catalog.text[])[($4::smallint[])[r.ord]])
	order by p.id for no key update of p skip locked)
	update {{schema}}.xxl_job_log l set progress = ($6::smallint[])[r.ord], progress_text = ($7::pg_catalog.text[])[r.ord]
	from mine r where l.id = r.id and r.ord = r.ord + 0
;;
/* xxljob */ with nodes as (select n.* from {{schema}}.xxl_job_node n),
	locks as (select p.classid::bigint class, p.objid::bigint id from pg_catalog.pg_locks p where $1::boolean and p.locktype = 'advisory'
		and p.objsubid = 2 and p.granted
		and p.classid::bigint in ($2::int::bigint & 4294967295, $3::int::bigint & 4294967295)
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())),
	shards as (select k.shard, k.owner, k.epoch,
		k.owner = '' or n.incarnation is null or n.has_left
			or ($1::boolean and not exists (select from locks p where p.class = $2::int::bigint & 4294967295 and p.id = k.shard)) free
		from {{schema}}.xxl_job_lock k left join nodes n on n.incarnation = k.owner)
	select pg_catalog.clock_timestamp(), pg_catalog.pg_postmaster_start_time(), false, n.*, s.* from
	(select coalesce(pg_catalog.array_agg(incarnation order by incarnation), '{}'), coalesce(pg_catalog.array_agg(node_id order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(beats order by incarnation), '{}'), coalesce(pg_catalog.array_agg(has_left order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg($1::boolean and not has_left and incarnation <> $4 and not exists (select from locks p
			where p.class = $3::int::bigint & 4294967295 and p.id = pg_catalog.hashtext(incarnation)::bigint & 4294967295)
				order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(coalesce((pg_catalog.date_part('epoch', joined) operator(pg_catalog.*) 1000::double precision)::bigint, 0) order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(attached::pg_catalog.text order by incarnation), '{}'), coalesce(pg_catalog.array_agg(failing order by incarnation), '{}') from nodes) n,
	(select coalesce(pg_catalog.array_agg(shard order by shard), '{}'), coalesce(pg_catalog.array_agg(owner order by shard), '{}'),
		coalesce(pg_catalog.array_agg(epoch order by shard), '{}'), coalesce(pg_catalog.array_agg(free order by shard), '{}') from shards) s
;;
/* xxljob */ with r as materialized (select * from unnest($1::int[], $2::pg_catalog.text[], $3::bigint[], $4::smallint[],
		$5::bigint[], $6::bigint[], $7::pg_catalog.text[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::pg_catalog.text[])
		with ordinality r(job_id, key, parent, depth, due, business, param, trace, reason, line, ord)),
	k as (insert into {{schema}}.xxl_job_trigger_key as k (job_id, trigger_key, run_id)
		select o.job_id, o.key, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint) from (select distinct r.job_id, r.key collate "C" as key from r) o
		join {{schema}}.xxl_job_info i on i.id = o.job_id order by o.job_id, o.key
		on conflict do nothing returning k.job_id, k.trigger_key, k.run_id)
	insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, parent_id, depth, business_time, trigger_type, scheduled_time, state, alarm_status, executor_param, param_set, executor_fail_retry_count, first_time, last_time, instants, reason, trace, trigger_msg, add_time, handle_time)
	select k.run_id, i.id, i.shard, i.app_name, r.parent, r.depth, r.business, 'PARENT', case when r.due = 0 then (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint else r.due end, case when r.reason is null then 0 else 10 end, case when r.reason is null then 0 else 1 end, r.param, case when r.param is not null then true end, -1, case when r.reason is not null then case when r.due = 0 then (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint else r.due end end, case when r.reason is not null then case when r.due = 0 then (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())) operator(pg_catalog.*) 1000::double precision)::bigint else r.due end end, case when r.reason is not null then 1 end, r.reason, r.trace, r.line, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()), case when r.reason is not null then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end
	from k join lateral (select * from r where r.job_id = k.job_id and r.key = k.trigger_key order by r.ord limit 1) r on true
	join {{schema}}.xxl_job_info i on i.id = k.job_id
	returning l.id, l.job_id, l.app_name, l.shard, l.trigger_id, l.parent_id, l.attempt, l.trigger_type, l.scheduled_time, l.state, l.executor_sharding_param, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch, l.job_version, l.executor_handler, l.executor_block_strategy, l.executor_address, l.start_owner, l.start_token, l.kill_reason, l.add_time, l.trigger_time, l.taken_time, l.handle_time, l.trigger_msg, l.handle_msg, l.no_retry, l.alarm_status, l.first_time, l.last_time, l.instants, l.reason, l.executor_boot_id, l.late_noted, l.progress, l.progress_text, l.born, l.retries_set, l.reruns, l.snoozes, l.snoozed, l.depth, l.business_time, l.trace, l.routed
;;
/* xxljob */ with r as materialized (select i.id, 1 ord from pg_catalog.unnest($1::bigint[]) i(id)
		union select t.trigger_id, 1 from pg_catalog.unnest($1::bigint[]) with ordinality r(id, ord)
			join {{schema}}.xxl_job_log t on t.id = r.id and r.ord = r.ord + 0 where t.trigger_id is not null)
	select l.id from r join {{schema}}.xxl_job_log l on l.id = r.id and r.ord = r.ord + 0 and l.state + 0 <> 0 order by l.id for no key update of l
;;
/* xxljob */ with r as materialized (select u.*, ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000::double precision)::bigint operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192 operator(pg_catalog.+) (pg_catalog.nextval('{{schema}}.xxl_job_log_id') operator(pg_catalog.%) 7680::bigint) new_id from unnest($1::bigint[], $2::bigint[], $3::int[],
		$4::int[], $5::int[], $6::int[]) with ordinality u(id, due, attempt, retries, reruns, snoozes, ord)),
	inserted as (insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, trigger_id, parent_id, depth, business_time, attempt, trigger_type, born, scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, retries_set, reruns, snoozes, trace, first_time, last_time, instants, add_time)
		select r.new_id, l.job_id, l.shard, l.app_name, coalesce(l.trigger_id, l.id), l.parent_id, l.depth, l.business_time, nullif(r.attempt, 0), 'RETRY', case when l.born or l.trigger_type in ('CRON', 'FIX_RATE', 'FIX_DELAY', 'ONCE', 'MISFIRE') then true end, r.due, 0, l.executor_sharding_param, case when l.param_set then l.executor_param end, l.param_set, l.address_list, r.retries, l.retries_set, nullif(r.reruns, 0), nullif(r.snoozes, 0), l.trace, case when l.last_time is null then l.scheduled_time else l.first_time end, coalesce(l.last_time, l.scheduled_time), l.instants, pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) from r join {{schema}}.xxl_job_log l on l.id = r.id and r.ord = r.ord + 0)
	select r.id, r.new_id from r
;;
/* xxljob */ with was as (select has_left or attached <> $1::pg_catalog.text::pg_catalog.jsonb news from {{schema}}.xxl_job_node where incarnation = $2),
	mine as (
		insert into {{schema}}.xxl_job_node as n (incarnation, node_id, beats, has_left, joined, attached, lock_pid, lock_start, lock_name)
		values ($2, $3, 1, false, case when $4::boolean then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) end,
			$1::pg_catalog.text::pg_catalog.jsonb, $5, $6, $7)
		on conflict (incarnation) do update set beats = n.beats + 1, has_left = false, attached = excluded.attached,
			joined = case when $4::boolean then pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp()) else n.joined end,
				node_id = case when $4::boolean then $3 else n.node_id end,
			lock_pid = excluded.lock_pid, lock_start = excluded.lock_start, lock_name = excluded.lock_name
		returning *),
	nodes as (select * from mine union all select n.* from {{schema}}.xxl_job_node n where n.incarnation <> $2),
	locks as (select p.classid::bigint class, p.objid::bigint id from pg_catalog.pg_locks p where $8::boolean and p.locktype = 'advisory'
		and p.objsubid = 2 and p.granted
		and p.classid::bigint in ($9::int::bigint & 4294967295, $10::int::bigint & 4294967295)
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())),
	shards as (select k.shard, k.owner, k.epoch,
		k.owner = '' or n.incarnation is null or n.has_left
			or ($8::boolean and not exists (select from locks p where p.class = $9::int::bigint & 4294967295 and p.id = k.shard)) free
		from {{schema}}.xxl_job_lock k left join nodes n on n.incarnation = k.owner)
	select pg_catalog.clock_timestamp(), pg_catalog.pg_postmaster_start_time(), coalesce((select news from was), true), n.*, s.* from
	(select coalesce(pg_catalog.array_agg(incarnation order by incarnation), '{}'), coalesce(pg_catalog.array_agg(node_id order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(beats order by incarnation), '{}'), coalesce(pg_catalog.array_agg(has_left order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg($8::boolean and not has_left and incarnation <> $2 and not exists (select from locks p
			where p.class = $10::int::bigint & 4294967295 and p.id = pg_catalog.hashtext(incarnation)::bigint & 4294967295)
				order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(coalesce((pg_catalog.date_part('epoch', joined) operator(pg_catalog.*) 1000::double precision)::bigint, 0) order by incarnation), '{}'),
		coalesce(pg_catalog.array_agg(attached::pg_catalog.text order by incarnation), '{}'), coalesce(pg_catalog.array_agg(failing order by incarnation), '{}') from nodes) n,
	(select coalesce(pg_catalog.array_agg(shard order by shard), '{}'), coalesce(pg_catalog.array_agg(owner order by shard), '{}'),
		coalesce(pg_catalog.array_agg(epoch order by shard), '{}'), coalesce(pg_catalog.array_agg(free order by shard), '{}') from shards) s
;;
select a.pid, a.backend_start from pg_catalog.pg_stat_activity a where a.pid = pg_catalog.pg_backend_pid()
;;
select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where n.nspname = $1::pg_catalog.text and c.relname = 'xxl_job_setting')
;;
select exists (select from pg_catalog.pg_namespace where nspname = $1::pg_catalog.text)
;;
select pg_catalog.current_setting('server_version_num')::int, pg_catalog.pg_is_in_recovery(),
	pg_catalog.current_setting('default_transaction_read_only') = 'on', pg_catalog.current_setting('fsync') = 'on',
	pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('default_transaction_isolation'),
	pg_catalog.current_setting('DateStyle'), pg_catalog.current_setting('client_encoding'), pg_catalog.current_setting('array_nulls')
;;
select pg_catalog.has_schema_privilege($1::pg_catalog.text, 'usage')
		and pg_catalog.has_table_privilege($2::pg_catalog.text, 'select') and pg_catalog.has_table_privilege($2::pg_catalog.text, 'insert')
		and pg_catalog.has_table_privilege($2::pg_catalog.text, 'update') and pg_catalog.has_table_privilege($2::pg_catalog.text, 'delete')
;;
select pg_catalog.has_sequence_privilege($1::pg_catalog.text, 'usage')
;;
select pg_catalog.pg_advisory_xact_lock(1, -2)
;;
select pg_catalog.pg_backend_pid()
;;
select pg_catalog.set_config('application_name', $1, false)
;;
select pg_catalog.set_config('lock_timeout', '1000', true), pg_catalog.set_config('statement_timeout', '10000', true), pg_catalog.set_config('idle_in_transaction_session_timeout', '2000', true), pg_catalog.set_config('enable_seqscan', 'off', true), pg_catalog.set_config('enable_hashjoin', 'off', true), pg_catalog.set_config('enable_mergejoin', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('synchronous_commit', 'on', true)
;;
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.set_config('statement_timeout', '1000', true)
;;
select pg_catalog.set_config('statement_timeout', $1, $2)
