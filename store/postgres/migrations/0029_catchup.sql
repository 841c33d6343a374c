-- schema_compatible: 22
-- How many missed instants of a job are caught up at most (0: 100), and how old they may be, in
-- milliseconds (0: of any age), where catch_up is EVERY_MISSED. A node of a version before catches
-- up as with EVERY, and keeps both of a job that it edits.
alter table {{schema}}.xxl_job_info add column catch_up_most int not null default 0, add column catch_up_age bigint not null default 0;
