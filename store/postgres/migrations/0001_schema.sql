-- The tables of the scheduler. Names and meanings of columns are XXL-JOB's where
-- it has them; times that XXL-JOB keeps as a date are timestamptz, all others are
-- milliseconds since 1970 in UTC, with 0 for none. What stands before the names of
-- tables is replaced by the quoted name of the schema.

create table {{schema}}.xxl_job_setting (
    name  text primary key,
    value text not null
);

-- Definitions. A row changes by edits only, never by the loop: so it stays
-- one version long under load, and may have the indexes that lists want.
create table {{schema}}.xxl_job_info (
    id                        int not null,
    shard                     smallint not null,
    version                   bigint not null,
    app_name                  text collate "C" not null,
    job_key                   text collate "C",
    job_desc                  text not null,
    author                    text collate "C" not null,
    alarm_email               text not null,
    schedule_type             text not null,
    schedule_conf             text not null,
    schedule_zone             text not null,
    schedule_dst              text not null,
    misfire_strategy          text not null,
    catch_up                  text not null,
    executor_route_strategy   text not null,
    executor_handler          text collate "C" not null,
    executor_param            text not null,
    executor_block_strategy   text not null,
    executor_timeout          bigint not null,
    executor_fail_retry_count int not null,
    on_lost                   text not null default '',
    glue_type                 text not null,
    glue_source               text not null,
    glue_remark               text not null,
    glue_updatetime           timestamptz,
    child_jobid               text not null,
    trigger_status            smallint not null,
    stop_reason               text not null,
    ensured                   text not null,
    add_time                  timestamptz not null,
    update_time               timestamptz not null,
    primary key (id, shard)
);
create sequence {{schema}}.xxl_job_info_id as int;
create unique index xxl_job_info_key on {{schema}}.xxl_job_info (app_name, job_key);
create index xxl_job_info_app on {{schema}}.xxl_job_info (app_name, id);
create index xxl_job_info_handler on {{schema}}.xxl_job_info (executor_handler, id);
create index xxl_job_info_author on {{schema}}.xxl_job_info (author, id);

