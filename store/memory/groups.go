package memory

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// SaveGroup inserts or replaces the group.
func (s *Store) SaveGroup(ctx context.Context, g store.Group) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	return s.saveGroup(ctx, g)
}

func (s *Store) saveGroup(ctx context.Context, g store.Group) error {
	was, err := first[store.Group](s.db, tableGroups, g.App)
	if err != nil {
		return err
	}
	g.Addresses = copied(g.Addresses)
	g.Updated = clock()
	if err := s.insert(tableGroups, &g); err != nil {
		return err
	}
	s.noteGroup(ctx, was, &g)
	return nil
}

// noteGroup writes an entry about the group if it has changed.
func (s *Store) noteGroup(ctx context.Context, before, after *store.Group) {
	var c store.Change
	if c.OfGroup(ctx, before, after) {
		s.write(c, nil, clock())
	}
}

// EnsureGroup inserts an automatic group where there is none.
func (s *Store) EnsureGroup(ctx context.Context, app string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	g, err := first[store.Group](s.db, tableGroups, app)
	if err != nil || g != nil {
		return err
	}
	return s.saveGroup(ctx, store.Group{App: app})
}

// RemoveGroup deletes a group without jobs.
func (s *Store) RemoveGroup(ctx context.Context, app string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	g, err := first[store.Group](s.db, tableGroups, app)
	if err == nil && g == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return failed(err, "remove group %q", app)
	}
	if s.apps[app] != nil {
		return failed(store.ErrGroupInUse, "remove group %q", app)
	}
	if _, err = s.remove(tableGroups, app); err == nil {
		s.noteGroup(ctx, g, nil)
	}
	return err
}

// Group returns one group.
func (s *Store) Group(ctx context.Context, app string) (store.Group, error) {
	if err := over(ctx); err != nil {
		return store.Group{}, err
	}
	g, err := first[store.Group](s.db, tableGroups, app)
	if err == nil && g == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Group{}, failed(err, "group %q", app)
	}
	return groupCopy(g), nil
}

// Groups lists all groups in order of App.
func (s *Store) Groups(ctx context.Context) ([]store.Group, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	groups, err := all[store.Group](s.db, tableGroups)
	if err != nil {
		return nil, err
	}
	var out []store.Group
	for _, g := range groups {
		out = append(out, groupCopy(g))
	}
	return out, nil
}

func groupCopy(g *store.Group) store.Group {
	out := *g
	out.Addresses = copied(out.Addresses)
	return out
}
