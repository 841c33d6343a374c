-- schema_compatible: 22
-- Whether the parameter of a job and the results of its runs are hidden, and given to jobs of its app
-- alone. A node of a version before gives them to any child, and keeps it in a job that it edits.
alter table {{schema}}.xxl_job_info add column secret boolean not null default false;
