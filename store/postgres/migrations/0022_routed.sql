-- How a run at its owner's own executors was routed, in short, where trigger_msg would begin with
-- it: see store/postgres/routed.go, by which it is read. Null elsewhere, and for runs from before. A
-- node of the version before neither writes nor reads it, and does not show those lines.
alter table {{schema}}.xxl_job_log add column routed text;
alter table {{schema}}.xxl_job_ahead add column routed text;
