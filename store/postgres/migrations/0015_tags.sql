-- Words by which jobs are found, as a JSON list, and lists of jobs by name. A node of the
-- version before keeps the tags of a job that it edits.
alter table {{schema}}.xxl_job_info add column tags text not null default '';
create index xxl_job_info_tags on {{schema}}.xxl_job_info
    using gin ((nullif(tags, '')::pg_catalog.jsonb) pg_catalog.jsonb_path_ops) where tags <> '';
create index xxl_job_info_name on {{schema}}.xxl_job_info (job_desc collate pg_catalog."C", id);
