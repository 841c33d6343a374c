-- Whether the node says that its claims or starts fail. A node of the version before
-- knows nothing of it, and neither says so nor heeds it.
alter table {{schema}}.xxl_job_node add column failing boolean not null default false;
