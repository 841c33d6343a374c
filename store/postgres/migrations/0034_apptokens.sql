-- schema_compatible: 22
-- Tokens by which programs elsewhere speak for apps. A node of a version before accepts none of them.
create table {{schema}}.xxl_job_app_token (
    name         text collate "C" primary key,
    apps         text[] not null,
    hash         bytea  not null,
    added_time   timestamptz not null,
    added_by     text   not null,
    expires_time timestamptz not null,
    used_time    timestamptz
);
