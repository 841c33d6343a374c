-- The trace that a run was asked for in, as a tracer has written it: null for what a schedule
-- has made, and where nobody traces. What is owed keeps that of the run that has succeeded.
alter table {{schema}}.xxl_job_log add column trace text;
alter table {{schema}}.xxl_job_ahead add column trace text;
alter table {{schema}}.xxl_job_owed add column trace text;
