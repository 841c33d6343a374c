-- schema_compatible: 22
-- Which routing strategies of its own a node has, and questions which address one of them chooses: both
-- lists in JSON. A node of a version before has none, and is not asked.
alter table {{schema}}.xxl_job_node add column routers text;
alter table {{schema}}.xxl_job_ask add column route text, add column addresses text;
