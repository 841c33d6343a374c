-- schema_compatible: 22
-- What a node says of its process: the release of its program, and how far the store's clock is ahead of
-- its own, in milliseconds. A node of a version before says neither.
alter table {{schema}}.xxl_job_node add column version text, add column clock_offset bigint;
