-- Lines of runs' logs, in pages that are compressed: partitions of a day of the runs' ids, as
-- xxl_job_log has, which are dropped with those. What is compressed is not compressed again.
create table {{schema}}.xxl_job_log_page (
    run_id     bigint not null,
    first_line int not null,
    last_line  int not null,
    size       int not null,
    content    bytea not null,
    primary key (run_id, first_line)
) partition by range (run_id);
alter table {{schema}}.xxl_job_log_page alter column content set storage external;
-- How much the pages of a job have, by the day of their runs. Each batch of pages updates it.
create table {{schema}}.xxl_job_log_use (
    day    int not null,
    job_id int not null,
    bytes  bigint not null,
    primary key (day, job_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
