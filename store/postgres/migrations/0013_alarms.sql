-- Whether a rule that counts as having told an alarm has given it up: then the alarm ends as
-- one that could not be told, also where another node ends it.
alter table {{schema}}.xxl_job_alarm add column gave_up boolean not null default false;
