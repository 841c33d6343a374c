package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestSessionsOfAClockThatWasAhead: a session that began, or was used, while the server's clock was ten
// years ahead lasts as long as any other from when the clock is right: when it is used, or when another
// one begins. While the clock is doubted it stays as it is.
func TestSessionsOfAClockThatWasAhead(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.SharedPool(t)
	s, err := postgres.New(t.Context(), pool, postgres.FewDays(postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true}))
	must(t, err)
	t.Cleanup(s.Close)
	limits := store.SessionLimits{Idle: time.Hour, Most: 24 * time.Hour, Note: time.Minute}
	doubted := limits
	doubted.Doubted = true
	for _, name := range []string{"ann", "bob"} {
		_, err := s.AddUser(t.Context(), store.User{Name: name})
		must(t, err)
	}
	hash := func(name string) string { return fmt.Sprintf("%-32s", name) }
	login := func(user, name string, l store.SessionLimits) {
		t.Helper()
		_, err := s.AddSession(t.Context(), store.Session{User: user, Hash: hash(name)}, l)
		must(t, err)
	}
	move := func(name, by string) {
		run(t, pool, fmt.Sprintf("update %s.xxl_job_user_session set began = began + interval '%s', seen = seen + interval '%[2]s', proved = proved + interval '%[2]s' where hash = '%s'::bytea", postgres.SchemaOf(s), by, hash(name)))
	}
	wantTimes := func(what, name string, ahead bool) {
		t.Helper()
		seen, err := s.Sessions(t.Context(), "ann", limits)
		must(t, err)
		later := time.Now().Add(time.Hour)
		for _, o := range seen {
			if o.Hash == hash(name) && (o.Began.After(later) != ahead || o.Seen.After(later) != ahead || o.Proved.After(later) != ahead) {
				t.Errorf("%s: %+v", what, o)
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s: it is gone", what)
		}
	}
	login("ann", "s", limits)
	others := 0
	other := func() string { others++; return fmt.Sprint("other ", others) }
	for what, correct := range map[string]func(){
		"it is used": func() {
			o, _, err := s.Session(t.Context(), hash("s"), limits)
			must(t, err)
			if later := time.Now().Add(time.Hour); o.Began.After(later) || o.Seen.After(later) || o.Proved.After(later) {
				t.Errorf("as returned: %+v", o)
			}
		},
		"another one begins": func() { login("bob", other(), limits) },
	} {
		move("s", "10 years")
		_, _, err := s.Session(t.Context(), hash("s"), doubted)
		must(t, err)
		login("bob", other(), doubted)
		wantTimes("while the clock is doubted", "s", true)
		correct()
		wantTimes("when "+what, "s", false)
	}
	move("s", "-61 minutes")
	login("bob", "a third", doubted)
	if _, _, err := s.Session(t.Context(), hash("s"), doubted); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an hour unused: %v", err)
	}
	move("s", "30 minutes")
	wantTimes("what had ended by a clock that is doubted", "s", false)
}
