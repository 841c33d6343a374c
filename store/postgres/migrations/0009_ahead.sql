-- Runs that are planned so far ahead that they are kept apart until move_time; then the row
-- is deleted, and inserted into xxl_job_log under the same id. An entry is a row of that
-- table before its time, so that it is read like one: a column that xxl_job_log is given
-- later has to be added here as well. An entry that was cancelled stays until it is as old
-- as runs become.
create table {{schema}}.xxl_job_ahead (
    like {{schema}}.xxl_job_log including defaults including generated,
    move_time bigint not null,
    primary key (id)
);
create index xxl_job_ahead_move on {{schema}}.xxl_job_ahead (move_time, id, shard) where state = 0;
create index xxl_job_ahead_job on {{schema}}.xxl_job_ahead (job_id, id);
-- "id + 0" is what a list of an app's runs is in the order of: the primary key does not
-- serve it then, by which a plan for any app would go through the entries of all.
create index xxl_job_ahead_app on {{schema}}.xxl_job_ahead (app_name, (id + 0));
create index xxl_job_ahead_cancelled on {{schema}}.xxl_job_ahead (handle_time) where state = 11;
-- Makes the ids of entries unique within the hour in which they move.
create sequence {{schema}}.xxl_job_ahead_id;
