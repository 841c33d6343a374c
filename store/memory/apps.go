package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// PutAddresses registers addresses or refreshes them.
func (s *Store) PutAddresses(ctx context.Context, regs []store.Registration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	now := clock()
	type key struct{ app, address string }
	last := make(map[key]int, len(regs))
	for i := range regs {
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
		row := copyOfRegistration(&reg)
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
	now := clock()
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
	var regs []store.Registration
	for raw := it.Next(); raw != nil && len(regs) < f.Limit; raw = it.Next() {
		row := raw.(*store.Registration)
		if f.App != "" && row.App != f.App {
			break
		}
		if row.App == f.After && row.Address == f.AfterAddress {
			continue // the last one of the page before
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
	now := clock()
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
	reg.Capabilities = copied(row.Capabilities)
	return reg
}
