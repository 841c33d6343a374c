-- How many runs of a CONCURRENT job an executor runs side by side; 0 for as many as it has
-- places.
alter table {{schema}}.xxl_job_info add column max_per_executor int not null default 0;
