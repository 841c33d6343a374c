-- schema_compatible: 22
-- What a node can work out: whether it has data of time zones, and how much it knows of schedules.
-- A node of a version before leaves both out, and is taken for one that knows less.
alter table {{schema}}.xxl_job_node add column zones boolean, add column knows int;
