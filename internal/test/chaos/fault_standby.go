//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// Promotion of a standby. The nodes know both servers and look for the one that
// accepts writes.

// openSynchronous makes a primary that acknowledges nothing which its standby does
// not have.
func openSynchronous(ctx context.Context, a *arena) error {
	if err := a.openPair(ctx); err != nil {
		return err
	}
	return a.primary().Configure(ctx, map[string]string{"synchronous_standby_names": "standby"})
}

// openAsynchronous makes a primary whose standby may lag behind.
func openAsynchronous(ctx context.Context, a *arena) error {
	a.forgets = true
	return a.openPair(ctx)
}

func (a *arena) openPair(ctx context.Context) error {
	if err := a.openPrimary(ctx); err != nil {
		return err
	}
	standby, err := a.primary().Standby(ctx, pgtest.Options{})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.standby = standby
	a.mu.Unlock()
	first, err1 := url.Parse(a.primary().DSN(dbName))
	second, err2 := url.Parse(standby.DSN(dbName))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	a.direct = true
	a.dsn = fmt.Sprintf("postgres://%s@%s,%s/%s?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", dbUser, first.Host, second.Host, dbName)
	return nil
}

// openDemoted makes such a primary, which each node reaches through a proxy of its own.
func openDemoted(ctx context.Context, a *arena) error {
	dsn := ""
	err := openSynchronous(ctx, a)
	if err == nil {
		var u *url.URL
		if u, err = url.Parse(a.primary().DSN(dbName)); err == nil {
			u.User = url.User(dbUser)
			dsn = u.String()
		}
	}
	a.direct, a.dsn = false, dsn
	return err
}

// demote makes the primary a standby of its own standby, where the nodes go on to connect for a
// while, as by a name that still stands for it. Then new connections come to the new primary,
// and those that there are live on: they answer, and write nothing.
func demote(ctx context.Context, a *arena) error {
	_ = pause(ctx, 8*time.Second)
	a.mu.Lock()
	primary, standby := a.pg, a.standby
	a.mu.Unlock()
	err := a.blockedBy(audit.Fault{Name: "demotion", Within: within}, func() error {
		if err := errors.Join(primary.Stop(pgtest.Fast), standby.Promote(), primary.Follow(standby)); err != nil {
			return err
		}
		a.mu.Lock()
		a.former, a.pg, a.standby = primary, standby, nil
		a.mu.Unlock()
		_ = pause(ctx, 6*time.Second)
		u, err := url.Parse(standby.DSN(dbName))
		if err == nil {
			a.onAll(func(m *member) { m.proxy.Retarget(u.Host) })
			_ = pause(ctx, unnoticed)
		}
		return err
	})
	_ = pause(ctx, 20*time.Second)
	return err
}

// unnoticed is for how long a node may not have noticed that its connections write nothing: it asks once in a
// LeaseTTL.
const unnoticed = 7 * time.Second

// promote crashes the primary and promotes the standby. Where it may forget, the
// standby has received nothing for some seconds before.
func promote(ctx context.Context, a *arena) error {
	_ = pause(ctx, 8*time.Second)
	a.mu.Lock()
	primary, standby := a.pg, a.standby
	a.mu.Unlock()
	forgets := int64(0)
	if a.forgets {
		forgets = now()
		if err := standby.Configure(ctx, map[string]string{"primary_conninfo": ""}); err != nil {
			return err
		}
		_ = pause(ctx, 3*time.Second)
	}
	f := audit.Fault{Name: "promotion", Forgets: forgets}
	return a.blockedBy(f, func() error {
		err := primary.Stop(pgtest.Kill)
		_ = pause(ctx, time.Second)
		err = errors.Join(err, standby.Promote())
		a.mu.Lock()
		defer a.mu.Unlock()
		a.former, a.pg, a.standby = primary, standby, nil
		return err
	})
}
