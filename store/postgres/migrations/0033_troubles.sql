-- schema_compatible: 22
-- Troubles that a node passes on to rules of others, as alarms without a run: of what kind, about which
-- address, and whether it is over. While one lasts, open_trouble of the row
-- that it has begun is its key, and noted_by are the incarnations that have noted it.
-- A node of a version before tells of them as of alarms about no job.
alter table {{schema}}.xxl_job_alarm
    add column trouble         text,
    add column trouble_address text,
    add column trouble_over    boolean,
    add column noted_by        text[],
    add column open_trouble    text collate "C";
create unique index xxl_job_alarm_trouble on {{schema}}.xxl_job_alarm (open_trouble) where open_trouble is not null;
