-- What consoles read: records of skipped instants, newest first, and the children of a run.
-- Both indexes cost such runs alone.
create index xxl_job_log_skipped on {{schema}}.xxl_job_log (id) where state = 10;
create index xxl_job_log_parent on {{schema}}.xxl_job_log (parent_id, id) where parent_id is not null;
