package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestSessionsOfAClockThatWasAhead: a session that began, or was used, while the clock was ten years
// ahead lasts as long as any other from when the clock is right: when it is used, or when another one begins.
func TestSessionsOfAClockThatWasAhead(t *testing.T) {
	const tenYears = 3653 * 24 * time.Hour
	limits := store.SessionLimits{Idle: time.Hour, Most: 24 * time.Hour, Note: time.Minute}
	doubted := limits
	doubted.Doubted = true
	for _, how := range []string{"is used", "is not"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 1)
				var ahead time.Duration
				f.GoBy(func() time.Time { return time.Now().Add(ahead) })
				for _, name := range []string{"ann", "bob"} {
					_, err := f.AddUser(t.Context(), store.User{Name: name})
					f.must(err)
				}
				hash := fmt.Sprintf("%-32s", "s")
				login := func(user, hash string, l store.SessionLimits) {
					_, err := f.AddSession(t.Context(), store.Session{User: user, Hash: fmt.Sprintf("%-32s", hash)}, l)
					f.must(err)
				}
				ahead = tenYears
				login("ann", "s", doubted)
				ahead = 0
				_, _, err := f.Session(t.Context(), hash, doubted)
				f.must(err)
				time.Sleep(2 * time.Hour) // the clock is trusted again
				if how == "is used" {
					s, _, err := f.Session(t.Context(), hash, limits)
					f.must(err)
					if now := time.Now(); s.Began.After(now) || s.Seen.After(now) || s.Proved.After(now) {
						t.Errorf("at %v its times are %v, %v, %v", now, s.Began, s.Seen, s.Proved)
					}
				}
				login("bob", "other", limits)
				time.Sleep(50 * time.Minute)
				_, _, err = f.Session(t.Context(), hash, limits)
				f.must(err)
				time.Sleep(61 * time.Minute)
				if _, _, err = f.Session(t.Context(), hash, limits); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("an hour unused: %v", err)
				}
			})
		})
	}
}
