-- Lists of an app's jobs go by app and id. While their index began with app_name as the
-- unique one does, it served a lookup by app and key too: until the table is analyzed, as
-- after the first jobs of an app, both look as good to the planner, and by this one each
-- lookup reads all jobs of the app. In another collation, which orders the same, it serves
-- only who asks in that. The old one is dropped first: that takes the strongest lock at
-- once. After a weaker one, which is given beside an edit that has read the table and is
-- about to write, the two would wait for each other.
drop index {{schema}}.xxl_job_info_app;
create index xxl_job_info_of_app on {{schema}}.xxl_job_info (app_name collate "POSIX", id);
