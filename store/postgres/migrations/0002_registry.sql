-- What an executor of this module shows of itself when it registers. A node of the
-- version before knows of neither column and writes nothing into them.
update {{schema}}.xxl_job_registry set boot_id = '' where boot_id is null;
alter table {{schema}}.xxl_job_registry
    alter column boot_id set default '',
    alter column boot_id set not null,
    add column capabilities text[] not null default '{}';
