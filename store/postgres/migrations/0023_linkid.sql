-- schema_compatible: 22
-- The last table without a primary key gets one: from such a table nothing can be deleted while
-- the database has a publication for all tables, as Debezium makes it. A node of the version
-- before names its columns when it inserts, and never sees this one.
alter table {{schema}}.xxl_job_link add column id bigint generated always as identity primary key;
