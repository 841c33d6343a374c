-- schema_compatible: 22
-- What somebody knows of, so that its alarms are not sent for a while. A node of a version before sends them.
create table {{schema}}.xxl_job_mute (
    mute_key   text   collate "C" primary key,
    app_name   text   not null,
    job_id     bigint not null,
    muted_time timestamptz not null,
    muted_by   text   not null,
    until_time timestamptz not null,
    note       text   not null
);
