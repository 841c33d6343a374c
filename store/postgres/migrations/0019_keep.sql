-- How long the ended runs of a job are kept, in milliseconds (0: as long as all others). A node
-- of the version before drops none for it, and keeps the value of a job that it edits.
alter table {{schema}}.xxl_job_info add column keep_runs bigint not null default 0;
create index xxl_job_info_keep on {{schema}}.xxl_job_info (id) where keep_runs > 0;
-- Which runs are still needed by what is owed, and by open windows.
create index xxl_job_owed_run on {{schema}}.xxl_job_owed (log_id);
create index xxl_job_window_parent on {{schema}}.xxl_job_window (parent_id);
