-- schema_compatible: 22
-- What the rules of alarms of all nodes are about, and who tells of what a rule wants. A node of a
-- version before inserts alarms by its own rules alone, and ends those of its shards by them.
create table {{schema}}.xxl_job_rule (
    rule   text collate "C" primary key,
    name   text not null,
    apps   text[] not null,
    jobs   text[] not null,
    causes text[] not null,
    kept   timestamptz not null,
    gone   timestamptz,
    holder text not null default '',
    until  timestamptz
);
-- Which rules a node of an app has, by their keys.
create table {{schema}}.xxl_job_rule_node (
    app         text not null,
    node_id     text not null,
    incarnation text not null,
    rules       text[] not null,
    kept        timestamptz not null,
    primary key (app, node_id)
);
