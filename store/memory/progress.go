package memory

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// SetProgress stores how far runs are.
func (s *Store) SetProgress(ctx context.Context, list []store.Progress) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	for i := range list {
		p := &list[i]
		if r := s.runs.find(p.RunID); r != nil && r.hears(p) {
			r.setProgress(p.Percent, p.Text)
		}
	}
	return nil
}

// hears is the compare of the compare-and-set.
func (r *run) hears(p *store.Progress) bool {
	switch {
	case r.Token != p.Token:
		return false
	case p.Incarnation == "":
		return r.State == store.StateStarted || r.State == store.StateDispatched
	}
	return r.State == store.StateStarted && r.addressee != nil && r.addressee.incarnation == p.Incarnation
}
