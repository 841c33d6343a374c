-- The bounds of schedules. What a claim and the end of a run go by is beside the next time
-- too, as the delay is. A node of the version before knows nothing of bounds: its claims
-- neither count runs nor heed them.
alter table {{schema}}.xxl_job_next
    add column run_count bigint not null default 0,     -- runs that the schedule has made
    add column counted_after bigint not null default 0, -- it counts runs with greater ids
    add column not_after bigint not null default 0,
    add column max_runs int not null default 0;
alter table {{schema}}.xxl_job_info
    add column not_before bigint not null default 0,
    add column not_after bigint not null default 0,
    add column max_runs int not null default 0;
