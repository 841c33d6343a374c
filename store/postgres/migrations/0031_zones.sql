-- schema_compatible: 22
-- Zones that a node has met in jobs and has no data of, as a list in JSON. A node of a version before says
-- none, and is given a job in any zone.
alter table {{schema}}.xxl_job_node add column unknown_zones text;
