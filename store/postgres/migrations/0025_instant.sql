-- schema_compatible: 22
-- The instant that a run stands for where it is another than the one at which it is due: of a run
-- that was triggered for a time in the past, and of one that repeats another. Null elsewhere. A node
-- of a version before neither writes nor reads it, and starts such a run with the time at which it
-- is due.
alter table {{schema}}.xxl_job_log add column instant_time bigint;
alter table {{schema}}.xxl_job_ahead add column instant_time bigint;
