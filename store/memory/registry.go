package memory

import (
	"context"
	"time"
)

// address is a row of the registry. It is never changed, only replaced.
type address struct {
	app, url  string
	refreshed time.Time
}

// PutAddress registers the address or refreshes it.
func (s *Store) PutAddress(ctx context.Context, app, url string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	return s.insert(tableRegistry, &address{app, url, clock()})
}

// DropAddress removes the address.
func (s *Store) DropAddress(ctx context.Context, app, url string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	_, err := s.remove(tableRegistry, app, url)
	return err
}

// Addresses returns the addresses that were refreshed lately, in order.
func (s *Store) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, err := all[address](s.db, tableRegistry, app)
	if err != nil {
		return nil, err
	}
	now := clock()
	var urls []string
	for _, a := range rows {
		if now.Sub(a.refreshed) <= maxAge {
			urls = append(urls, a.url)
		}
	}
	return urls, nil
}
