package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

func TestStartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Start(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Start with an ended context: %v", err)
		}
		start(t, e)
		if err := e.Start(t.Context()); !errors.Is(err, executor.ErrStarted) {
			t.Errorf("second Start: %v", err)
		}
		stop(t, e)
		if err := e.Start(t.Context()); !errors.Is(err, executor.ErrStopped) {
			t.Errorf("Start after Stop: %v", err)
		}
		if len(one.beats()) != 1 {
			t.Errorf("%d registrations", len(one.beats()))
		}
	})
}

// TestNilContexts: each call says what is wrong, and does nothing.
func TestNilContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, one, _ := threeAdmins(t, executor.Config{})
		var none context.Context
		for name, call := range map[string]func(context.Context) error{"Start": e.Start, "Serve": e.Serve, "Stop": e.Stop} {
			func() {
				defer func() {
					if v := recover(); v != nil {
						t.Errorf("%s: panic: %v", name, v)
					}
				}()
				if err := call(none); err == nil || !strings.Contains(err.Error(), "the context is nil") {
					t.Errorf("%s: %v", name, err)
				}
			}()
		}
		start(t, e) // none of it was a start or a stop
		synctest.Wait()
		if len(one.beats()) != 1 || len(one.goodbyes()) != 0 {
			t.Errorf("%d registrations, %d good-byes", len(one.beats()), len(one.goodbyes()))
		}
		stop(t, e)
	})
}

// Before Start the admins of Config are refused, and the one in the process is
// not.
func TestNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, own, one, _ := threeAdmins(t, executor.Config{})
		handle(t, e, "h", noop)
		wantRefused(t, give(t, e, "one", req(1, 1)), "executor is not started.")
		if ret, _ := e.As("one").Beat(t.Context()); ret.OK() {
			t.Error("it beats before Start")
		}
		mustSend(t, e, req(1, 1))
		start(t, e)
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		if len(own.ids()) != 1 || len(one.ids()) != 1 {
			t.Errorf("results %v, %v", own.ids(), one.ids())
		}
	})
}

// Stop without Start tells nobody.
func TestStopWithoutStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, one, _ := threeAdmins(t, executor.Config{})
		stop(t, e)
		if err := e.Start(t.Context()); !errors.Is(err, executor.ErrStopped) {
			t.Errorf("Start after Stop: %v", err)
		}
		if len(one.beats())+len(one.goodbyes()) != 0 {
			t.Error("an admin was called")
		}
	})
}

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		e := over(t, a, executor.Config{StopGrace: 5 * time.Second, Admins: []executor.AdminCluster{a.cluster("one", one)}})
		handle(t, e, "h", untilDone)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		began := time.Now()
		go func() { served <- e.Serve(ctx) }()
		time.Sleep(time.Second)
		mustGive(t, e, "one", req(1, 1))
		cancel()
		if err := <-served; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Serve with a run that does not end: %v", err)
		}
		if d := time.Since(began); d != 6*time.Second {
			t.Errorf("Serve took %v", d)
		}
		if err := e.Serve(t.Context()); !errors.Is(err, executor.ErrStopped) {
			t.Errorf("Serve again: %v", err)
		}
		if got := one.result(t, 1); got.HandleMsg != stoppedRunning {
			t.Errorf("result %+v", got)
		}
	})
}

// What cannot be listened on starts nothing, and may be tried again.
func TestAddrInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := admins{}
	one := newNode()
	cfg := executor.Config{Addr: l.Addr().String(), Insecure: true, SpoolDir: t.TempDir(), Admins: []executor.AdminCluster{a.cluster("one", one)}}
	e := over(t, a, cfg)
	for range 2 {
		if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.Addr") {
			t.Fatalf("Start on an address in use: %v", err)
		}
	}
	if len(one.beats()) != 0 {
		t.Error("registered though not started")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Errorf("Start on an address that is free again: %v", err)
	}
	stop(t, e)
	if c, err := net.Dial("tcp", cfg.Addr); err == nil {
		c.Close()
		t.Error("it listens after Stop")
	}
}

// A Start that fails later than at its address gives that free again.
func TestFailedStartFreesItsAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := admins{}
	addr := strings.TrimPrefix(deadAddress(t), "http://")
	e := over(t, a, executor.Config{Addr: addr, Insecure: true, SpoolDir: file, Admins: []executor.AdminCluster{a.cluster("one", newNode())}})
	if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.SpoolDir") {
		t.Errorf("Start: %v", err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it listens though not started")
	}
}

