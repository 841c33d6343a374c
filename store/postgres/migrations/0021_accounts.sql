-- The users of a console. role is 1 for an admin, and permission has the roles by app as a JSON
-- object: XXL-JOB has ids of groups there. A node of the version before knows none of it.
create table {{schema}}.xxl_job_user (
    username     text collate "C" primary key,
    title        text not null,
    password     text not null,
    role         smallint not null,
    permission   text not null,
    scripts      boolean not null,
    disabled     boolean not null,
    settings     text not null default '',
    version      bigint not null,
    added        timestamptz not null,
    password_set timestamptz not null
);
create index xxl_job_user_admin on {{schema}}.xxl_job_user (username) where role = 1;
create table {{schema}}.xxl_job_user_session (
    hash     bytea primary key,
    id       bigint generated always as identity,
    username text collate "C" not null,
    client   text not null,
    agent    text not null,
    began    timestamptz not null,
    seen     timestamptz not null,
    proved   timestamptz not null
);
create index xxl_job_user_session_of on {{schema}}.xxl_job_user_session (username, seen, id);
create index xxl_job_user_session_began on {{schema}}.xxl_job_user_session (began);
create index xxl_job_user_session_seen on {{schema}}.xxl_job_user_session (seen);
create table {{schema}}.xxl_job_user_token (
    id         bigint generated always as identity primary key,
    username   text collate "C" not null,
    name       text not null,
    role       smallint not null,
    permission text not null,
    scripts    boolean not null,
    hash       bytea not null,
    added      timestamptz not null,
    expires    timestamptz not null,
    used       timestamptz
);
create index xxl_job_user_token_of on {{schema}}.xxl_job_user_token (username, id);
-- Tries to log in, by a number that names are reduced to.
create table {{schema}}.xxl_job_user_try (
    bucket int primary key,
    failed int not null,
    last   timestamptz not null
);
-- Hashes of codes by which the first user may be made.
create table {{schema}}.xxl_job_user_code (
    hash  bytea primary key,
    id    bigint generated always as identity,
    until timestamptz not null
);
