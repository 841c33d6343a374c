-- The audit of jobs becomes the record of all changes. What it says of a job it has as before.
-- A node of the version before goes on writing entries of jobs, without what is new here.
alter table {{schema}}.xxl_job_change
    add column client     text not null default '',
    add column request_id text not null default '',
    add column object     text not null default 'job',
    add column object_id  text not null default '', -- of all but jobs
    add column app_name   text collate "C" not null default '',
    add column before     text not null default '',
    add column after      text not null default '',
    add column definition text; -- the job's, as it then is
create index xxl_job_change_of_job on {{schema}}.xxl_job_change (job_id, id) where object = 'job';
create index xxl_job_change_version on {{schema}}.xxl_job_change (job_id, version, id) where definition is not null;
create index xxl_job_change_at on {{schema}}.xxl_job_change (at, id);
create index xxl_job_change_actor on {{schema}}.xxl_job_change (actor, id);
create index xxl_job_change_verb on {{schema}}.xxl_job_change (verb, id);
create index xxl_job_change_app on {{schema}}.xxl_job_change (app_name, id);
create index xxl_job_change_object on {{schema}}.xxl_job_change (object_id, object, id);
create index xxl_job_change_kind on {{schema}}.xxl_job_change (object, id);
