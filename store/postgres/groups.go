package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// SaveGroup inserts or replaces the group.
func (s *Store) SaveGroup(ctx context.Context, g store.Group) error {
	kind := 0
	if g.Manual {
		kind = 1
	}
	addresses := append([]string{}, g.Addresses...)
	err := s.inTx(ctx, bounds{name: "save_group"}, func(t *tx) error {
		// Where there is none, of several that save it at once one inserts it, and the others
		// find it then.
		var have []store.Group
		added := 0
		err := t.do(ctx, s.sql.ensureGroup.with(g.App).into(func(pgx.Rows) error { added++; return nil }),
			s.sql.lockGroup.with(g.App).into(readGroups(&have)),
			s.sql.saveGroup.by(named{{"app", g.App}, {"title", g.Title}, {"address_type", kind}, {"address_list", addresses}}))
		if err != nil {
			return err
		}
		var was *store.Group
		if added == 0 && len(have) > 0 {
			was = &have[0]
		}
		return s.noteGroup(ctx, t, was, &g)
	})
	return failed(err, "save group %q", g.App)
}

// noteGroup writes an entry about the group if it has changed.
func (s *Store) noteGroup(ctx context.Context, t *tx, before, after *store.Group) error {
	if c := (changed{}); c.OfGroup(ctx, before, after) {
		return t.do(ctx, s.note(c))
	}
	return nil
}

// EnsureGroup inserts an automatic group where there is none.
func (s *Store) EnsureGroup(ctx context.Context, app string) error {
	var have []store.Group
	err := s.read(ctx, s.sql.group.with(app).into(readGroups(&have)))
	if err == nil && len(have) == 0 {
		err = s.inTx(ctx, bounds{name: "ensure_group"}, func(t *tx) error {
			added := 0
			err := t.do(ctx, s.sql.ensureGroup.with(app).into(func(pgx.Rows) error { added++; return nil }))
			if err != nil || added == 0 {
				return err
			}
			return s.noteGroup(ctx, t, nil, &store.Group{App: app})
		})
	}
	return failed(err, "ensure group %q", app)
}

// RemoveGroup deletes a group without jobs.
func (s *Store) RemoveGroup(ctx context.Context, app string) error {
	err := s.inTx(ctx, bounds{name: "remove_group"}, func(t *tx) error {
		var deleted []store.Group
		used := false
		err := t.do(ctx, s.sql.deleteGroup.with(app).into(readGroups(&deleted)),
			s.sql.groupUsed.with(app).into(scanInto(&used)))
		switch {
		case err != nil:
			return err
		case len(deleted) == 0:
			return store.ErrNotFound
		case used:
			return store.ErrGroupInUse
		}
		return s.noteGroup(ctx, t, &deleted[0], nil)
	})
	return failed(err, "remove group %q", app)
}

// Group returns one group.
func (s *Store) Group(ctx context.Context, app string) (store.Group, error) {
	var have []store.Group
	err := s.read(ctx, s.sql.group.with(app).into(readGroups(&have)))
	if err == nil && len(have) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Group{}, failed(err, "group %q", app)
	}
	return have[0], nil
}

// Groups lists all groups in order of App.
func (s *Store) Groups(ctx context.Context) ([]store.Group, error) {
	var list []store.Group
	err := s.read(ctx, s.sql.groups.with().into(readGroups(&list)))
	return list, failed(err, "list groups")
}

// groupColumns are what readGroups reads.
const groupColumns = `app_name, title, address_type, address_list, update_time`

func readGroups(list *[]store.Group) result {
	return func(rows pgx.Rows) error {
		var g store.Group
		var kind int16
		err := rows.Scan(&g.App, &g.Title, &kind, &g.Addresses, &g.Updated)
		g.Manual, g.Updated = kind == 1, g.Updated.UTC()
		if len(g.Addresses) == 0 {
			g.Addresses = nil
		}
		*list = append(*list, g)
		return err
	}
}

// groupQueries are the statements of this file.
type groupQueries struct {
	saveGroup, ensureGroup, deleteGroup, groupUsed, lockGroup, group, groups query
}

func (q *groupQueries) define(sql template) {
	q.saveGroup = sql(`insert into {{schema}}.xxl_job_group as g (app_name, title, address_type, address_list, update_time)
	values ({{arg.app}}, {{arg.title}}, {{arg.address_type}}, {{arg.address_list}}, {{now}})
	on conflict (app_name) do update set title = excluded.title, address_type = excluded.address_type,
		address_list = excluded.address_list, update_time = excluded.update_time`)
	q.ensureGroup = sql(`insert into {{schema}}.xxl_job_group (app_name, title, address_type, address_list, update_time) values ($1, '', 0, '{}', {{now}})
	on conflict (app_name) do nothing returning 1`)
	q.deleteGroup = sql(`delete from {{schema}}.xxl_job_group where app_name = $1 returning ` + groupColumns)
	// By order, that is by index: where many jobs are of one app, the planner expects
	// to meet one of the app soon wherever it looks, and there may be none.
	q.groupUsed = sql(`select coalesce((select i.app_name from {{schema}}.xxl_job_info i where i.app_name >= $1 order by i.app_name limit 1) = $1, false)`)
	group := `select ` + groupColumns + ` from {{schema}}.xxl_job_group`
	q.group = sql(group + ` where app_name = $1`)
	q.lockGroup = sql(group + ` where app_name = $1 for no key update`)
	q.groups = sql(group + ` order by app_name`)
}
