-- What follows the end of a run. Of a definition: the pauses between attempts, in
-- milliseconds, and how often a trigger may be run again and snoozed (0: the default).
-- on_lost has been there from the start. A node of the version before ends runs without what
-- follows them.
alter table {{schema}}.xxl_job_info
    add column retry_pause bigint not null default 0,
    add column retry_pause_max bigint not null default 0,
    add column retry_jitter smallint not null default 0,
    add column retry_aside boolean not null default false,
    add column max_reruns int not null default 0,
    add column max_snoozes int not null default 0;
-- Of a run: whether it is a retry of one that its schedule has made, whether its trigger gave
-- the number of retries, and how many runs before it were run again and snoozed. A run that
-- has ended as snoozed has the state of one that has succeeded, whose codes it shares, and is
-- told by a column of its own: a node of the version before takes it for done.
alter table {{schema}}.xxl_job_log
    add column born boolean, add column retries_set boolean,
    add column reruns smallint, add column snoozes smallint, add column snoozed boolean;
alter table {{schema}}.xxl_job_ahead
    add column born boolean, add column retries_set boolean,
    add column reruns smallint, add column snoozes smallint, add column snoozed boolean;
-- What was triggered with a number of retries before this keeps it. What has been started has
-- its job's number in that place where its trigger gave none, and keeps that one.
update {{schema}}.xxl_job_log set retries_set = true where state in (0, 1, 2) and executor_fail_retry_count >= 0;
update {{schema}}.xxl_job_ahead set retries_set = true where executor_fail_retry_count >= 0;
-- Those that wait to be tried again, for the serial runs that have to wait for them.
create index xxl_job_log_retries on {{schema}}.xxl_job_log (job_id, last_time, id) where state = 0 and trigger_type = 'RETRY';
-- Which process was registered at an address before the one that is, and when it was last
-- heard of: where two take turns there, neither has replaced the other.
alter table {{schema}}.xxl_job_registry
    add column former_boot text not null default '', add column former_seen timestamptz;
