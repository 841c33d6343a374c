package memory

// Mutes: what somebody knows of, so that its alarms are not sent.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

var _ store.MuteKeeper = (*Store)(nil)

// PutMute keeps a mute.
func (s *Store) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	if err := s.begin(ctx); err != nil {
		return store.Mute{}, err
	}
	defer s.done()
	now := s.clock()
	if err := m.Validate(now); err != nil {
		return store.Mute{}, err
	}
	if m.JobID != 0 {
		j := s.live(m.JobID)
		if j == nil {
			return store.Mute{}, failed(store.ErrNotFound, "mute job %d", m.JobID)
		}
		m.App = j.app
	}
	m.At, m.By, m.Until = now, store.Actor(ctx), m.Until.UTC().Truncate(time.Millisecond)
	maps.DeleteFunc(s.mutes, func(_ string, was store.Mute) bool { return !was.Until.After(mutedAt(ctx, now)) })
	var before *store.Mute
	if was, there := s.mutes[m.Key]; there {
		before = &was
	}
	var c store.Change
	c.OfMute(ctx, before, &m)
	s.write(c, nil, now)
	s.mutes[m.Key] = m
	return m, nil
}

// mutedAt is the time by which mutes are over.
func mutedAt(ctx context.Context, now time.Time) time.Time {
	if at := store.TrustedTime(ctx); !at.IsZero() && at.Before(now) {
		return at
	}
	return now
}

// DropMute ends a mute.
func (s *Store) DropMute(ctx context.Context, key string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	was, there := s.mutes[key]
	if !there || !was.Until.After(mutedAt(ctx, s.clock())) {
		return failed(store.ErrNotFound, "end the mute of %q", key)
	}
	delete(s.mutes, key)
	var c store.Change
	c.OfMute(ctx, &was, nil)
	s.write(c, nil, s.clock())
	return nil
}

// Mutes returns those that are not over.
func (s *Store) Mutes(ctx context.Context) (list []store.Mute, err error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.mutes)) {
		if m := s.mutes[key]; m.Until.After(mutedAt(ctx, s.clock())) {
			list = append(list, m)
		}
	}
	return list, nil
}