func TestConfigFaults(t *testing.T) {
	const secret = "s3cret-token"
	ok := executor.AdminCluster{Addresses: []string{"http://a/"}, Token: secret}
	named := func(names ...string) (list []executor.AdminCluster) {
		for _, n := range names {
			list = append(list, executor.AdminCluster{Name: n, Addresses: []string{"http://a/"}, Token: secret})
		}
		return list
	}
	for _, c := range []struct {
		cfg  executor.Config
		want []string
	}{
		{executor.Config{Beat: -1, StopGrace: -1, SpoolBytes: -1, CallTimeout: -1},
			[]string{"Config.Beat is -1ns", "Config.StopGrace is -1ns", "Config.SpoolBytes is -1", "Config.CallTimeout is -1ns"}},
		{executor.Config{Addr: "nonsense", Admins: []executor.AdminCluster{{}}},
			[]string{`Config.Addr is "nonsense"`, "Config.Admins[0].Addresses is empty"}},
		{executor.Config{Admins: []executor.AdminCluster{ok}}, []string{"Config.Address is empty"}},
		{executor.Config{Address: "http://me:" + secret + "@b/", Admins: []executor.AdminCluster{ok}}, []string{"Config.Address: "}},
		{executor.Config{Address: self, Admins: []executor.AdminCluster{{Addresses: []string{"http://a/", "ftp://" + secret + "@b"}}}},
			[]string{"Config.Admins[0].Addresses[1]: "}},
		{executor.Config{Address: self, Admins: named("one", "")}, []string{"Admins[1].Name is \"\", want one"}},
		{executor.Config{Address: self, Admins: named("one", "two", "one")}, []string{"Admins[2].Name is \"one\" like that of Admins[0]"}},
		{executor.Config{Address: self, Admins: named("One", "trigger", "2024-01-31", "a/b")},
			[]string{"Admins[0].Name is \"One\"", "Admins[1].Name is \"trigger\", which is the name of an endpoint", "Admins[2].Name is \"2024-01-31\"", "Admins[3].Name is \"a/b\""}},
		{executor.Config{Address: self + strings.Repeat("x", 250), Admins: []executor.AdminCluster{ok}}, []string{"Config.Address: "}},
		{executor.Config{Tokens: []string{secret, secret + "2", secret + "3"}}, []string{"Config.Tokens: ", "at most 2"}},
		{executor.Config{Tokens: []string{""}}, []string{"Config.Tokens: ", "empty"}},
		{executor.Config{Tokens: []string{wire.DefaultToken}}, []string{"Config.Tokens: ", "default"}},
		{executor.Config{Address: self, Admins: []executor.AdminCluster{{Addresses: []string{"http://a/"}, Token: wire.DefaultToken}}},
			[]string{"Config.Admins[0].Token is the default"}},
		{executor.Config{Address: self, Admins: []executor.AdminCluster{{Addresses: []string{"http://a/"}, Token: secret + "\n"}}},
			[]string{"Config.Admins[0]"}},
	} {
		_, err := executor.New(c.cfg)
		if err == nil {
			t.Errorf("%q: no error", c.want)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), wire.DefaultToken) {
			t.Errorf("a token is in: %v", err)
		}
	}
	if _, err := executor.New(executor.Config{Address: self, Admins: []executor.AdminCluster{ok}}); err != nil {
		t.Errorf("the plain case: %v", err)
	}
}

// default_token is warned of at every start.
func TestDefaultTokenWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warned []string
		a := admins{}
		c := a.cluster("one", newNode())
		c.Token = wire.DefaultToken
		e := over(t, a, executor.Config{AllowDefaultToken: true, Admins: []executor.AdminCluster{c},
			Logger: slog.New(recorder{slog.DiscardHandler, &warned})})
		start(t, e)
		synctest.Wait()
		if !slices.ContainsFunc(warned, func(s string) bool { return strings.Contains(s, "publicly known") }) {
			t.Errorf("logged %q", warned)
		}
	})
}

// TestShortTokensWarn: tokens that can be guessed are warned of by the names of their fields.
func TestShortTokensWarn(t *testing.T) {
	cluster := func(name, token string) executor.AdminCluster {
		return executor.AdminCluster{Name: name, Addresses: []string{"http://a/"}, Token: token}
	}
	for _, tt := range []struct {
		cfg  executor.Config
		want string
	}{
		{executor.Config{Tokens: []string{"sixteen-bytes-16"}, Admins: []executor.AdminCluster{cluster("one", "sixteen-bytes-17"), cluster("two", "")}}, ""},
		{executor.Config{Tokens: []string{wire.DefaultToken}, AllowDefaultToken: true}, ""},
		{executor.Config{Tokens: []string{"sixteen-bytes-16", "fifteen-bytes-1"}}, "[Tokens]"},
		{executor.Config{Tokens: []string{"x"}, Admins: []executor.AdminCluster{cluster("one", "sixteen-bytes-16"), cluster("two", "fifteen-bytes-2")}}, "[Tokens Admins[1].Token]"},
	} {
		var log strings.Builder
		tt.cfg.Address, tt.cfg.Logger = self, slog.New(slog.NewTextHandler(&log, nil))
		if _, err := executor.New(tt.cfg); err != nil {
			t.Errorf("%v", err)
		}
		if warned := strings.Contains(log.String(), "can be guessed"); warned != (tt.want != "") || !strings.Contains(log.String(), tt.want) || strings.Contains(log.String(), "fifteen") {
			t.Errorf("want %q: %s", tt.want, &log)
		}
	}
}

// recorder keeps the messages of warnings.
type recorder struct {
	slog.Handler
	warned *[]string
}

func (r recorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (r recorder) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r recorder) Handle(_ context.Context, rec slog.Record) error {
	*r.warned = append(*r.warned, rec.Message)
	return nil
}
