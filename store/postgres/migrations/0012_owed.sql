-- What successes owe to other jobs, and alarms. Of a definition: children by their keys, and
-- the jobs that it runs behind, keys as a JSON list, times in milliseconds (0: the default).
-- A node of the version before triggers nothing after a success, and tells nobody.
alter table {{schema}}.xxl_job_info
    add column child_keys text not null default '',
    add column child_param text not null default '',
    add column after_jobs text not null default '',
    add column after_keys text not null default '',
    add column after_window bigint not null default 0,
    add column after_zone text not null default '',
    add column after_timeout bigint not null default 0,
    add column late_after bigint not null default 0;
create index xxl_job_info_late on {{schema}}.xxl_job_info (shard, id) where late_after > 0;
-- Of a run: how many runs led to it, and the time that its work is for.
alter table {{schema}}.xxl_job_log add column depth smallint, add column business_time bigint;
alter table {{schema}}.xxl_job_ahead add column depth smallint, add column business_time bigint;

-- The jobs that lead to children; a node of the version before may add one.
create index xxl_job_info_leads on {{schema}}.xxl_job_info (id) where child_jobid <> '' or child_keys <> '';
-- Which jobs a definition runs behind, a row each: by id, or by app and key.
create table {{schema}}.xxl_job_link (
    job_id     int not null,
    other_id   int,
    other_app  text collate "C",
    other_key  text collate "C"
);
create index xxl_job_link_job on {{schema}}.xxl_job_link (job_id);
create index xxl_job_link_other on {{schema}}.xxl_job_link (other_id) where other_id is not null;
create index xxl_job_link_key on {{schema}}.xxl_job_link (other_app, other_key) where other_app is not null;

-- What is owed, in the shard of the run that has succeeded; paid first in, first out.
create table {{schema}}.xxl_job_owed (
    id            bigint generated always as identity primary key,
    shard         smallint not null,
    log_id        bigint not null,
    trigger_id    bigint not null,
    parent_job    int not null,
    job_id        int,
    app_name      text collate "C",
    job_key       text collate "C",
    is_join       boolean not null,
    param_of      smallint not null default 0, -- of the run: 1 its parameter, 2 its result
    business_time bigint not null,
    depth         smallint not null,
    add_time      timestamptz not null default pg_catalog.now()
);
create index xxl_job_owed_shard on {{schema}}.xxl_job_owed (shard, id);

-- Broadcasts of jobs that lead to others, from the success of a part on: who is the last
-- finds out under the lock of this row.
create table {{schema}}.xxl_job_part (
    trigger_id bigint primary key,
    succeeded  boolean not null default false
);

-- Windows that are open: the jobs that have succeeded, and what follows when all have.
create table {{schema}}.xxl_job_window (
    job_id    int not null,
    begins    bigint not null,
    shard     smallint not null,
    expires   bigint not null,
    parent_id bigint not null,
    depth     smallint not null,
    succeeded int[] not null,
    primary key (job_id, begins)
);
create index xxl_job_window_expires on {{schema}}.xxl_job_window (shard, expires);

-- Alarms: an outbox. Status is XXL-JOB's alarm_status: 0 to be told, 1 nobody wants to know,
-- 2 told, 3 given up. The table of the first migration was never written to.
drop table {{schema}}.xxl_job_alarm;
create table {{schema}}.xxl_job_alarm (
    id          bigint generated always as identity primary key,
    shard       smallint not null,
    job_id      int not null,
    job_version bigint not null,
    app_name    text collate "C" not null,
    job_key     text not null,
    job_desc    text not null,
    alarm_email text not null,
    cause       text collate "C" not null,
    log_id      bigint,
    trigger_id  bigint,
    state       text,
    attempt     smallint,
    instant     bigint,
    content     text not null,
    told        text[] not null default '{}',
    status      smallint not null default 0,
    add_time    timestamptz not null,
    done_time   timestamptz
);
create unique index xxl_job_alarm_run on {{schema}}.xxl_job_alarm (log_id, cause) where log_id is not null;
create unique index xxl_job_alarm_job on {{schema}}.xxl_job_alarm (job_id, job_version, cause) where log_id is null;
create index xxl_job_alarm_open on {{schema}}.xxl_job_alarm (shard, id) where status = 0;
create index xxl_job_alarm_age on {{schema}}.xxl_job_alarm (add_time);

-- Whom a rule has told of a job last, and whether it waits to say that the job has recovered.
create table {{schema}}.xxl_job_told (
    job_id     int not null,
    rule       text collate "C" not null,
    shard      smallint not null,
    at         bigint not null,
    is_open    boolean not null,
    log_id     bigint,
    trigger_id bigint,
    primary key (job_id, rule)
);
create index xxl_job_told_shard on {{schema}}.xxl_job_told (shard, job_id) where is_open;
