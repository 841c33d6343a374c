package memory

// Executor apps: their groups, and the addresses that their executors registered.

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// SaveGroup inserts or replaces the group.
func (s *Store) SaveGroup(ctx context.Context, g store.Group) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	if err := store.CheckTexts("group", g); err != nil {
		return failed(err, "save group")
	}
	return s.saveGroup(ctx, g)
}

func (s *Store) saveGroup(ctx context.Context, g store.Group) error {
	was, err := first[store.Group](s.db, tableGroups, g.App)
	if err != nil {
		return err
	}
	g.Addresses = copied(g.Addresses)
	g.Updated = s.clock()
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
		s.write(c, nil, s.clock())
	}
}

// EnsureGroup inserts an automatic group where there is none.
func (s *Store) EnsureGroup(ctx context.Context, app string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	app = store.PlainText(app)
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

// PutAddresses registers addresses or refreshes them.
func (s *Store) PutAddresses(ctx context.Context, regs []store.Registration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	now := s.clock()
	type key struct{ app, address string }
	last := make(map[key]int, len(regs))
	regs = slices.Clone(regs)
	for i := range regs {
		regs[i] = copyOfRegistration(&regs[i])
		last[key{regs[i].App, regs[i].Address}] = i
	}
	txn := s.db.Txn(true)
	defer txn.Abort()
	for i, reg := range regs {
		if last[key{reg.App, reg.Address}] != i {
			continue
		}
		raw, err := txn.First(tableRegistry, byID, reg.App, reg.Address)
		if err != nil {
			return err
		}
		row := reg
		row.Updated, row.FormerBootID, row.FormerSeen = now, "", time.Time{}
		if was, _ := raw.(*store.Registration); was != nil {
			row.FormerBootID, row.FormerSeen = was.FormerBootID, was.FormerSeen
			if was.BootID != row.BootID {
				row.FormerBootID, row.FormerSeen = was.BootID, was.Updated
			}
		}
		if err := txn.Insert(tableRegistry, &row); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// DropAddresses removes registrations of the given boot ids, or whatever theirs
// are where none is given.
func (s *Store) DropAddresses(ctx context.Context, regs []store.Registration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	txn := s.db.Txn(true)
	defer txn.Abort()
	for _, reg := range regs {
		reg = copyOfRegistration(&reg)
		raw, err := txn.First(tableRegistry, byID, reg.App, reg.Address)
		if err != nil {
			return err
		}
		row, _ := raw.(*store.Registration)
		if row == nil || reg.BootID != "" && reg.BootID != row.BootID {
			continue
		}
		if err := txn.Delete(tableRegistry, row); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// Addresses returns the registrations that were refreshed lately, in order.
func (s *Store) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	rows, err := all[store.Registration](s.db, tableRegistry, app)
	if err != nil {
		return nil, err
	}
	now := s.clock()
	var regs []store.Registration
	for _, row := range rows {
		if now.Sub(row.Updated) <= maxAge {
			regs = append(regs, copyOfRegistration(row))
		}
	}
	return regs, nil
}

// Registrations lists a page of the registry.
func (s *Store) Registrations(ctx context.Context, f store.RegistrationFilter) ([]store.Registration, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	app, address := f.After, f.AfterAddress
	if f.App > app {
		app, address = f.App, ""
	}
	it, err := s.db.Txn(false).LowerBound(tableRegistry, byID, app, address)
	if err != nil {
		return nil, err
	}
	now := s.clock()
	var regs []store.Registration
	for raw := it.Next(); raw != nil && len(regs) < f.Limit; raw = it.Next() {
		row := raw.(*store.Registration)
		if f.App != "" && row.App != f.App {
			break
		}
		if row.App == f.After && row.Address == f.AfterAddress {
			continue // the last one of the page before
		}
		if f.Within > 0 && now.Sub(row.Updated) > f.Within {
			continue
		}
		regs = append(regs, copyOfRegistration(row))
	}
	return regs, nil
}

// ForgetAddresses removes registrations that were not refreshed lately.
func (s *Store) ForgetAddresses(ctx context.Context, maxAge time.Duration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	rows, err := all[store.Registration](s.db, tableRegistry)
	if err != nil {
		return err
	}
	now := s.clock()
	txn := s.db.Txn(true)
	defer txn.Abort()
	for _, row := range rows {
		if now.Sub(row.Updated) <= maxAge {
			continue
		}
		if err := txn.Delete(tableRegistry, row); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// copyOfRegistration shares nothing with the row.
func copyOfRegistration(row *store.Registration) store.Registration {
	reg := *row
	reg.App, reg.Address, reg.BootID = store.PlainText(row.App), store.PlainText(row.Address), store.PlainText(row.BootID)
	reg.Capabilities = plain(row.Capabilities)
	return reg
}

// NoteServed stores how apps are served.
func (s *Store) NoteServed(ctx context.Context, apps []store.Served) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	for _, a := range apps {
		a.App, a.By, a.Gone = store.PlainText(a.App), store.ServedBy(store.PlainText(string(a.By))), stored(a.Gone)
		was, known := s.served[a.App]
		if a.By == "" {
			a.By = was.By
		}
		if !a.Gone.IsZero() && !was.Gone.IsZero() {
			a.Gone = was.Gone
		}
		s.served[a.App] = a
		if known && a.Gone.IsZero() && !was.Gone.IsZero() {
			s.tellNodes()
		}
	}
	return nil
}

// Served returns what was noted of the apps.
func (s *Store) Served(ctx context.Context, apps []string) ([]store.Served, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []store.Served
	for _, app := range slices.Compact(slices.Sorted(slices.Values(apps))) {
		if a, known := s.served[app]; known {
			list = append(list, a)
		}
	}
	return list, nil
}
