-- How far a run is, by its handler: nothing for a run that has said nothing, so that no row
-- is longer for it. No index has either column: a row whose page has room changes in place.
-- Entries of xxl_job_ahead are read like runs, and always have nothing there.
alter table {{schema}}.xxl_job_log add column progress smallint, add column progress_text text;
alter table {{schema}}.xxl_job_ahead add column progress smallint, add column progress_text text;
