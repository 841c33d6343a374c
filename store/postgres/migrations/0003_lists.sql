-- Lists of jobs, as EnsureJobs was given them. The head of an app is what is known of
-- the list that was applied last; its row is also what lists and prunes of the app wait
-- for each other at.
create table {{schema}}.xxl_job_list_head (
    app_name   text collate "C" primary key,
    generation bigint not null,
    digest     text not null,
    node_id    text collate "C" not null
) with (fillfactor = 50);

-- The lists of the nodes.
create table {{schema}}.xxl_job_list (
    app_name    text collate "C" not null,
    incarnation text collate "C" not null,
    generation  bigint not null,
    prune       boolean not null,
    digest      text not null,
    job_keys    text[] collate "C" not null,
    primary key (app_name, incarnation)
);

-- Jobs that lists have named, each with the generation of the last of them. It is
-- beside the definitions, since a new generation changes it for all jobs of an app.
create table {{schema}}.xxl_job_named (
    job_id     int primary key,
    generation bigint not null
) with (fillfactor = 70);

-- Before there were generations, a list could prune every job that was ensured.
insert into {{schema}}.xxl_job_named (job_id, generation)
    select id, 0 from {{schema}}.xxl_job_info where ensured <> '';
