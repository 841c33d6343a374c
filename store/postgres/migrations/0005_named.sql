-- Migration 3 took all that had been ensured for named by lists, of generation 0, and
-- jobs that were ensured by themselves were among them. Nothing tells the two apart by
-- now; so what no list there is names is nobody's to prune, until one names it. The keys
-- of all lists are hashed once: "not in" with a subquery that knows nothing of the row.
delete from {{schema}}.xxl_job_named m using {{schema}}.xxl_job_info i
    where i.id = m.job_id and m.generation = 0
    and (i.app_name, i.job_key) not in (select l.app_name, k from {{schema}}.xxl_job_list l, pg_catalog.unnest(l.job_keys) k where k is not null);
