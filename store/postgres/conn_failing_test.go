package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// cutter passes connections on to a server, and cuts one on order: before a
// commit goes to the server, or before the answer to it comes back.
type cutter struct {
	net.Listener
	target string
	cut    atomic.Int32 // what to cut next, once
	cuts   atomic.Int32
}

const (
	cutNothing = iota
	cutBefore  // nothing of what ends in a commit reaches the server
	cutAfter   // the server has answered, and nobody hears it
)

// cutting is an address behind a cutter.
func cutting(t *testing.T, dsn string) (*cutter, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{Listener: l}
	behind := change(t, dsn, func(u *url.URL) { c.target, u.Host = u.Host, l.Addr().String() })
	var links sync.WaitGroup
	links.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			links.Go(func() { c.pass(client) })
		}
	})
	t.Cleanup(func() { l.Close(); links.Wait() })
	return c, behind
}

func (c *cutter) pass(client net.Conn) {
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		client.Close()
		return
	}
	var deaf atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil || deaf.Load() { // the answer to the commit is here, so it is done
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	defer func() { server.Close(); client.Close(); <-done }()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if strings.Contains(string(buf[:n]), "commit\x00") {
			switch cut := c.cut.Swap(cutNothing); cut {
			case cutBefore:
				c.cuts.Add(1)
				return
			case cutAfter:
				c.cuts.Add(1)
				deaf.Store(true)
				_, _ = server.Write(buf[:n])
				<-done
				return
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestAConnectionThatBreaksAtACommit: the call fails, its effect is there as a
// whole or not at all, and the next call goes on as if nothing had been.
func TestAConnectionThatBreaksAtACommit(t *testing.T) {
	t.Parallel()
	proxy, dsn := cutting(t, pgtest.DSN(t))
	pool := pgtest.Pool(t, pgtest.At(dsn), by(pgx.QueryExecModeSimpleProtocol)) // the texts of the statements go with them
	schema := made.take(t)
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema, LeaseMode: postgres.LeaseRow})
	must(t, err)
	defer s.Close()
	a := own(t, s, "a", 2)
	state := func() string { return contents(t, schema) }
	job, kept := a.job(), a.job()
	run := a.started(kept)
	added, err := s.AddRun(t.Context(), kept.ID, store.Trigger{})
	must(t, err)
	edit := store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Param += "x"; return false, nil }}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"AddJob", func() error { _, err := s.AddJob(t.Context(), newJob(), nil); return err }},
		{"EditJob", func() error { _, err := s.EditJob(t.Context(), job.ID, edit); return err }},
		{"Claim", func() error {
			job, err := s.Job(t.Context(), job.ID)
			must(t, err)
			_, err = s.Claim(t.Context(), nil, []store.Plan{a.plan(job)})
			return err
		}},
		{"AddRun", func() error { _, err := s.AddRun(t.Context(), kept.ID, store.Trigger{Key: "k"}); return err }},
		{"Start", func() error {
			_, err := s.Start(t.Context(), nil, []store.Start{a.startOf(added, kept.Version)})
			return err
		}},
		{"Finish", func() error { _, err := s.Finish(t.Context(), nil, []store.Result{result(run)}); return err }},
		{"Beat", func() error { _, err := s.Beat(t.Context(), a.inc, nil); return err }},
		{"PutAddresses", func() error {
			return s.PutAddresses(t.Context(), []store.Registration{{App: "app", Address: "http://a"}, {App: "app", Address: "http://b"}})
		}},
		{"DropAddresses", func() error {
			return s.DropAddresses(t.Context(), []store.Registration{{App: "app", Address: "http://a"}})
		}},
		{"ReleaseShards", func() error { return s.ReleaseShards(t.Context(), a.inc, a.shards[:1]) }},
		{"RemoveJob", func() error { return s.RemoveJob(t.Context(), job.ID) }},
		{"Leave", func() error { return s.Leave(t.Context(), a.inc) }},
	} {
		before := state()
		for _, cut := range []int32{cutBefore, cutAfter} {
			cuts := proxy.cuts.Load()
			proxy.cut.Store(cut)
			err := c.call()
			if proxy.cut.Swap(cutNothing) != cutNothing || proxy.cuts.Load() == cuts {
				t.Errorf("%s: no commit was seen", c.name)
				continue
			}
			if err == nil {
				t.Errorf("%s: no error, though the connection broke", c.name)
			}
			await.Until(t, "the server has noticed", func() bool {
				return ask[int](t, pgtest.SharedPool(t), `select count(*)::int from pg_stat_activity
				where state in ('active', 'idle in transaction') and query like '%' || $1 || '%' and pid <> pg_backend_pid()`, schema) == 0
			})
			switch after := state(); {
			case cut == cutBefore && after != before:
				t.Errorf("%s: without a commit it took effect:\n%s\n%s", c.name, before, after)
			case cut == cutAfter && after == before:
				t.Errorf("%s: with a commit it took no effect", c.name)
			}
		}
	}
	b := own(t, s, "b", 2) // no restart is needed
	b.started(b.job())
}

