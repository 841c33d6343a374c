-- schema_compatible: 22
-- What becomes of a job while nobody is there for it, and how each app was served last. A node of a
-- version before keeps neither, and refuses such runs at once.
alter table {{schema}}.xxl_job_info add column on_no_executor text not null default '';
-- served_by is attached, registered, or empty where nobody has served the app yet; gone_time is
-- since when nobody does, in milliseconds since 1970, and 0 while somebody does.
create table {{schema}}.xxl_job_served (
    app_name  text   collate "C" primary key,
    served_by text   not null,
    gone_time bigint not null
);
