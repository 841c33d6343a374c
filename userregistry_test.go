package xxljob_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// own is a registry that notes which apps it is asked about, and told of.
type own struct {
	mu    sync.Mutex
	apps  []string
	addrs map[string][]string
}

func (o *own) note(app string) func() {
	o.mu.Lock()
	o.apps = append(o.apps, app)
	return o.mu.Unlock
}

func (o *own) Register(_ context.Context, app, address string) error {
	defer o.note(app)()
	if !slices.Contains(o.addrs[app], address) {
		o.addrs[app] = append(o.addrs[app], address)
	}
	return nil
}

func (o *own) Deregister(_ context.Context, app, address string) error {
	defer o.note(app)()
	o.addrs[app] = slices.DeleteFunc(o.addrs[app], func(a string) bool { return a == address })
	return nil
}

func (o *own) Lookup(_ context.Context, app string) ([]string, error) {
	defer o.note(app)()
	return slices.Clone(o.addrs[app]), nil
}

// TestRegistryOfSomeApps: a registry is asked about the apps that it is for, and told of them; those of
// other services on the store go by the store, whichever node has the shards of their jobs.
func TestRegistryOfSomeApps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, reg := memory.New(), &own{addrs: map[string][]string{}}
		var all []xxljob.Scheduler
		for _, app := range []string{"ours", "theirs"} {
			cfg := xxljob.Config{App: app, Node: app, Logger: stage.QuietLog()}
			if app == "ours" {
				cfg.Registry, cfg.RegistryApps = reg, []string{"ours"}
			}
			s, err := xxljob.New(st, cfg)
			stage.Must(t, err)
			stage.Must(t, s.Handle("work", stage.NothingToDo))
			stage.Must(t, s.Start(t.Context()))
			all = append(all, s)
		}
		time.Sleep(time.Minute)
		for i, app := range []string{"ours", "theirs"} {
			for k := range 12 {
				_, err := all[i].EnsureJob(t.Context(), xxljob.Job{App: app, Key: string(rune('a' + k)), Name: "job", Handler: "work", Route: "FIRST", Schedule: xxljob.Crontab("* * * * *")})
				stage.Must(t, err)
			}
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		owners := map[string]int{}
		for _, r := range stage.AllRuns(t, st) {
			if r.State != xxljob.StateSucceeded && r.State != xxljob.StatePlanned {
				t.Errorf("a run of %s is %v: %s", r.App, r.State, r.HandleMsg)
			}
			if r.App == "theirs" && r.State == xxljob.StateSucceeded {
				owners[r.Owner]++
			}
		}
		if len(owners) != 2 {
			t.Errorf("runs of the app without a registry were started by %v", owners)
		}
		for _, s := range all {
			stage.Must(t, s.Stop(t.Context()))
		}
		reg.mu.Lock()
		defer reg.mu.Unlock()
		if len(reg.apps) == 0 || slices.ContainsFunc(reg.apps, func(app string) bool { return app != "ours" }) {
			t.Errorf("the registry was called about %q", reg.apps)
		}
	})
	_, err := xxljob.New(memory.New(), xxljob.Config{App: "app", RegistryApps: []string{"app"}})
	if err == nil {
		t.Errorf("apps of no registry: %v", err)
	}
}