-- What a claim changes: when the job is due. It is narrow, and finding a due job
-- or claiming it meets no older versions of its row: the index leads to the one
-- version with that next time.
create table {{schema}}.xxl_job_next (
    trigger_next_time bigint not null,
    trigger_last_time bigint not null,
    wait_run          bigint not null,
    version           bigint not null,
    delay             bigint not null, -- of a FIX_DELAY schedule, else 0
    job_id            int not null,
    shard             smallint not null,
    trigger_status    smallint not null,
    manual            boolean not null,
    app_name          text collate "C" not null,
    primary key (job_id, shard)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index xxl_job_next_due on {{schema}}.xxl_job_next (trigger_next_time, shard, (job_id + 0))
    where trigger_status = 1 and trigger_next_time > 0;
create index xxl_job_next_idle on {{schema}}.xxl_job_next (job_id)
    where trigger_next_time = 0 and (trigger_status = 1 and not manual or wait_run <> 0);

-- Runs, a partition for each day of ids. A run has three versions: planned,
-- started, ended.
create table {{schema}}.xxl_job_log (
    id                        bigint not null,
    scheduled_time            bigint not null,
    add_time                  timestamptz not null,
    trigger_time              timestamptz,
    taken_time                timestamptz,
    handle_time               timestamptz,
    plan_epoch                bigint,
    start_token               bigint,
    job_version               bigint,
    trigger_id                bigint, -- null: the run's own
    parent_id                 bigint,
    job_id                    int not null,
    executor_fail_retry_count int not null,
    shard                     smallint not null,
    state                     smallint not null,
    alarm_status              smallint not null default 0,
    trigger_code              smallint generated always as
        (case when state in (8, 9) then 500 when state < 2 then 0 else 200 end) stored,
    handle_code               smallint generated always as
        (case when state in (3, 10, 11) then 200 when state in (4, 6, 7) then 500 when state = 5 then 502 else 0 end) stored,
    attempt                   smallint,
    remaining                 int,
    param_set                 boolean,
    no_retry                  boolean,
    late_noted                boolean,
    app_name                  text collate "C" not null,
    trigger_type              text collate "C" not null,
    executor_address          text collate "C",
    start_owner               text collate "C", -- null: the incarnation in executor_address
    inbox                     text collate "C", -- the incarnation that is to take it
    executor_handler          text,
    executor_block_strategy   text,
    executor_param            text,
    executor_sharding_param   text,
    executor_boot_id          text,
    address_list              text[],
    kill_reason               text,
    first_time                bigint,
    last_time                 bigint,
    instants                  int,
    reason                    text,
    trigger_msg               text,
    handle_msg                text,
    primary key (id, shard)
) partition by range (id);
create sequence {{schema}}.xxl_job_log_id;
create index xxl_job_log_planned on {{schema}}.xxl_job_log (scheduled_time, id, shard) where state = 0;
create index xxl_job_log_foreign on {{schema}}.xxl_job_log (scheduled_time, id, shard) where state = 0 and plan_epoch is null;
create index xxl_job_log_waiting on {{schema}}.xxl_job_log (job_id, id) where state = 0;
create index xxl_job_log_started on {{schema}}.xxl_job_log (shard, job_id, id) where state in (1, 2);
create index xxl_job_log_ended on {{schema}}.xxl_job_log (job_id, id) where state > 2;
create index xxl_job_log_bad on {{schema}}.xxl_job_log (id) where state in (4, 5, 6, 7, 8, 9);
create index xxl_job_log_inbox on {{schema}}.xxl_job_log (inbox, id) where inbox is not null;
create index xxl_job_log_kill on {{schema}}.xxl_job_log (id) where kill_reason is not null and state in (1, 2);
create index xxl_job_log_trigger on {{schema}}.xxl_job_log (trigger_id, id) where trigger_id is not null;

-- Keys of triggers, each for one run.
create table {{schema}}.xxl_job_trigger_key (
    job_id      int not null,
    trigger_key text collate "C" not null,
    run_id      bigint not null,
    primary key (job_id, trigger_key)
);
create index xxl_job_trigger_key_run on {{schema}}.xxl_job_trigger_key (run_id);

-- The audit of jobs.
create table {{schema}}.xxl_job_change (
    id      bigint generated always as identity primary key,
    job_id  int not null,
    version bigint not null,
    at      timestamptz not null,
    actor   text not null,
    verb    text not null
);
create index xxl_job_change_job on {{schema}}.xxl_job_change (job_id, id);

-- Shards: who schedules them, under which epoch.
create table {{schema}}.xxl_job_lock (
    lock_name text primary key,
    shard     smallint not null unique,
    owner     text collate "C" not null,
    epoch     bigint not null
) with (fillfactor = 50);

create table {{schema}}.xxl_job_node (
    incarnation text collate "C" primary key,
    node_id     text collate "C" not null,
    beats       bigint not null,
    has_left    boolean not null,
    joined      timestamptz,
    attached    jsonb not null,
    -- The connection that holds the locks, for those who have to end it.
    lock_pid    int,
    lock_start  timestamptz,
    lock_name   text
) with (fillfactor = 50);

create table {{schema}}.xxl_job_group (
    id           int generated always as identity,
    app_name     text collate "C" primary key,
    title        text not null,
    address_type smallint not null,
    address_list text[] not null,
    paused       boolean not null default false,
    access_token text,
    update_time  timestamptz not null
);

create table {{schema}}.xxl_job_registry (
    registry_group text collate "C" not null,
    registry_key   text collate "C" not null,
    registry_value text collate "C" not null,
    boot_id        text,
    update_time    timestamptz not null,
    primary key (registry_group, registry_key, registry_value)
) with (fillfactor = 50);

create table {{schema}}.xxl_job_logglue (
    id          bigint generated always as identity primary key,
    job_id      int not null,
    glue_type   text not null,
    glue_source text not null,
    glue_remark text not null,
    add_time    timestamptz not null,
    update_time timestamptz not null
);
create index xxl_job_logglue_job on {{schema}}.xxl_job_logglue (job_id, id);

create table {{schema}}.xxl_job_log_report (
    trigger_day   date not null,
    app_name      text collate "C" not null,
    running_count bigint not null,
    suc_count     bigint not null,
    fail_count    bigint not null,
    update_time   timestamptz not null,
    primary key (trigger_day, app_name)
);

-- Alarms to be delivered, one for each cause.
create table {{schema}}.xxl_job_alarm (
    id       bigint generated always as identity primary key,
    run_id   bigint not null,
    job_id   int not null,
    cause    text not null,
    attempts int not null default 0,
    due      timestamptz not null,
    sent     timestamptz,
    unique (run_id, cause)
);

-- What one node asks of another: lines of a run's log.
create table {{schema}}.xxl_job_ask (
    id          bigint generated always as identity primary key,
    incarnation text collate "C" not null,
    run_id      bigint not null,
    from_line   int not null,
    asked       timestamptz not null,
    answered    timestamptz,
    to_line     int,
    content     text,
    is_end      boolean,
    refusal     text
);
create index xxl_job_ask_open on {{schema}}.xxl_job_ask (incarnation, id) where answered is null;
