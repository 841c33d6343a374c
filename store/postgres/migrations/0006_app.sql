-- Lists of an app's jobs go by app and id. While an index began with app_name itself, it
-- served a lookup by app and key too, for which there is the unique index: until the table
-- is analyzed, as after the first jobs of an app, both look as good to the planner, and
-- with this one each lookup reads all jobs of the app. So the new one has the app as an
-- expression, which lists use and nothing else. The old one is dropped first: that takes
-- the strongest lock at once, and an edit that holds a weaker one cannot deadlock with it.
drop index {{schema}}.xxl_job_info_app;
create index xxl_job_info_of_app on {{schema}}.xxl_job_info ((app_name || ''), id);
