package postgres

import (
	"context"
	"encoding/json"

	"github.com/xxljob/xxljob/store"
)

// Which jobs a definition names: columns of xxl_job_info, and rows of xxl_job_link by which
// the jobs that run behind one are found.

// link writes the rows of definitions in place of those that there are.
func (s *Store) link(jobs []store.Job) statement {
	var ids, of []int64
	var others []*int64
	var apps, keys []*string
	add := func(job, other int64, app, key string) {
		of, others, apps, keys = append(of, job), append(others, nonzero(other)), append(apps, nonempty(app)), append(keys, nonempty(key))
	}
	for i := range jobs {
		j := &jobs[i]
		ids = append(ids, j.ID)
		for _, id := range j.After {
			add(j.ID, id, "", "")
		}
		for _, ref := range j.AfterKeys {
			app, key, _ := store.SplitRef(ref)
			add(j.ID, 0, app, key)
		}
	}
	return s.sql.link.by(named{{"jobs", ids}, {"of", of}, {"others", others}, {"apps", apps}, {"keys", keys}})
}

// linked are those of the jobs that run behind others.
func linked(jobs []store.Job) (joins []store.Job) {
	for i := range jobs {
		if isJoin(&jobs[i]) {
			joins = append(joins, jobs[i])
		}
	}
	return joins
}

func isJoin(j *store.Job) bool { return len(j.After)+len(j.AfterKeys) > 0 }

// Links returns the jobs that name others.
func (s *Store) Links(ctx context.Context) ([]store.Job, error) {
	var found []store.Job
	if err := s.readByIndex(ctx, s.sql.links.with().into(readDefinitions(&found))); err != nil {
		return nil, failed(err, "read which jobs name others")
	}
	for i, j := range found {
		found[i] = store.Job{ID: j.ID, App: j.App, Key: j.Key, Children: j.Children, ChildKeys: j.ChildKeys, After: j.After, AfterKeys: j.AfterKeys}
	}
	return found, nil
}

// joinKeys is a list of references as a column has it.
func joinKeys(refs []string) string {
	if len(refs) == 0 {
		return ""
	}
	text, _ := json.Marshal(refs) // strings have a form in JSON
	return string(text)
}

func parseKeys(text string) (refs []string) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &refs) // what somebody else has written there names nobody
	}
	return refs
}

// linkQueries are the statements of this file.
type linkQueries struct {
	link, links query
}

func (q *linkQueries) define(sql template) {
	q.link = sql(`with gone as (delete from {{schema}}.xxl_job_link k where k.job_id = any({{arg.jobs}}::int[]))
	insert into {{schema}}.xxl_job_link (job_id, other_id, other_app, other_key)
	select * from unnest({{arg.of}}::int[], {{arg.others}}::int[], {{arg.apps}}::text[], {{arg.keys}}::text[])`)
	q.links = sql(`select ` + definitionColumns + ` from {{schema}}.xxl_job_info i
	where i.id = any(array(select k.job_id from {{schema}}.xxl_job_link k union select i.id from {{schema}}.xxl_job_info i where ` + leads + `)) order by i.id`)
}