// contents are the rows of the tables that calls change.
func contents(t *testing.T, schema string) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"xxl_job_info", "xxl_job_next", "xxl_job_log", "xxl_job_trigger_key", "xxl_job_lock", "xxl_job_node", "xxl_job_registry", "xxl_job_change"} {
		all.WriteString(ask[string](t, pgtest.SharedPool(t), fmt.Sprintf("select coalesce(string_agg(r::text, E'\\n' order by r::text), '') from %q.%s r", schema, table)))
		all.WriteString("\n")
	}
	return all.String()
}

// TestAServerThatIsAway comes back, and the store with it.
func TestAServerThatIsAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	pool := pgtest.Pool(t, pgtest.At(server.DSN("postgres")))
	s, err := postgres.New(t.Context(), pool, postgres.Config{AutoMigrate: true})
	must(t, err)
	defer s.Close()
	a := own(t, s, "a", 2)
	s.Watch(t.Context(), a.inc)
	var acknowledged atomic.Int64
	job := a.job()
	for _, mode := range []pgtest.Mode{pgtest.Immediate, pgtest.Kill} {
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.AddRun(t.Context(), job.ID, store.Trigger{}); err == nil {
					acknowledged.Add(1)
				}
			}
		}()
		many := acknowledged.Load() + 20
		await.Until(t, "runs are added", func() bool { return acknowledged.Load() >= many })
		must(t, server.Stop(mode))
		// Sessions of a server that was killed live until they notice that.
		await.Until(t, "a beat fails", func() bool { _, err := s.Beat(t.Context(), a.inc, nil); return err != nil })
		must(t, server.Start())
		await.Until(t, "it beats again", func() bool { _, err := s.Beat(t.Context(), a.inc, nil); return err == nil })
		close(stop)
		<-ended
		if n := ask[int](t, pool, "select count(*)::int from xxljob.xxl_job_log"); n < int(acknowledged.Load()) {
			t.Errorf("%s: of %d runs that were acknowledged %d are there", mode, acknowledged.Load(), n)
		}
		v := a.beat()
		if free(v) != 0 {
			t.Errorf("%s: shards are free after the beat: %+v", mode, v.Shards)
		}
	}
	a.started(a.job())
}

// TestADiskThatIsFull: errors while it lasts, nothing in part, and no restart
// after it.
func TestADiskThatIsFull(t *testing.T) {
	inServer(t)
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIPPED: only root on Linux may mount a small disk")
	}
	server := pgtest.Start(t, pgtest.Options{NoFsync: true})
	super := pgtest.Pool(t, pgtest.At(server.DSN("postgres")))
	disk := filepath.Join(server.Dir(), "small")
	must(t, os.Mkdir(disk, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no small disk may be mounted here: %s", out)
	}
	t.Cleanup(func() {
		must(t, server.Stop(pgtest.Immediate)) // before the disk goes
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	must(t, exec.Command("chown", "--reference="+filepath.Join(server.Dir(), "data"), disk).Run())
	run(t, super, "create tablespace small location '"+disk+"'")
	run(t, super, "create database tight tablespace small")
	pool := pgtest.Pool(t, pgtest.At(change(t, server.DSN("postgres"), func(u *url.URL) { u.Path = "/tight" })))
	s, err := postgres.New(t.Context(), pool, postgres.Config{AutoMigrate: true})
	must(t, err)
	defer s.Close()
	a := own(t, s, "a", 2)
	job := a.job()
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	big := strings.Repeat("x", 60_000)
	var failed error
	acknowledged := 0
	for range 2000 {
		param := big[acknowledged%1000:] + fmt.Sprint(acknowledged)
		if _, failed = s.AddRun(t.Context(), job.ID, store.Trigger{Key: fmt.Sprint("k", acknowledged), Param: &param}); failed != nil {
			break
		}
		acknowledged++
	}
	wantText(t, failed, "add run of job", "53100") // disk full
	counts := func() (runs, keys int) {
		return ask[int](t, pool, "select count(*)::int from xxljob.xxl_job_log"), ask[int](t, pool, "select count(*)::int from xxljob.xxl_job_trigger_key")
	}
	if runs, keys := counts(); runs != acknowledged || keys != acknowledged {
		t.Errorf("%d runs and %d keys are there, %d were acknowledged", runs, keys, acknowledged)
	}
	must(t, os.Remove(ballast))
	a.beat()
	if _, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: fmt.Sprint("k", acknowledged), Param: &big}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	a.started(a.job())
	if runs, keys := counts(); runs != acknowledged+2 || keys != acknowledged+1 {
		t.Errorf("%d runs and %d keys are there after %d", runs, keys, acknowledged)
	}
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 1<<16))
	}
}

// TestAPoolWithoutRoom: a call waits for a connection as long as its context
// lasts, and changes nothing then.
func TestAPoolWithoutRoom(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(1), noticing())
	s := openOn(t, pool, postgres.Config{})
	a := own(t, s, inc(t, "a"), 1)
	job := a.job()
	var taken *pgxpool.Conn
	taken, err := pool.Acquire(t.Context())
	must(t, err)
	if _, err := s.AddRun(impatient(t, t.Context()), job.ID, store.Trigger{Key: "k"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a run was added without a connection: %v", err)
	}
	a.beat() // on the lock connection, which is outside of the pool
	taken.Release()
	a.started(job)
}
