package memory

import (
	"context"

	"github.com/xxljob/xxljob"
)

// SaveGroup inserts or replaces the group.
func (s *Store) SaveGroup(ctx context.Context, g xxljob.Group) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	return s.saveGroup(g)
}

func (s *Store) saveGroup(g xxljob.Group) error {
	g.Addresses = copied(g.Addresses)
	g.Updated = clock()
	return s.insert(tableGroups, &g)
}

// EnsureGroup inserts an automatic group where there is none.
func (s *Store) EnsureGroup(ctx context.Context, app string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	g, err := first[xxljob.Group](s.db, tableGroups, byID, app)
	if err != nil || g != nil {
		return err
	}
	return s.saveGroup(xxljob.Group{App: app})
}

// RemoveGroup deletes a group without jobs.
func (s *Store) RemoveGroup(ctx context.Context, app string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	g, err := first[xxljob.Group](s.db, tableGroups, byID, app)
	if err == nil && g == nil {
		err = xxljob.ErrNotFound
	}
	if err != nil {
		return failed(err, "remove group %q", app)
	}
	j, err := first[xxljob.Job](s.db, tableJobs, byApp+"_prefix", app)
	if err == nil && j != nil {
		err = xxljob.ErrGroupInUse
	}
	if err != nil {
		return failed(err, "remove group %q", app)
	}
	_, err = s.remove(tableGroups, app)
	return err
}

// Group returns one group.
func (s *Store) Group(ctx context.Context, app string) (xxljob.Group, error) {
	if err := over(ctx); err != nil {
		return xxljob.Group{}, err
	}
	g, err := first[xxljob.Group](s.db, tableGroups, byID, app)
	if err == nil && g == nil {
		err = xxljob.ErrNotFound
	}
	if err != nil {
		return xxljob.Group{}, failed(err, "group %q", app)
	}
	return groupCopy(g), nil
}

// Groups lists all groups in order of App.
func (s *Store) Groups(ctx context.Context) ([]xxljob.Group, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	groups, err := all[xxljob.Group](s.db, tableGroups)
	if err != nil {
		return nil, err
	}
	var out []xxljob.Group
	for _, g := range groups {
		out = append(out, groupCopy(g))
	}
	return out, nil
}

func groupCopy(g *xxljob.Group) xxljob.Group {
	out := *g
	out.Addresses = copied(out.Addresses)
	return out
}
